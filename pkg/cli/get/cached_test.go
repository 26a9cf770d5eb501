package get

import (
	"strings"
	"testing"

	"github.com/karmada-toolkit/karmada/internal/build"
)

func TestGet_Cached(t *testing.T) {
	for name, line := range map[string]string{
		"cached":           "deploy --cached",
		"cached-wide":      "deploy -A -o wide --cached",
		"cached-clusters":  "deploy,pods --cached -C member1",
		"cached-name":      "deploy nginx --cached",
		"cached-missing":   "deploy nginx gone --cached -C member2",
		"cached-json":      "pods nginx-a -o jsonpath={range.items[*]}{.metadata.annotations}{end} --cached",
		"cached-names":     "deploy -o name --cached",
		"cached-nothing":   "deploy -n empty --cached",
		"cached-not":       "services --cached",
		"cached-scope":     "deploy --cached -s all",
		"cached-unknown":   "foos --cached",
		"cached-nocluster": "deploy --cached -C nope",
	} {
		t.Run(name, func(t *testing.T) {
			f := nginx(t)
			f.search, f.uncached = &fakeCluster{merged: true}, []string{"services"}
			o := f.run(t, strings.Fields(line)...)
			build.AssertGolden(t, name, "$ get "+line+"\n"+o.String())
			if f.count("clusters/member") > 0 {
				t.Error("members were asked")
			}
		})
	}
	t.Run("no role", func(t *testing.T) {
		build.AssertGolden(t, "cached-no-role", "$ get deploy --cached\n"+nginx(t).run(t, "deploy", "--cached").String())
	})
}

// Changes of all members come in one watch, of which the clusters that are not wanted are left out.
func TestGet_WatchCached(t *testing.T) {
	for name, line := range map[string]string{
		"watch-cached":         "deploy -w --output-watch-events --cached",
		"watch-cached-cluster": "deploy -w --cached -C member2",
		"watch-cached-name":    "deploy -w --cached -o name",
	} {
		t.Run(name, func(t *testing.T) {
			f := nginx(t)
			f.search = &fakeCluster{merged: true}
			changed := func(kind, cluster, ready string) string {
				return f.search.event(kind, object{resource: "deployments", namespace: "default", name: "nginx", ready: ready, cluster: cluster})
			}
			f.search.events = [][]string{{changed("MODIFIED", "member1", "1/2"), changed("MODIFIED", "member2", "0/1"), changed("DELETED", "member2", "0/1")}}
			build.AssertGolden(t, name, "$ get "+line+"\n"+watchAll(t, f, f.search, line).String())
		})
	}
}
