package controllers

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

func tenantOf(k types.NamespacedName) string { return k.Namespace }

// Whatever is added and done: no tenant holds more than its share, the workers are not idle while a tenant may have one, each
// tenant that waits and holds less than its share has a turn after at most fairTurn turns of each other one, and no key is lost.
func TestTurns_Properties(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		workers, tenants := 1+random.IntN(12), 1+random.IntN(8)
		turns := NewTurns[types.NamespacedName](workers, 0)
		limit := max(1, workers-max(1, workers/5))
		held, waiting, since := map[string]int{}, map[string]int{}, map[string]int{}
		var busy []string
		added, taken := 0, 0
		take := func() {
			key, tenant, _, ok := turns.Pop()
			may := false
			for name, n := range waiting {
				may = may || n > 0 && held[name] < limit
			}
			if ok != may {
				t.Fatalf("seed %d: a key is handed out: %t, a tenant may have one: %t", seed, ok, may)
			}
			if !ok {
				return
			}
			taken++
			for name, n := range waiting {
				if name == tenant || n == 0 || held[name] >= limit {
					since[name] = 0
				} else if since[name]++; since[name] > fairTurn*(tenants+1) {
					t.Fatalf("seed %d: %s waits for %d turns", seed, name, since[name])
				}
			}
			if tenant != key.Namespace {
				t.Fatalf("seed %d: %v is a key of %q", seed, key, tenant)
			}
			waiting[tenant]--
			held[tenant]++
			if held[tenant] > limit {
				t.Fatalf("seed %d: %s holds %d of %d workers", seed, tenant, held[tenant], workers)
			}
			busy = append(busy, tenant)
		}
		release := func() {
			i := random.IntN(len(busy))
			turns.Release(busy[i])
			held[busy[i]]--
			busy = append(busy[:i], busy[i+1:]...)
		}
		for range 3000 {
			switch action := random.IntN(3); {
			case action == 0:
				tenant := fmt.Sprintf("t%d", random.IntN(tenants))
				added++
				waiting[tenant]++
				turns.Push(types.NamespacedName{Namespace: tenant, Name: fmt.Sprint(added)}, tenant, random.IntN(3)*random.IntN(100))
			case action == 1 && len(busy) < workers:
				take()
			case len(busy) > 0:
				release()
			}
		}
		for turns.Len() > 0 {
			if len(busy) == workers || !turns.Eligible() {
				release()
			} else {
				take()
			}
		}
		if added != taken {
			t.Errorf("seed %d: %d keys added, %d taken", seed, added, taken)
		}
	}
}

func TestTurns_PriorityIsFirstExceptEveryFourthTurn(t *testing.T) {
	turns := NewTurns[string](100, 0)
	turns.Push("low", "b", -100)
	for i := range 10 {
		turns.Push(fmt.Sprintf("high%d", i), "a", 0)
	}
	for i := range 4 {
		if key, _, _, _ := turns.Pop(); (key == "low") != (i == 3) {
			t.Errorf("turn %d: %s", i, key)
		}
	}
}

func TestTurns_ObjectsWithoutNamespaceMayHaveAllWorkers(t *testing.T) {
	turns := NewTurns[string](3, 0)
	for i := range 3 {
		turns.Push(fmt.Sprint(i), "", 0)
		if _, _, _, ok := turns.Pop(); !ok {
			t.Errorf("worker %d is refused", i)
		}
	}
}

func TestTurns_GuestsAreForOtherTenants(t *testing.T) {
	for _, flooding := range []string{"flood", ""} {
		turns := NewTurns[string](3, 3)
		for i := range 10 {
			turns.Push(fmt.Sprint(i), flooding, 0)
		}
		for i := range 3 {
			if _, _, _, ok := turns.Pop(); !ok {
				t.Errorf("%q: worker %d is refused", flooding, i)
			}
		}
		if key, _, _, ok := turns.Pop(); ok {
			t.Errorf("%q: a guest gets %s", flooding, key)
		}
		for i := range 3 {
			turns.Push("x"+fmt.Sprint(i), "other", 0)
			if _, tenant, _, ok := turns.Pop(); !ok || tenant != "other" {
				t.Errorf("%q: other tenant's request %d got %q, %t", flooding, i, tenant, ok)
			}
		}
	}
}

// However many long requests wait, in however many namespaces, and however workers end: a short request is handed out at once,
// workers beyond the short ones are not idle, and all long ones are handed out in the end.
func TestTurns_ShortRequestsPassLongOnes(t *testing.T) {
	for _, guests := range []int{0, 5} {
		turns := NewTurns[string](5, guests)
		limit := turns.limit
		const long = 20
		for i := range long {
			turns.Push(fmt.Sprint("long", i), Bulk(fmt.Sprint("n", i%3)), 0)
		}
		var held []string
		for taken := 0; taken < long; {
			_, tenant, _, ok := turns.Pop()
			if full := len(held) == limit; ok == full {
				t.Fatalf("%d long requests have workers, another one gets one: %t", len(held), ok)
			}
			if ok {
				held = append(held, tenant)
				taken++
				continue
			}
			turns.Push("short", "n1", 0)
			if key, tenant, _, ok := turns.Pop(); !ok || key != "short" {
				t.Fatalf("with %d long requests at work a short one waits", len(held))
			} else {
				turns.Release(tenant)
			}
			turns.Release(held[0])
			held = held[1:]
		}
		for _, tenant := range held {
			turns.Release(tenant)
		}
		if turns.Len() != 0 || turns.bulk != 0 || len(turns.tenants) != 0 {
			t.Errorf("%d keys, %d workers and %d tenants are left", turns.Len(), turns.bulk, len(turns.tenants))
		}
	}
}

// testQueue is a queue of keys whose tenant is the namespace.
func testQueue(t *testing.T, name string, workers int, c clock.WithTicker) *Queue[types.NamespacedName] {
	t.Helper()
	q := NewQueue(QueueOptions[types.NamespacedName]{Name: name, Workers: workers, Tenant: tenantOf, Clock: c})
	t.Cleanup(q.ShutDown)
	return q
}

func in(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func wantKey(t *testing.T, q *Queue[types.NamespacedName], want types.NamespacedName, wantPriority int) {
	t.Helper()
	if q.Len() == 0 {
		t.Fatalf("nothing is ready, want %v", want)
	}
	if key, priority, shutdown := q.GetWithPriority(); key != want || priority != wantPriority || shutdown {
		t.Fatalf("got %v with priority %d, shut down %t; want %v with %d", key, priority, shutdown, want, wantPriority)
	}
}

func TestQueue_OneTenantLeavesAWorkerToOthers(t *testing.T) {
	q := testQueue(t, "", 3, nil)
	for i := range 1000 {
		q.Add(in("flood", fmt.Sprint(i)))
	}
	wantKey(t, q, in("flood", "0"), 0)
	wantKey(t, q, in("flood", "1"), 0)
	got := make(chan types.NamespacedName)
	go func() {
		key, _ := q.Get()
		got <- key
	}()
	q.Add(in("other", "x"))
	if key := <-got; key != in("other", "x") {
		t.Errorf("the third worker got %v", key)
	}
	q.Done(in("flood", "0"))
	wantKey(t, q, in("flood", "2"), 0)
}

func TestQueue_AddedWhileWorkedOnComesAgain(t *testing.T) {
	q := testQueue(t, "", 1, nil)
	q.Add(in("a", "x"))
	wantKey(t, q, in("a", "x"), 0)
	q.AddWithOpts(priorityqueue.AddOpts{Priority: new(3)}, in("a", "x"))
	q.Add(in("a", "x"))
	if q.Len() != 1 || q.ready.Len() != 0 {
		t.Errorf("%d keys, %d of them to hand out", q.Len(), q.ready.Len())
	}
	q.Done(in("a", "x"))
	wantKey(t, q, in("a", "x"), 3)
	q.Done(in("a", "x"))
	if q.Len() != 0 {
		t.Errorf("%d keys are left", q.Len())
	}
}

func TestQueue_PriorityAndDelayOfAKeyThatIsAddedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		first, second priorityqueue.AddOpts
		priority      int
		delayed       bool
	}{
		"the higher priority counts":           {priorityqueue.AddOpts{Priority: new(2)}, priorityqueue.AddOpts{Priority: new(5)}, 5, false},
		"a lower priority does not":            {priorityqueue.AddOpts{Priority: new(5)}, priorityqueue.AddOpts{Priority: new(2)}, 5, false},
		"what is ready stays ready":            {priorityqueue.AddOpts{}, priorityqueue.AddOpts{After: time.Hour, Priority: new(1)}, 1, false},
		"what waits becomes ready":             {priorityqueue.AddOpts{After: time.Hour, Priority: new(1)}, priorityqueue.AddOpts{}, 1, false},
		"the earlier of two times counts":      {priorityqueue.AddOpts{After: time.Hour}, priorityqueue.AddOpts{After: time.Minute, Priority: new(1)}, 1, true},
		"the earlier counts if it comes first": {priorityqueue.AddOpts{After: time.Minute}, priorityqueue.AddOpts{After: time.Hour, Priority: new(1)}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := clocktesting.NewFakeClock(time.Unix(1000, 0))
			q := testQueue(t, "", 1, c)
			q.AddWithOpts(tc.first, in("a", "x"))
			q.AddWithOpts(tc.second, in("a", "x"))
			if ready := q.Len() == 1; ready == tc.delayed {
				t.Fatalf("ready %t, want %t", ready, !tc.delayed)
			}
			if tc.delayed {
				c.Step(time.Minute)
			}
			if key, priority, _ := q.GetWithPriority(); key != in("a", "x") || priority != tc.priority {
				t.Errorf("got %v with priority %d, want %d", key, priority, tc.priority)
			}
			q.Done(in("a", "x"))
			if q.Len() != 0 || q.later.Len() != 0 {
				t.Errorf("%d ready and %d waiting keys are left", q.Len(), q.later.Len())
			}
		})
	}
}

func TestQueue_RateLimit(t *testing.T) {
	c := clocktesting.NewFakeClock(time.Unix(1000, 0))
	q := testQueue(t, "", 1, c)
	q.AddRateLimited(in("a", "x"))
	if q.Len() != 0 || q.NumRequeues(in("a", "x")) != 1 {
		t.Fatalf("%d keys are ready, %d retries", q.Len(), q.NumRequeues(in("a", "x")))
	}
	c.Step(defaultBaseDelay)
	if key, _ := q.Get(); key != in("a", "x") {
		t.Errorf("got %v", key)
	}
	q.Forget(in("a", "x"))
	if q.NumRequeues(in("a", "x")) != 0 {
		t.Error("the failures are not forgotten")
	}
}

func TestQueue_ShutDown(t *testing.T) {
	q := testQueue(t, "", 1, nil)
	done := make(chan bool)
	go func() {
		_, shutdown := q.Get()
		done <- shutdown
	}()
	q.ShutDown()
	if !<-done {
		t.Error("a worker that waits is not told")
	}
	q.Add(in("a", "x"))
	if _, shutdown := q.Get(); !shutdown || !q.ShuttingDown() || q.Len() != 0 {
		t.Errorf("shut down: %t, %t; %d keys", shutdown, q.ShuttingDown(), q.Len())
	}
	q.ShutDownWithDrain() // a second time
}

// The metrics are those that controller-runtime registers: their names, help and labels.
func TestQueue_Metrics(t *testing.T) {
	c := clocktesting.NewFakeClock(time.Unix(1000, 0))
	q := testQueue(t, t.Name(), 1, c)
	q.AddWithOpts(priorityqueue.AddOpts{Priority: new(7)}, in("a", "x"))
	q.AddAfter(in("a", "y"), time.Hour)
	served := func() map[string]float64 {
		families, err := ctrlmetrics.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]float64{}
		for _, f := range families {
			for _, m := range f.Metric {
				for _, l := range m.Label {
					if l.GetName() == "name" && l.GetValue() == t.Name() {
						out[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
					}
				}
			}
		}
		return out
	}
	check := func(want map[string]float64) {
		t.Helper()
		got := served()
		for name, value := range want {
			if got["workqueue_"+name] != value {
				t.Errorf("%s is %v, want %v", name, got["workqueue_"+name], value)
			}
		}
	}
	check(map[string]float64{"adds_total": 1, "depth": 1, "retries_total": 1, "queue_duration_seconds": 0})
	wantKey(t, q, in("a", "x"), 7)
	c.Step(time.Second)
	q.metrics.Refresh()
	check(map[string]float64{"depth": 0, "queue_duration_seconds": 1, "work_duration_seconds": 0, "unfinished_work_seconds": 1, "longest_running_processor_seconds": 1})
	q.Done(in("a", "x"))
	q.metrics.Refresh()
	check(map[string]float64{"work_duration_seconds": 1, "unfinished_work_seconds": 0})
}

// BenchmarkQueue_OtherTenant measures how long a key of one tenant waits, alone and while another one adds without end, each
// key takes a millisecond. It reports the 99th percentiles and their ratio.
func BenchmarkQueue_OtherTenant(b *testing.B) {
	for b.Loop() {
		alone, flooded := waits(b, 0), waits(b, 20_000)
		b.ReportMetric(float64(alone.Microseconds())/1e3, "alone-p99-ms")
		b.ReportMetric(float64(flooded.Microseconds())/1e3, "flooded-p99-ms")
		b.ReportMetric(float64(flooded)/float64(alone), "ratio")
	}
}

// waits returns the 99th percentile of the times from adding a key until it is handled.
func waits(b *testing.B, flood int) time.Duration {
	b.Helper()
	q := NewQueue(QueueOptions[types.NamespacedName]{Workers: 5, Tenant: tenantOf})
	defer q.ShutDown()
	handled := make(chan struct{})
	for range 5 {
		go func() {
			for {
				key, shutdown := q.Get()
				if shutdown {
					return
				}
				time.Sleep(time.Millisecond)
				q.Done(key)
				if key.Namespace == "flood" {
					q.Add(key)
				} else {
					handled <- struct{}{}
				}
			}
		}()
	}
	for i := range flood {
		q.Add(in("flood", fmt.Sprint(i)))
	}
	times := make([]time.Duration, 500)
	for i := range times {
		begin := time.Now()
		q.Add(in("other", fmt.Sprint(i)))
		<-handled
		times[i] = time.Since(begin)
	}
	slices.Sort(times)
	return times[len(times)*99/100]
}
