package get

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/karmada-toolkit/karmada/internal/build"
)

// watchAll runs a watch until a cluster has sent all its events, and the watch after them is open.
func watchAll(t *testing.T, f *federation, c *fakeCluster, line string) outcome {
	t.Helper()
	c.idle = make(chan struct{}, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	done := make(chan outcome, 1)
	go func() { done <- f.runContext(ctx, t, strings.Fields(line)...) }()
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
		t.Fatal("the watch did not go on")
	case <-c.idle:
		cancel()
	}
	return <-done
}

func deployment(name, ready string) object {
	return object{resource: "deployments", namespace: "default", name: name, ready: ready, managed: true}
}

func TestGet_Watch(t *testing.T) {
	member := &fakeCluster{objects: []object{deployment("nginx", "0/1")}}
	bookmark := `{"type":"BOOKMARK","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"77"},"rows":[{"cells":[],"object":{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"resourceVersion":"77"}}}]}}`
	member.events = [][]string{
		{member.event("MODIFIED", deployment("nginx", "1/1")), bookmark},
		{member.event("ADDED", deployment("web", "0/1"))},
		{member.event("DELETED", deployment("web", "0/1"))},
	}
	for name, line := range map[string]string{
		"watch":             "deploy -w -s members",
		"watch-only":        "deploy --watch-only -s members",
		"watch-events":      "deploy -w --output-watch-events -s members",
		"watch-events-name": "deploy nginx -w -o name -s members",
	} {
		t.Run(name, func(t *testing.T) {
			m := *member
			f := newFederation(t, &fakeCluster{}, map[string]*fakeCluster{"member1": &m})
			build.AssertGolden(t, name, "$ get "+line+"\n"+watchAll(t, f, &m, line).String())
		})
	}
}

// TestGet_WatchCountsBindingsOnce checks that a change of a cluster does not list all bindings again.
func TestGet_WatchCountsBindingsOnce(t *testing.T) {
	f := governed(t)
	plane := f.clusters[""]
	plane.events = [][]string{{plane.event("MODIFIED", object{resource: "clusters", name: "m2", ready: "False"})}, {plane.event("MODIFIED", object{resource: "clusters", name: "m2", ready: "True"})}}
	o := watchAll(t, f, plane, "clusters -o wide -w")
	if rows := strings.Count(o.stdout, "1 TaintUntolerated"); rows != 3 {
		t.Errorf("%d rows have the evictions of m2, want 3:\n%s", rows, o)
	}
	if n := f.count("/resourcebindings"); n != 1 {
		t.Errorf("bindings were listed %d times", n)
	}
}

func TestGet_WatchListsAgainWhenTooOld(t *testing.T) {
	gone := `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":410,"reason":"Expired","message":"too old resource version"}}`
	member := &fakeCluster{objects: []object{deployment("nginx", "1/1")}, events: [][]string{{gone}}}
	f := newFederation(t, &fakeCluster{}, map[string]*fakeCluster{"member1": member})
	o := watchAll(t, f, member, "deploy -w -s members")
	want := "NAME    CLUSTER   READY   AGE   ADOPTION\nnginx   member1   1/1     5m    Y\n"
	if o.stdout != want {
		t.Errorf("what did not change was shown again:\n%s", o.stdout)
	}
}

func TestGet_WatchOfNothing(t *testing.T) {
	f := newFederation(t, &fakeCluster{}, map[string]*fakeCluster{"member1": {}})
	if o := f.run(t, "deploy", "gone", "-w"); !strings.Contains(o.err, `deployments.apps "gone" not found`) {
		t.Errorf("got %s", o)
	}
	f.clusters["member1"] = &fakeCluster{status: 401, reason: "Unauthorized", text: "Unauthorized"}
	if o := f.run(t, "deploy", "-w", "-s", "members"); !strings.Contains(o.err, "not to find obj that is watched") || !strings.Contains(o.err, "cluster(member1): unauthorized") {
		t.Errorf("got %s", o)
	}
}
