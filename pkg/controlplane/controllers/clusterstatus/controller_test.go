package clusterstatus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/karmada-toolkit/karmada/internal/status"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
	"github.com/karmada-toolkit/karmada/pkg/member/lifetime"
)

// fakeMember answers the requests of a collector.
type fakeMember struct {
	mu         sync.Mutex
	code       map[string]int
	hang       bool   // /readyz is not answered
	apis       string // the response of /apis
	aggregated bool
	requests   map[string]int
}

const (
	coreGroups = `{"items":[{"metadata":{"name":""},"versions":[{"version":"v1","resources":[
	  {"resource":"pods","responseKind":{"kind":"Pod"}},{"resource":"configmaps","responseKind":{"kind":"ConfigMap"}}]}]}]}`
	appsGroups = `{"items":[{"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[{"resource":"deployments","responseKind":{"kind":"Deployment"}}]}]}]}`
	staleGroup = `{"items":[{"metadata":{"name":"metrics.k8s.io"},"versions":[{"version":"v1beta1","freshness":"Stale"}]}]}`
)

func (m *fakeMember) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests[r.URL.Path]++
	if m.hang && r.URL.Path == "/readyz" {
		<-r.Context().Done()
		return
	}
	if code := m.code[r.URL.Path]; code != 0 {
		w.WriteHeader(code)
		return
	}
	body := map[string]string{
		"/readyz": "ok", "/healthz": "ok", "/version": `{"gitVersion":"v1.36.3"}`, "/api": coreGroups, "/apis": m.apis,
	}[r.URL.Path]
	if strings.HasPrefix(r.URL.Path, "/api") && m.aggregated {
		tag := strconv.Quote(strconv.Itoa(len(body)))
		w.Header().Set("Etag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	}
	if strings.HasPrefix(r.URL.Path, "/api") && !m.aggregated {
		w.Header().Set("Content-Type", "application/json")
		body = map[string]string{
			"/api":    `{"kind":"APIVersions","versions":["v1"]}`,
			"/apis":   `{"kind":"APIGroupList","groups":[]}`,
			"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod"},{"name":"pods/log","kind":"Pod"}]}`,
		}[r.URL.Path]
	}
	_, _ = w.Write([]byte(body))
}

func (m *fakeMember) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

type bench struct {
	*memory.Env
	member       *fakeMember
	server       *httptest.Server
	l            *collector
	opened       error
	open         *access.Member
	patches      int
	conflicts    int
	forbidden    bool
	healthyCalls int
	// slow is how long a probe takes.
	slow time.Duration
}

// Member implements Members.
func (b *bench) Member(context.Context, *clusterv1alpha1.Cluster) (*access.Member, error) {
	b.Clock.Step(b.slow)
	return b.open, b.opened
}

func newBench(t *testing.T, change ...func(*clusterv1alpha1.Cluster)) *bench {
	t.Helper()
	b := &bench{}
	b.member = &fakeMember{code: map[string]int{}, requests: map[string]int{}, apis: appsGroups, aggregated: true}
	b.server = httptest.NewServer(b.member)
	t.Cleanup(b.server.Close)
	var err error
	if b.open, err = access.NewMember("m1", &rest.Config{Host: b.server.URL, QPS: -1}, nil); err != nil {
		t.Fatal(err)
	}
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m1", UID: "u", Finalizers: []string{clusterv1alpha1.ClusterControllerFinalizer}},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push, SecretRef: &clusterv1alpha1.LocalSecretReference{}},
	}
	for _, f := range change {
		f(cluster)
	}
	b.Env = memory.New(t, cluster)
	b.Clock.SetTime(time.Unix(1000, 0))
	b.Before = b.patch
	c := newController(b.Client, b.Client, Deps{
		Members: b, Clock: b.Clock, Metrics: prometheus.NewRegistry(),
		Healthy: func(*clusterv1alpha1.Cluster) { b.healthyCalls++ },
	})
	b.l = newCollector(c.shared, cluster)
	return b
}

func (b *bench) patch(write string) error {
	resource := schema.GroupResource{Resource: "clusters"}
	if b.conflicts > 0 {
		b.conflicts--
		return apierrors.NewConflict(resource, "m1", errors.New("changed"))
	}
	if b.forbidden && strings.HasPrefix(write, "status ") {
		return apierrors.NewForbidden(resource, "m1", errors.New("no"))
	}
	b.patches++
	return nil
}

func (b *bench) get() *clusterv1alpha1.Cluster {
	b.Helper()
	return memory.Get[*clusterv1alpha1.Cluster](b.Env, memory.Key("", "m1"))
}

func (b *bench) ready() string {
	b.Helper()
	c := meta.FindStatusCondition(b.get().Status.Conditions, "Ready")
	if c == nil {
		return "absent"
	}
	return string(c.Status) + " " + c.Reason + " " + c.Message
}

const healthy = "True ClusterReady cluster is healthy and ready to accept workloads"

func TestCollector_HealthyCluster(t *testing.T) {
	b := newBench(t)
	if next := b.l.reconcile(t.Context()); next != 5*time.Second {
		t.Errorf("next time in %s", next)
	}
	c := b.get()
	if b.ready() != healthy || c.Status.KubernetesVersion != "v1.36.3" || !meta.IsStatusConditionTrue(c.Status.Conditions, "CompleteAPIEnablements") || b.healthyCalls != 1 {
		t.Errorf("status: %+v", c.Status)
	}
	want := []clusterv1alpha1.APIEnablement{
		{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
		{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "configmaps", Kind: "ConfigMap"}, {Name: "pods", Kind: "Pod"}}},
	}
	if diff := cmp.Diff(want, c.Status.APIEnablements); diff != "" {
		t.Error(diff)
	}
	if b.patches != 1 {
		t.Errorf("%d writes: it must not be Ready without its APIs", b.patches)
	}
	for _, step := range []struct {
		after time.Duration
		apis  string
		want  map[string]int // requests
	}{
		{10 * time.Second, appsGroups, map[string]int{"/readyz": 2, "/apis": 2, "/api": 1, "/version": 1}},
		{50 * time.Second, appsGroups, map[string]int{"/readyz": 3, "/apis": 3, "/api": 2, "/version": 2}},
		{10 * time.Second, appsGroups + " ", map[string]int{"/readyz": 4, "/apis": 4, "/api": 3, "/version": 3}}, // perhaps it was upgraded
	} {
		b.Clock.Step(step.after)
		b.member.set(func() { b.member.apis = step.apis })
		b.l.reconcile(t.Context())
		got := map[string]int{}
		b.member.set(func() {
			for path := range step.want {
				got[path] = b.member.requests[path]
			}
		})
		if diff := cmp.Diff(step.want, got); diff != "" || b.patches != 1 {
			t.Errorf("%d writes, requests %s", b.patches, diff)
		}
	}
}

func TestCollector_EachProbeIsPublished(t *testing.T) {
	b := newBench(t)
	var got []string
	b.l.deps.Probed = func(cluster *clusterv1alpha1.Cluster, healthy bool, at time.Time) {
		got = append(got, fmt.Sprintf("%s %t %d", cluster.Name, healthy, at.Unix()))
	}
	b.l.reconcile(t.Context())
	b.Clock.Step(time.Second)
	b.member.set(func() { b.member.code["/readyz"] = 500 })
	b.l.reconcile(t.Context()) // it is still Ready
	b.Clock.Step(time.Second)
	b.opened = errors.New("no credentials")
	b.l.reconcile(t.Context())
	if diff := cmp.Diff([]string{"m1 true 1000", "m1 false 1001", "m1 false 1002"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestCollector_BecomesReadyWithoutTheListOfPods(t *testing.T) {
	b := newBench(t)
	b.l.deps.Resources = true
	defer func() { b.l.sources.resources.stop() }()
	b.member.code["/api/v1/nodes"], b.member.code["/api/v1/pods"] = 500, 500
	if next := b.l.reconcile(t.Context()); next != shortInterval || b.ready() != "absent" || b.patches != 0 {
		t.Errorf("next time in %s, %s, %d writes", next, b.ready(), b.patches)
	}
	b.Clock.Step(resourcesTimeout)
	b.l.reconcile(t.Context())
	if c := b.get(); b.ready() != healthy || len(c.Status.APIEnablements) != 2 || b.patches != 1 {
		t.Errorf("%s, %v, %d writes", b.ready(), c.Status.APIEnablements, b.patches)
	}
}

func TestCollector_ReadyAgainKeepsItsAPIsWhileDiscoveryIsSlow(t *testing.T) {
	b := newBench(t)
	b.l.reconcile(t.Context())
	b.l.written = status.Written[*clusterv1alpha1.ClusterStatus]{}
	c := b.get()
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: "Ready", Status: "False", Reason: "x"})
	b.Must(b.Stored.Status().Update(t.Context(), c))
	b.l.deps.Timeout = time.Nanosecond
	b.l.reconcile(t.Context())
	if c := b.get(); b.ready() != healthy || len(c.Status.APIEnablements) != 2 {
		t.Errorf("%s, %v", b.ready(), c.Status.APIEnablements)
	}
}

func TestCollector_WaitsForItsFinalizer(t *testing.T) {
	b := newBench(t, func(c *clusterv1alpha1.Cluster) { c.Finalizers = nil })
	if next := b.l.reconcile(t.Context()); next != transitionInterval || b.ready() != "absent" {
		t.Errorf("next time in %s, %s", next, b.ready())
	}
}

func TestCollector_UnhealthyClusters(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*bench)
		want   string
	}{
		{"it cannot be opened", func(b *bench) { b.opened = errors.New("no secret") }, "False StatusCollectionFailed failed to create a ClusterClient: no secret"},
		{"it is not reachable", func(b *bench) { b.server.Close() }, "False ClusterNotReachable cluster is not reachable"},
		{"it is broken", func(b *bench) { b.member.code["/readyz"] = 500 }, "False ClusterNotReachable cluster is not reachable: its health endpoint answered 500"},
		{"it rejects the credentials", func(b *bench) { b.member.code["/readyz"] = 401 }, `False ClusterNotReachable cluster is not reachable: the cluster refuses the credentials of the control plane, or has another certificate authority: renew them with "karmadactl join m1 --cluster-kubeconfig=FILE"`},
		{"it is not healthy", func(b *bench) { b.member.code["/readyz"] = 204 }, "False ClusterNotReady cluster is reachable but health endpoint responded without ok"},
		{"it has /healthz only and is not healthy", func(b *bench) { b.member.code["/readyz"], b.member.code["/healthz"] = 404, 404 }, "False ClusterNotReachable cluster is not reachable: its health endpoint answered 404"},
		{"it has /healthz only and is healthy", func(b *bench) { b.member.code["/readyz"] = 404 }, healthy},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t)
			tc.change(b)
			if next := b.l.reconcile(t.Context()); tc.want != healthy && (next != shortInterval || b.ready() != "absent") {
				t.Errorf("%s, next time in %s", b.ready(), next)
			}
			b.Clock.Step(initialGrace)
			next := b.l.reconcile(t.Context())
			if got := b.ready(); got != tc.want || (tc.want != healthy && next != unhealthyInterval) {
				t.Errorf("%s, next time in %s", got, next)
			}
		})
	}
}

func TestCollector_FailureAndRecovery(t *testing.T) {
	b := newBench(t)
	b.l.reconcile(t.Context())
	b.member.set(func() { b.member.code["/readyz"] = 500 })
	for i := range 30 {
		if next := b.l.reconcile(t.Context()); next != transitionInterval || b.ready() != healthy {
			t.Fatalf("after %ds: next time in %s, %s", i, next, b.ready())
		}
		b.Clock.Step(transitionInterval)
	}
	if b.l.reconcile(t.Context()); b.ready() == healthy {
		t.Error("still ready")
	}
	b.member.set(func() { b.member.code["/readyz"] = 0 })
	b.l.reconcile(t.Context())
	b.Clock.Step(30 * time.Second)
	if b.l.reconcile(t.Context()); b.ready() != healthy {
		t.Errorf("not back: %s", b.ready())
	}
}

func TestCollector_FailsSinceTheProbeBegan(t *testing.T) {
	b := newBench(t)
	b.l.reconcile(t.Context())
	b.server.Close()
	b.slow = 20 * time.Second
	if next := b.l.reconcile(t.Context()); next != transitionInterval || b.ready() != healthy {
		t.Fatalf("after 20s: next time in %s, %s", next, b.ready())
	}
	if b.l.reconcile(t.Context()); b.ready() == healthy {
		t.Error("still ready after 40s")
	}
}

func TestDeps_AProbeIsNotLongerThanTheFailureThreshold(t *testing.T) {
	for failure, want := range map[time.Duration]time.Duration{
		0: 3 * time.Second, time.Millisecond: time.Second, 2 * time.Second: 2 * time.Second, 10 * time.Second: 3 * time.Second,
	} {
		d := Deps{FailureThreshold: failure}
		if d.complete(); d.ProbeTimeout != want {
			t.Errorf("threshold %s: %s, want %s", failure, d.ProbeTimeout, want)
		}
	}
}

func TestCollector_Discovery(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*fakeMember)
		want   string
		groups int
	}{
		{"a group is not available", func(m *fakeMember) { m.apis = staleGroup }, "Partial might collect partial APIEnablements(1) from the cluster", 1},
		{"no group is available", func(m *fakeMember) { m.code["/api"], m.code["/apis"] = 500, 500 }, "Empty collected empty APIEnablements from the cluster", 0},
		{"without aggregated discovery each group is read", func(m *fakeMember) { m.aggregated = false }, "Complete collected complete APIEnablements from the cluster", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t)
			tc.change(b.member)
			b.l.reconcile(t.Context())
			got := b.get().Status
			c := meta.FindStatusCondition(got.Conditions, "CompleteAPIEnablements")
			if c == nil || c.Reason+" "+c.Message != tc.want || len(got.APIEnablements) != tc.groups {
				t.Errorf("got %v, %v", c, got.APIEnablements)
			}
		})
	}
}

func TestCollector_RetriesConflicts(t *testing.T) {
	b := newBench(t)
	b.conflicts = 2
	b.l.reconcile(t.Context())
	if b.ready() != healthy {
		t.Error(b.ready())
	}
}

func TestCollector_UpdatesWherePatchIsForbidden(t *testing.T) {
	b := newBench(t)
	b.forbidden = true
	b.l.reconcile(t.Context())
	if b.ready() != healthy || b.get().Status.KubernetesVersion == "" {
		t.Error(b.ready())
	}
}

func TestCollector_KeepsRemedyActions(t *testing.T) {
	b := newBench(t, func(c *clusterv1alpha1.Cluster) { c.Status.RemedyActions = []string{"TrafficControl"} })
	b.l.reconcile(t.Context())
	if got := b.get().Status.RemedyActions; len(got) != 1 {
		t.Errorf("got %v", got)
	}
}

func TestResources_AreSummed(t *testing.T) {
	server := accesstest.New(t)
	put := func(path, text string) {
		obj := map[string]any{}
		if err := json.Unmarshal([]byte(text), &obj); err != nil {
			t.Fatal(err)
		}
		server.Put(path, unstructuredOf(obj))
	}
	put("/api/v1/nodes/n", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"status":{"allocatable":{"cpu":"2","pods":"10"},"conditions":[{"type":"Ready","status":"True"}]}}`)
	put("/api/v1/namespaces/d/pods/p", `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"d","name":"p"},"spec":{"nodeName":"n","containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}}`)
	member, err := access.NewMember("m1", server.Config(), nil)
	if err != nil {
		t.Fatal(err)
	}
	changed := make(chan struct{}, 10)
	r := newResources(t.Context(), member, func() { changed <- struct{}{} })
	defer r.stop()
	<-changed
	<-changed
	nodes, sum, known := r.summary(models(t))
	if !known || nodes.ReadyNum != 1 || sum.Allocated.Cpu().String() != "1" || sum.AllocatableModelings[0].Count != 1 {
		t.Errorf("got %v %v %v", nodes, sum, known)
	}
	if _, _, known := (*resources)(nil).summary(nil); known {
		t.Error("no resources have a summary")
	}
}

func TestController_HasACollectorPerCluster(t *testing.T) {
	b := newBench(t)
	c := &controller{shared: b.l.shared, collectors: lifetime.New(b.l.client, (*collector).stop)}
	ctx, cancel := context.WithCancel(t.Context())
	c.changed(ctx, nil, b.get())
	accesstest.Eventually(t, func() error {
		if got := b.ready(); got != healthy {
			return errors.New(got)
		}
		return nil
	})
	if len(c.collectors.All()) != 1 {
		t.Errorf("%d collectors", len(c.collectors.All()))
	}
	old := b.get()
	pull := old.DeepCopy()
	pull.Spec.SyncMode = clusterv1alpha1.Pull
	c.changed(ctx, old, pull)
	if len(c.collectors.All()) != 0 {
		t.Errorf("%d collectors", len(c.collectors.All()))
	}
	cancel()
	c.collectors.End()
	c.metrics.forget("m1")
}

func unstructuredOf(obj map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: obj}
}

func TestEnablements_AreNotComparedAgainUntilTheyChange(t *testing.T) {
	b := newBench(t)
	e := &enablements{}
	get := func() []clusterv1alpha1.APIEnablement {
		t.Helper()
		list, err := e.get(t.Context(), b.open, b.Clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	first := get()
	if second := get(); &first[0] != &second[0] {
		t.Error("APIs that did not change are another list")
	}
	stored := (&clusterv1alpha1.ClusterStatus{APIEnablements: first}).DeepCopy().APIEnablements
	for range 2 {
		if kept := e.keep(stored, get()); &kept[0] != &stored[0] {
			t.Error("the stored list is replaced by an equal one")
		}
	}
	stored[0].GroupVersion = "other/v1"
	changed := (&clusterv1alpha1.ClusterStatus{APIEnablements: stored}).DeepCopy().APIEnablements
	if kept := e.keep(changed, get()); kept[0].GroupVersion == "other/v1" {
		t.Error("a stored list with other APIs is kept")
	}
	b.member.set(func() { b.member.apis = `{"items":[]}` })
	if now := get(); len(now) != 1 || len(e.keep(first, now)) != 1 {
		t.Errorf("got %v after the APIs changed", now)
	}
}

func TestCollector_ATimeoutOfADelayedProcessDoesNotCount(t *testing.T) {
	b := newBench(t)
	d := &b.l.delays
	b.l.deps.ProbeTimeout = 50 * time.Millisecond // of real time
	b.l.reconcile(t.Context())
	if b.ready() != healthy {
		t.Fatal(b.ready())
	}
	var published []bool
	b.l.deps.Probed = func(_ *clusterv1alpha1.Cluster, healthy bool, _ time.Time) { published = append(published, healthy) }
	b.member.set(func() { b.member.hang = true })
	b.slow = 40 * time.Second // the process is stopped that long during each probe
	d.measure()
	for range 3 {
		if next := b.l.reconcile(t.Context()); next != shortInterval || b.ready() != healthy || len(published) > 0 {
			t.Fatalf("next time in %s, %s, published %v", next, b.ready(), published)
		}
		d.measure()
	}
	b.slow = 0
	for range 2 { // in time: the cluster fails
		b.l.reconcile(t.Context())
		for range 350 {
			b.Clock.Step(delayInterval)
			d.measure()
		}
	}
	if b.l.reconcile(t.Context()); b.ready() == healthy || len(published) == 0 {
		t.Errorf("a cluster that does not answer is %s, published %v", b.ready(), published)
	}
}

func TestDelays(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Unix(1000, 0))
	d := &delays{clock: clk}
	if got := d.since(clk.Now()); got != 0 {
		t.Errorf("%s before the first measurement", got)
	}
	start := clk.Now()
	for _, step := range []time.Duration{0, delayInterval, delayInterval * 3 / 2, delayInterval, 5 * time.Second, delayInterval} {
		clk.Step(step)
		d.measure()
	}
	if got, want := d.since(start), 5*time.Second-delayInterval; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := d.since(clk.Now()); got != 0 {
		t.Errorf("%s since now", got)
	}
	clk.Step(2 * time.Second)
	if got, want := d.since(clk.Now()), 2*time.Second-delayInterval; got != want {
		t.Errorf("%s while a measurement is due, want %s", got, want)
	}
	clk.Step(2 * delaysKept)
	d.measure()
	if len(d.found) != 1 {
		t.Errorf("kept %v", d.found)
	}
}
