package get

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/karmada-toolkit/karmada/internal/golden"
)

// watchUntil runs a watch until it has sent enough requests.
func watchUntil(t *testing.T, f *federation, requests int, line string) outcome {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan outcome, 1)
	go func() { done <- f.runContext(ctx, t, strings.Fields(line)...) }()
	deadline := time.After(2 * time.Minute)
	for {
		select {
		case o := <-done:
			return o
		case <-deadline:
			t.Fatal("the watch did not go on")
		case <-time.After(20 * time.Millisecond):
			if f.count("/"+strings.Fields(line)[0]) >= requests {
				cancel()
				return <-done
			}
		}
	}
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
	for name, tt := range map[string]struct {
		line     string
		requests int
	}{
		// a list and four watches of the member, of which the last stays open
		"watch":             {"deploy -w -s members", 5},
		"watch-only":        {"deploy --watch-only -s members", 5},
		"watch-events":      {"deploy -w --output-watch-events -s members", 5},
		"watch-events-name": {"deploy nginx -w -o name -s members", 5},
	} {
		t.Run(name, func(t *testing.T) {
			m := *member
			f := newFederation(t, &fakeCluster{}, map[string]*fakeCluster{"member1": &m})
			golden.Assert(t, name, "$ get "+tt.line+"\n"+watchUntil(t, f, tt.requests, tt.line).String())
		})
	}
}

// TestGet_WatchCountsBindingsOnce checks that a change of a cluster does not list all bindings again.
func TestGet_WatchCountsBindingsOnce(t *testing.T) {
	f := governed(t)
	plane := f.clusters[""]
	plane.events = [][]string{{plane.event("MODIFIED", object{resource: "clusters", name: "m2", ready: "False"})}, {plane.event("MODIFIED", object{resource: "clusters", name: "m2", ready: "True"})}}
	o := watchUntil(t, f, 4, "clusters -o wide -w") // a list and three watches
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
	o := watchUntil(t, f, 4, "deploy -w -s members") // list, watch, list, watch
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
