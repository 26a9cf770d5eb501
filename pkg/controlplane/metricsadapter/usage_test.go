package metricsadapter

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

func TestUsage_PodsOfAllMembers(t *testing.T) {
	f := newFederation(t, "m1", "m2", "m3")
	f.pod("m1", "default", "web-1", "100m")
	f.pod("m1", "default", "db-1", "5m")
	f.pod("m2", "default", "web-1", "200m")
	f.pod("m2", "other", "web-0", "300m")
	f.pod("m3", "default", "db-2", "1m")
	f.open(t)
	u := &usage{f.requester}
	for _, tc := range []struct {
		name, namespace, selector, field string
		want                             []string
	}{
		{name: "all", want: []string{"default/db-1 m1", "default/db-2 m3", "default/web-1 m1", "default/web-1 m2", "other/web-0 m2"}},
		{name: "a namespace", namespace: "other", want: []string{"other/web-0 m2"}},
		{name: "a selector", namespace: "default", selector: "app=web", want: []string{"default/web-1 m1", "default/web-1 m2"}},
		{name: "a name", field: "metadata.name=db-2", want: []string{"default/db-2 m3"}},
		{name: "nothing", selector: "app=none"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			clear(f.requests)
			s := selection(tc.namespace, tc.selector)
			s.Fields = fields.ParseSelectorOrDie(tc.field)
			ctx, w := warned(t)
			items, err := u.Pods(ctx, s)
			if err != nil || len(*w) > 0 {
				t.Fatal(err, *w)
			}
			var got []string
			clusters := map[string]int{}
			for _, p := range items {
				got = append(got, p.Namespace+"/"+p.Name+" "+clusterOf(p.ObjectMeta))
				clusters[clusterOf(p.ObjectMeta)] = 1
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(clusters, f.requests); diff != "" {
				t.Errorf("only the members with such pods get a request: %s", diff)
			}
		})
	}
}

func TestUsage_OneObject(t *testing.T) {
	f := newFederation(t, "m1", "m2")
	f.pod("m1", "default", "web-1", "100m")
	f.pod("m2", "default", "web-1", "100m")
	f.pod("m2", "default", "web-2", "7m")
	f.pod("m2", "default", "new-1", "7m")
	f.servers["m2"].Remove("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/new-1")
	f.node("m1", "n1", "3")
	f.node("m1", "n", "1")
	f.node("m2", "n", "1")
	f.open(t)
	u := &usage{f.requester}
	pod, err := u.Pod(t.Context(), "default", "web-2")
	if err != nil || clusterOf(pod.ObjectMeta) != "m2" || pod.Containers[0].Usage.Cpu().String() != "7m" {
		t.Errorf("got %v, %v", pod, err)
	}
	_, err = u.Pod(t.Context(), "default", "web-1")
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "the pod(web-1) found in more than one clusters") {
		t.Errorf("got %v", err)
	}
	if _, err := u.Pod(t.Context(), "default", "none"); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `pods "none" not found`) {
		t.Errorf("got %v", err)
	}
	if _, err := u.Pod(t.Context(), "default", "new-1"); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `podmetrics.metrics.k8s.io "default/new-1" not found`) {
		t.Errorf("got %v", err)
	}
	node, err := u.Node(t.Context(), "n1")
	if err != nil || clusterOf(node.ObjectMeta) != "m1" || node.Usage.Cpu().String() != "3" {
		t.Errorf("got %v, %v", node, err)
	}
	if _, err := u.Node(t.Context(), "n"); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "the node(n) found in more than one clusters") {
		t.Errorf("got %v", err)
	}
	nodes, err := u.Nodes(t.Context(), selection("", ""))
	if err != nil || len(nodes) != 3 || clusterOf(nodes[0].ObjectMeta) != "m1" || clusterOf(nodes[1].ObjectMeta) != "m2" {
		t.Errorf("got %v, %v", nodes, err)
	}
}

func TestUsage_NamesMembersThatDoNotAnswer(t *testing.T) {
	f := newFederation(t, "m1", "m2", "m3", "m4", "m5")
	for name := range f.servers {
		f.pod(name, "default", "web-1", "100m")
		f.pod(name, "default", "of-"+name, "100m")
	}
	f.open(t)
	f.timeout = 5 * time.Second
	f.fail = map[string]int{"m2": -1, "m3": 500, "m4": 404}
	f.members.close(t.Context(), named("m5"), reasonNotReady)
	u := &usage{f.requester}
	ctx, w := warned(t)
	items, err := u.Pods(ctx, selection("default", "app=web"))
	if err != nil || len(items) != 1 || clusterOf(items[0].ObjectMeta) != "m1" {
		t.Errorf("got %v, %v", items, err)
	}
	want := warnings{
		"cluster(m2): its metrics are missing: it did not answer within 5s",
		"cluster(m3): its metrics are missing: the request to it failed",
		"cluster(m4): its metrics are missing: it does not serve these metrics",
		"cluster(m5): its metrics are missing: it is not ready",
	}
	if diff := cmp.Diff(want, *w); diff != "" {
		t.Error(diff)
	}
	f.timeout = 50 * time.Millisecond
	if _, err := u.Pod(ctx, "default", "of-m2"); !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "cluster(m2): it did not answer within 50ms") {
		t.Errorf("got %v", err)
	}
	if _, err := u.Pod(ctx, "default", "of-m5"); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}

// TestUsage_ReadsManyPodsByNamespace has a member whose pods together are too many for one response.
func TestUsage_ReadsManyPodsByNamespace(t *testing.T) {
	f := newFederation(t, "m1")
	labels := map[string]any{"app": "web"}
	for i := range 500 {
		labels[fmt.Sprintf("label-%d", i)] = "x"
	}
	const pods = 300
	for _, ns := range []string{"a", "b"} {
		f.servers["m1"].Put("/api/v1/namespaces/"+ns, object("v1", "Namespace", map[string]any{"name": ns}, nil))
		for i := range pods {
			name := fmt.Sprintf("web-%d", i)
			f.pod("m1", ns, name, "1m")
			f.servers["m1"].Put("/apis/metrics.k8s.io/v1beta1/namespaces/"+ns+"/pods/"+name, object("metrics.k8s.io/v1beta1", "PodMetrics",
				map[string]any{"namespace": ns, "name": name, "labels": labels}, nil))
		}
	}
	f.open(t)
	f.timeout = time.Minute
	ctx, w := warned(t)
	items, err := (&usage{f.requester}).Pods(ctx, selection("", "app=web"))
	if err != nil || len(items) != 2*pods || len(*w) > 0 || f.requests["m1"] != 3 {
		t.Errorf("got %d pods after %d requests, %v, warnings %q", len(items), f.requests["m1"], err, *w)
	}
}

// TestUsage_IgnoresWhatWasNotRequested has a member that reports pods of another namespace, under the name of another
// cluster.
func TestUsage_IgnoresWhatWasNotRequested(t *testing.T) {
	f := newFederation(t, "m1")
	f.pod("m1", "default", "web-1", "100m")
	f.servers["m1"].Put("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/x", object("metrics.k8s.io/v1beta1", "PodMetrics",
		map[string]any{"namespace": "kube-system", "name": "web-1", "labels": map[string]any{"app": "web"}}, nil))
	f.servers["m1"].Put("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/web-1", object("metrics.k8s.io/v1beta1", "PodMetrics",
		map[string]any{"namespace": "default", "name": "web-1", "labels": map[string]any{"app": "web"}, "annotations": map[string]any{"resource.karmada.io/query-from-cluster": "m2"}}, nil))
	f.open(t)
	items, err := (&usage{f.requester}).Pods(t.Context(), selection("default", "app=web"))
	if err != nil || len(items) != 1 || items[0].Namespace != "default" || clusterOf(items[0].ObjectMeta) != "m1" {
		t.Errorf("got %v, %v", items, err)
	}
}

// The objects of members are watched from the first request for usage until nobody has asked for some time.
func TestUsage_WatchesMembersWhileSomebodyAsks(t *testing.T) {
	f := newFederation(t, "m1", "m2")
	clk := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	f.members.clock = clk
	f.pod("m2", "ns", "a-1", "100m")
	f.connect(t)
	open, _ := f.members.snapshot()
	watched := func() (out []bool) {
		for _, c := range open {
			c.release()
			c.mu.Lock()
			out = append(out, c.watched != nil)
			c.mu.Unlock()
		}
		return out
	}
	if got := watched(); slices.Contains(got, true) {
		t.Errorf("watched before the first request: %v", got)
	}
	for range 2 {
		// The first request waits for the first list.
		pod, err := (&usage{&requester{members: f.members, timeout: time.Minute}}).Pod(t.Context(), "ns", "a-1")
		if err != nil || pod.Annotations[clusterv1alpha1.QueryFromClusterAnnotation] != "m2" {
			t.Fatalf("%+v, %v", pod, err)
		}
		clk.SetTime(clk.Now().Add(idleTimeout - time.Second))
		if got := watched(); slices.Contains(got, false) {
			t.Errorf("not watched after a request: %v", got)
		}
		clk.SetTime(clk.Now().Add(time.Second))
		if got := watched(); slices.Contains(got, true) {
			t.Errorf("watched while nobody asks: %v", got)
		}
	}
}
