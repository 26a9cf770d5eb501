package bindingstatus

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/status"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
)

// canonicalWork is the name of the Work of the template.
var canonicalWork = names.Work("Deployment", "a", "default")

const deploymentManifest = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"default","name":"a"}}`

func raw(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }

// workIn returns the Work of a cluster. applied is empty for one that was not
// handled yet; health is empty for one without a status.
func workIn(cluster string, applied metav1.ConditionStatus, health workv1alpha1.ResourceHealth, status string) workv1alpha1.Work {
	w := workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-" + cluster, Name: canonicalWork}}
	w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: *raw(deploymentManifest)}}
	if applied != "" {
		w.Status.Conditions = []metav1.Condition{{Type: "Applied", Status: applied, Message: "message of " + cluster}}
	}
	if health != "" {
		w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{
			Identifier: workv1alpha1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "default", Name: "a"},
			Status:     raw(status), Health: health,
		}}
	}
	return w
}

func spec(clusters ...string) *workv1alpha2.ResourceBindingSpec {
	s := &workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{
		APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "a", UID: "template",
	}}
	for _, c := range clusters {
		s.Clusters = append(s.Clusters, workv1alpha2.TargetCluster{Name: c})
	}
	return s
}

func TestSummarize(t *testing.T) {
	leaving := workIn("m2", "True", "Healthy", "{}")
	now := metav1.Now()
	leaving.DeletionTimestamp = &now
	other := workIn("m1", "True", "", "")
	other.Spec.Workload.Manifests[0].RawExtension = *raw(strings.Replace(deploymentManifest, `"a"`, `"b"`, 1))
	forged := workIn("m1", "True", "Unhealthy", `{"x":"forged"}`)
	forged.Name = "forged"
	shouting := workIn("m1", "False", "", "")
	shouting.Status.Conditions[0].Message = "\x1b[2J" + strings.Repeat("x", 30<<10)
	item := func(cluster string, applied bool, health workv1alpha2.ResourceHealth) workv1alpha2.AggregatedStatusItem {
		return workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: applied, Health: health}
	}
	with := func(i workv1alpha2.AggregatedStatusItem, status, message string) workv1alpha2.AggregatedStatusItem {
		if status != "" {
			i.Status = raw(status)
		}
		i.AppliedMessage = message
		return i
	}
	type items = []workv1alpha2.AggregatedStatusItem
	for _, tc := range []struct {
		name     string
		spec     *workv1alpha2.ResourceBindingSpec
		works    []workv1alpha1.Work
		items    items
		full     bool
		progress progress
	}{
		{"nothing is wanted, nothing is there", spec(), nil, nil, false, stable},
		{"nothing is there yet", spec("m1"), nil, nil, false, unreported},
		{
			"no work was handled yet", spec("m1"), []workv1alpha1.Work{workIn("m1", "", "", "")},
			items{item("m1", false, "Unknown")}, false, unreported,
		},
		{
			"all is well, sorted by cluster", spec("m2", "m1"),
			[]workv1alpha1.Work{workIn("m2", "True", "Healthy", `{"x":2}`), workIn("m1", "True", "Healthy", `{"x":1}`)},
			items{with(item("m1", true, "Healthy"), `{"x":1}`, ""), with(item("m2", true, "Healthy"), `{"x":2}`, "")}, true, stable,
		},
		{
			"one cluster is not healthy yet", spec("m1", "m2"),
			[]workv1alpha1.Work{workIn("m1", "True", "Healthy", "{}"), workIn("m2", "True", "Unhealthy", "{}")},
			items{with(item("m1", true, "Healthy"), "{}", ""), with(item("m2", true, "Unhealthy"), "{}", "")}, true, unstable,
		},
		{
			"one cluster has no status yet", spec("m1"), []workv1alpha1.Work{workIn("m1", "True", "", "")},
			items{item("m1", true, "Unknown")}, true, unstable,
		},
		{
			"one cluster failed", spec("m1", "m2"),
			[]workv1alpha1.Work{workIn("m1", "True", "Healthy", "{}"), workIn("m2", "False", "Healthy", "{}")},
			items{with(item("m1", true, "Healthy"), "{}", ""), with(item("m2", false, "Unknown"), "", "message of m2")}, false, failed,
		},
		{
			"one cluster has no work yet", spec("m1", "m2"), []workv1alpha1.Work{workIn("m1", "True", "Healthy", "{}")},
			items{with(item("m1", true, "Healthy"), "{}", "")}, false, pending,
		},
		{
			"a work that is being deleted does not count", spec("m1"),
			[]workv1alpha1.Work{workIn("m1", "True", "Healthy", "{}"), leaving},
			items{with(item("m1", true, "Healthy"), "{}", "")}, true, stable,
		},
		{
			"a work in another cluster than expected does not count", spec("m1"), []workv1alpha1.Work{workIn("m2", "True", "Healthy", "{}")},
			nil, false, unreported,
		},
		{
			"a work of another name does not count", spec("m1"), []workv1alpha1.Work{forged, workIn("m1", "True", "Healthy", "{}")},
			items{with(item("m1", true, "Healthy"), "{}", "")}, true, stable,
		},
		{
			"a status over 64 KiB is left out", spec("m1", "m2"),
			[]workv1alpha1.Work{workIn("m1", "True", "Healthy", `{"x":"`+strings.Repeat("x", 64<<10)+`"}`), workIn("m2", "True", "Healthy", "{}")},
			items{
				with(item("m1", true, "Healthy"), "", "the status in cluster m1 is left out: it has 65544 bytes, more than 65536"),
				with(item("m2", true, "Healthy"), "{}", ""),
			}, true, stable,
		},
		{
			"a long message is cut, and its control characters go", spec("m1"), []workv1alpha1.Work{shouting},
			items{with(item("m1", false, "Unknown"), "", "[2J"+strings.Repeat("x", 4<<10-6)+"...")}, false, failed,
		},
		{
			"a work with another object is no reason to fail", spec("m1"), []workv1alpha1.Work{other},
			items{with(item("m1", false, "Unknown"), "", "work karmada-es-m1/"+canonicalWork+" does not carry Deployment default/a")}, false, unstable,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := summarize(tc.spec, tc.works)
			if diff := cmp.Diff(tc.items, got.items); diff != "" {
				t.Error(diff)
			}
			if got.fullyApplied != tc.full || got.progress != tc.progress {
				t.Errorf("fully applied %v, progress %d", got.fullyApplied, got.progress)
			}
		})
	}
}

func TestExpected(t *testing.T) {
	s := spec("m1", "m2")
	s.RequiredBy = []workv1alpha2.BindingSnapshot{{Clusters: []workv1alpha2.TargetCluster{{Name: "m2"}, {Name: "m3"}}}}
	s.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{
		{FromCluster: "m4", PurgeMode: policyv1alpha1.PurgeModeGracefully},
		{FromCluster: "m5", PurgeMode: policyv1alpha1.PurgeModeDirectly},
	}
	if diff := cmp.Diff([]string{"m1", "m2", "m3", "m4"}, sets.List(expected(s))); diff != "" {
		t.Error(diff)
	}
}

func TestSameItems_KeepsAnEquivalentStatus(t *testing.T) {
	before := []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Status: raw(`{"a":1,"b":2}`)}}
	now := []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Status: raw(`{"b":2,"a":1}`)}}
	if !sameItems(before, now) {
		t.Error("not the same")
	}
	now[0].Status = raw(`{"b":3}`)
	if sameItems(before, now) || sameItems(before, nil) {
		t.Error("the same")
	}
}

func TestPolicy_Delay(t *testing.T) {
	p := Policy{Failure: 100, Pending: 2000, Moving: 5000, Interval: 300}
	at := func(n int64) time.Time { return time.Unix(100, n) }
	for _, tc := range []struct {
		name                string
		summary             summary
		now, dirty, written time.Time
		limit               time.Duration
		want                time.Duration
	}{
		{"a stable status is written without delay", summary{progress: stable}, at(0), at(0), time.Time{}, 1000, 0},
		{"but not more often than the interval", summary{progress: stable}, at(100), at(100), at(0), 0, 200},
		{"a failure must last", summary{progress: failed}, at(10), at(0), time.Time{}, 0, 90},
		{"objects get time to become healthy", summary{progress: unstable}, at(400), at(0), time.Time{}, 1000, 600},
		{"clusters that have not reported get more", summary{progress: pending}, at(0), at(0), time.Time{}, 1000, 3000},
		{"other clusters get time to take over", summary{progress: pending, moving: true}, at(0), at(0), time.Time{}, 1000, 6000},
		{"unless they fail", summary{progress: failed, moving: true}, at(0), at(0), time.Time{}, 1000, 100},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p.Stable = controllers.Debounce{Stable: tc.limit}
			if got := p.delay(p.debouncer(), types.NamespacedName{}, &tc.summary, tc.now, times{dirty: tc.dirty, written: tc.written}); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestPolicy_DelayOfWideBindings(t *testing.T) {
	p := Policy{Failure: 100, Pending: 2000, Interval: 300, Wide: Wide{Targets: 2, PerTarget: 100, Max: 1000, Quiet: 10, QuietMax: 50}}
	at := func(n int64) time.Time { return time.Unix(100, n) }
	for _, tc := range []struct {
		name     string
		progress progress
		targets  int
		times    times
		limit    time.Duration
		want     time.Time
	}{
		{"few targets", stable, 2, times{dirty: at(100), changed: at(250), written: at(0)}, 0, at(300)},
		{"the first status", stable, 6, times{dirty: at(100), changed: at(100)}, 0, at(100)},
		{"the first change in a while", stable, 6, times{dirty: at(5000), changed: at(5000), written: at(0)}, 0, at(5000)},
		{"each target delays", unstable, 6, times{dirty: at(100), changed: at(650), written: at(0)}, 10, at(700)},
		{"to a limit", unstable, 100, times{dirty: at(100), changed: at(650), written: at(0)}, 10, at(1300)},
		{"unhealthy objects get as much time as with few targets", unstable, 6, times{dirty: at(100), changed: at(650), written: at(0)}, 5000, at(5100)},
		{"a stable status that has stopped to change", stable, 6, times{dirty: at(100), changed: at(400), written: at(0)}, 0, at(440)},
		{"a failure that has stopped to change", failed, 100, times{dirty: at(100), changed: at(400), written: at(0)}, 0, at(450)},
		{"a stable status that changes on", stable, 6, times{dirty: at(100), changed: at(690), written: at(0)}, 0, at(700)},
		{"not before the interval", stable, 6, times{dirty: at(100), changed: at(100), written: at(0)}, 0, at(300)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &summary{progress: tc.progress, items: make([]workv1alpha2.AggregatedStatusItem, tc.targets)}
			p.Stable = controllers.Debounce{Stable: tc.limit}
			if got, want := p.delay(p.debouncer(), types.NamespacedName{}, s, tc.times.dirty, tc.times), tc.want.Sub(tc.times.dirty); got != want {
				t.Errorf("got %d, want %d", got, want)
			}
		})
	}
}

func TestTemplateStatus_IsComparedByMeaning(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after any
		want          []string
	}{
		"fields that differ":              {map[string]any{"a": int64(1), "b": int64(2)}, map[string]any{"a": int64(1), "c": int64(3)}, []string{`{"metadata":{"uid":"u"},"status":{"b":null,"c":3}}`}},
		"no status, an empty one":         {nil, map[string]any{}, nil},
		"numbers of another type":         {map[string]any{"a": int64(1)}, map[string]any{"a": int32(1)}, nil},
		"no status, one that has a field": {nil, map[string]any{"a": "b"}, []string{`{"metadata":{"uid":"u"},"status":{"a":"b"}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				SubResourcePatch: func(_ context.Context, _ client.Client, _ string, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
					data, err := patch.Data(obj)
					got = append(got, string(data))
					return err
				},
			}).Build()
			template := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": "u"}}}
			if tc.before != nil {
				template.Object["status"] = tc.before
			}
			w := newAggregator(&env.Env{Client: c, Live: c, Clock: clock.RealClock{}}, nil, Options{}).writer
			wrote, err := w.Write(t.Context(), template, &status.Written[*templateStatus]{}, (&templateStatus{tc.after}).replace)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil || wrote != (len(tc.want) > 0) {
				t.Error(diff, wrote, err)
			}
		})
	}
}
