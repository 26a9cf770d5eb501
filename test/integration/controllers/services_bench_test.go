//go:build integration

package controllers_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

const (
	benchServices  = 200
	benchEndpoints = 50
	benchChanges   = 60
	busyChanges    = 200
	busyInterval   = time.Second / 20
)

// BenchmarkServices measures Services that span five clusters: the time from a change of
// a slice in a provider to the consumer, the writes that it takes, and the time and the
// memory that 200 Services with 50 endpoints each take; then the same time while a slice of one of them changes 20 times a
// second.
func BenchmarkServices(b *testing.B) {
	members := []string{"m1", "m2", "m3", "m4", "m5"}
	f := newServicesFederation(b, members...)
	f.create(b, f.plane, service("web"), crossCluster("web", []string{"m1"}, []string{"m5"}))
	f.create(b, f.members["m1"], slice("web", "web-a", "10.1.0.1"))
	f.wantSlices("m5", "web", "m1-web-a=10.1.0.1")
	time.Sleep(2 * time.Second) // quiet

	latencies, writes := f.measureChanges(b)
	at := func(p int) float64 {
		slices.Sort(latencies)
		return float64(latencies[len(latencies)*p/100].Milliseconds())
	}
	b.ReportMetric(at(50), "p50-ms")
	b.ReportMetric(at(99), "p99-ms")
	b.ReportMetric(writes, "writes/change")

	before := heap()
	took := f.measureMany(b, members)
	b.ReportMetric(took.Seconds(), "s/200-services")
	const thousands = benchServices * benchEndpoints / 1000
	b.ReportMetric(float64(heap()-before)/(1<<20)/thousands, "MiB/1000-endpoints")
	latencies = f.measureBusy(b)
	b.ReportMetric(at(50), "busy-p50-ms")
	b.ReportMetric(at(99), "busy-p99-ms")
	b.ReportMetric(0, "ns/op")
	fmt.Fprintln(os.Stderr, "the memory is that of the process of the benchmark, with the objects of all informers")
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// measureChanges changes a slice and returns how long each change took to the consumer,
// and how many writes of Works each took.
func (f *servicesFederation) measureChanges(b *testing.B) ([]time.Duration, float64) {
	b.Helper()
	works, err := f.plane.Watch(b.Context(), &workv1alpha1.WorkList{})
	f.must(err)
	defer works.Stop()
	there, err := f.members["m5"].Watch(b.Context(), &discoveryv1.EndpointSliceList{}, client.InNamespace("default"), client.MatchingLabels{discoveryv1.LabelServiceName: "web"})
	f.must(err)
	defer there.Stop()
	var out []time.Duration
	for i := range benchChanges {
		address := fmt.Sprintf("10.1.1.%d", i+1)
		began := time.Now()
		f.must(f.members["m1"].Patch(b.Context(), slice("web", "web-a", address), client.Merge))
		for e := range there.ResultChan() {
			if s, ok := e.Object.(*discoveryv1.EndpointSlice); ok && len(s.Endpoints) == 1 && s.Endpoints[0].Addresses[0] == address {
				break
			}
		}
		out = append(out, time.Since(began))
	}
	writes := 0
	for quiet := false; !quiet; {
		select {
		case e := <-works.ResultChan():
			if e.Type == watch.Modified {
				writes++
			}
		case <-time.After(2 * time.Second): // writes of status come late
			quiet = true
		}
	}
	return out, float64(writes) / benchChanges
}

// measureBusy changes the first endpoint of a slice many times a second and returns how long each change took until a
// consumer has it or a later one.
func (f *servicesFederation) measureBusy(b *testing.B) []time.Duration {
	b.Helper()
	there, err := f.members["m5"].Watch(b.Context(), &discoveryv1.EndpointSliceList{}, client.InNamespace("default"), client.MatchingLabels{discoveryv1.LabelServiceName: "many-0"})
	f.must(err)
	defer there.Stop()
	addresses := make([]string, benchEndpoints)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("10.9.1.%d", i+1)
	}
	sent := make(chan time.Time, busyChanges)
	go func() {
		ticker := time.NewTicker(busyInterval)
		defer ticker.Stop()
		for i := range busyChanges {
			<-ticker.C
			addresses[0] = fmt.Sprintf("10.8.0.%d", i+1)
			sent <- time.Now()
			if err := f.members["m1"].Patch(b.Context(), slice("many-0", "many-0-a", addresses...), client.Merge); err != nil {
				b.Error(err)
			}
		}
	}()
	var out []time.Duration
	for len(out) < busyChanges {
		e := <-there.ResultChan()
		s, ok := e.Object.(*discoveryv1.EndpointSlice)
		if !ok || len(s.Endpoints) == 0 {
			b.Fatalf("watching slices: %v", e)
		}
		change := 0
		if _, err := fmt.Sscanf(s.Endpoints[0].Addresses[0], "10.8.0.%d", &change); err != nil {
			continue // from before
		}
		for len(out) < change {
			out = append(out, time.Since(<-sent))
		}
	}
	return out
}

// measureMany creates many Services, of which each cluster provides some, and returns how
// long it took until all other clusters have their slices.
func (f *servicesFederation) measureMany(b *testing.B, members []string) time.Duration {
	b.Helper()
	addresses := make([]string, benchEndpoints)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("10.9.0.%d", i+1)
	}
	for i := range benchServices {
		name := fmt.Sprintf("many-%d", i)
		f.create(b, f.members[members[i%len(members)]], slice(name, name+"-a", addresses...))
		f.create(b, f.plane, service(name))
	}
	began := time.Now()
	for i := range benchServices {
		f.create(b, f.plane, crossCluster(fmt.Sprintf("many-%d", i), []string{members[i%len(members)]}, members))
	}
	for _, member := range members {
		want := benchServices - benchServices/len(members)
		for {
			list := &discoveryv1.EndpointSliceList{}
			services := &corev1.ServiceList{}
			f.must(f.members[member].List(b.Context(), list, client.InNamespace("default"), client.MatchingLabels{discoveryv1.LabelManagedBy: "endpointslice-dispatch-controller.karmada.io"}))
			f.must(f.members[member].List(b.Context(), services, client.InNamespace("default")))
			if len(list.Items) >= want && len(services.Items) >= benchServices {
				break
			}
			if time.Since(began) > 5*time.Minute {
				b.Fatalf("%s has %d of %d slices and %d of %d Services", member, len(list.Items), want, len(services.Items), benchServices)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	return time.Since(began)
}
