package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestReading reads pods, owners of pods and clusters with the commands of the CLI.
func TestReading(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, deployment("web", 2), policy("web", `
clusterAffinity: {clusterNames: [member1, member2]}
replicaScheduling:
  replicaSchedulingType: Divided
  replicaDivisionPreference: Weighted
`))
	var pod, in string
	eventually(t, func() error {
		pods := strings.Split(strings.TrimSpace(must(t, "get", "pods", "-n", ns, "-s", "members", "-o", "name")), "\n")
		if len(pods) != 2 {
			return fmt.Errorf("pods %v, want 2", pods)
		}
		name, cluster, found := strings.Cut(pods[0], " ")
		if !found {
			return fmt.Errorf("pod %q, want its cluster too", pods[0])
		}
		pod, in = strings.TrimPrefix(name, "pod/"), cluster
		return nil
	})

	t.Run("a cluster without a scope is a member", func(t *testing.T) {
		if list := must(t, "get", "pods", "-n", ns, "-C", in, "-o", "name"); !strings.Contains(list, pod) {
			t.Errorf("%s is not in %s", pod, list)
		}
		if out := must(t, "describe", "pod", pod, "-n", ns, "-C", in); !strings.Contains(out, "Name:             "+pod) {
			t.Errorf("described:\n%s", out)
		}
	})
	t.Run("a pod is found in the member that has it", func(t *testing.T) {
		if r := ctl("", "logs", pod, "-n", ns); r.code != 0 && !strings.HasPrefix(r.err, "cluster(") {
			t.Errorf("got %s", r.err)
		}
		if err := fails(t, "", "logs", "deployment/web", "-n", ns); !strings.Contains(err, "exists in several clusters: member1, member2") {
			t.Errorf("got %s", err)
		}
		if err := fails(t, "", "exec", "nope", "-n", ns, "--", "true"); !strings.Contains(err, `pod "nope" not found in namespace "`+ns+`"`) {
			t.Errorf("got %s", err)
		}
	})
	t.Run("what clusters have left", func(t *testing.T) {
		if out := must(t, "get", "clusters", "-o", "wide"); !strings.Contains(out, "FREE-CPU") || strings.Contains(out, "<unknown>") {
			t.Errorf("got:\n%s", out)
		}
		if out := must(t, "capacity", "-C", "member2"); !strings.Contains(out, "FREE MEMORY") || strings.Contains(out, "member1") {
			t.Errorf("got:\n%s", out)
		}
		if r := ctl("", "capacity", "--for", "deployment/web", "-n", ns); r.code != 0 || !strings.Contains(r.out, "member1") || !strings.Contains(r.err, "has 2 replicas; one replica requests") {
			t.Errorf("got %+v", r)
		}
		huge := strings.Replace(deployment("huge", 1), "cpu: 10m", "nvidia.com/gpu: 1", 1)
		if r := ctl(huge, "capacity", "--for", "-", "-n", ns); r.code != 0 || strings.Count(r.out, "nvidia.com/gpu") < 2 {
			t.Errorf("got %+v", r)
		}
		for text, args := range map[string]string{
			"is neither a file nor TYPE/NAME":   "--for web",
			"clusters don't exist: nope":        "-C nope",
			"has no replicas, as far":           "--for namespace/" + ns,
			"--estimators needs --for":          "--estimators",
			`deployments.apps "nope" not found`: "--for deployment/nope -n " + ns,
		} {
			if err := fails(t, "", append([]string{"capacity"}, strings.Fields(args)...)...); !strings.Contains(err, text) {
				t.Errorf("capacity %s: got %s", args, err)
			}
		}
	})
	t.Run("claims and targets", func(t *testing.T) {
		if out := must(t, "get", "pp", "-n", ns, "-o", "wide", "--no-headers"); strings.Fields(out)[5] != "1" {
			t.Errorf("claimed objects:\n%s", out)
		}
		if out := must(t, "get", "rb", "-n", ns, "-o", "wide"); !strings.Contains(out, "member1(1),member2(1)") {
			t.Errorf("target clusters:\n%s", out)
		}
	})
}
