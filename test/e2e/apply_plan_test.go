package e2e

import (
	"os"
	"strings"
	"testing"
)

// TestApply_Plan applies what was planned only after confirmation.
func TestApply_Plan(t *testing.T) {
	ns := namespace(t)
	line := []string{"apply", "--plan", "--yes", "-n", ns, "-C", "member1", "-f", "-"}
	const planned = "  member1  0 -> 2   created\n"

	file := t.TempDir() + "/web.yaml"
	if err := os.WriteFile(file, []byte(deployment("web", 2)), 0o600); err != nil {
		t.Fatal(err)
	}
	for answer, want := range map[string]string{"": "use --yes", "n\n": "Nothing was applied."} {
		r := ctl(answer, "apply", "--plan", "-n", ns, "-C", "member1", "-f", file)
		if !strings.Contains(r.out, planned) || !strings.Contains(r.out+r.err, want) {
			t.Errorf("the answer %q: exit code %d\n%s%s", answer, r.code, r.out, r.err)
		}
	}
	if r := ctl("", "get", "deployment", "web", "-n", ns, "-s", "karmada"); r.code == 0 {
		t.Errorf("it was applied without confirmation:\n%s", r.out)
	}

	if out := mustWith(t, deployment("web", 2), line...); !strings.Contains(out, planned) || !strings.Contains(out, "deployment.apps/web created") {
		t.Errorf("got\n%s", out)
	}
	eventually(t, is("member1", ns, "deploy/web", "{.status.readyReplicas}", "2"))
	if out := mustWith(t, deployment("web", 2), line...); !strings.Contains(out, "No changes") {
		t.Errorf("applied again:\n%s", out)
	}
}

// One command applies a type and objects of it, in any order, plain and with --plan, also where discovery is out of date; what cannot
// be read is named, and the rest is applied.
func TestApply_DefinesTypesFirst(t *testing.T) {
	ns := namespace(t)
	const crd = "jobs.define.example.com"
	manifest := `
apiVersion: define.example.com/v1
kind: Job
metadata: {name: one}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: plain}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + crd + `}
spec:
  group: define.example.com
  scope: Namespaced
  names: {plural: jobs, singular: job, kind: Job, listKind: JobList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`
	remove := func() { ctl(manifest, "delete", "-n", ns, "--ignore-not-found", "-f", "-") }
	t.Cleanup(remove)
	for _, flags := range [][]string{nil, {"--plan", "--yes"}, {"--server-side"}} {
		out := mustWith(t, manifest, append([]string{"apply", "-n", ns, "-f", "-"}, flags...)...)
		first, second := strings.Index(out, crd), strings.Index(out, "job.define.example.com/one")
		if first < 0 || second < first && len(flags) != 2 { // a plan names it before
			t.Errorf("%v:\n%s", flags, out)
		}
		must(t, "get", crd+"/one", "-n", ns, "-s", "karmada")
		remove()
	}
	r := ctl(manifest+"---\n{apiVersion: absent.example.com/v1, kind: Absent, metadata: {name: a}}\n", "apply", "-n", ns, "-f", "-")
	if r.code != 1 || strings.Count(r.err, `no matches for kind "Absent"`) != 1 || strings.Contains(r.err, `"Job"`) {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	must(t, "get", "jobs.define.example.com/one", "configmap/plain", "-n", ns, "-s", "karmada")

	// Without -n, each object goes where it says, and one of a type without namespaces nowhere.
	remove()
	placed := strings.NewReplacer("{name: one}", "{name: one, namespace: "+ns+"}", "{name: plain}", "{name: plain, namespace: "+ns+"}").Replace(manifest)
	wide := strings.NewReplacer("define.example.com", "wide.example.com", "Namespaced", "Cluster", "{name: plain}", "{name: plain, namespace: "+ns+"}").Replace(manifest)
	t.Cleanup(func() { ctl(wide, "delete", "--ignore-not-found", "-f", "-") })
	mustWith(t, placed+"---"+wide, "apply", "-f", "-")
	must(t, "get", "jobs.define.example.com/one", "-n", ns, "-s", "karmada")
	must(t, "get", "jobs.wide.example.com/one", "-s", "karmada")
}
