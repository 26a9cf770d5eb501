package e2e

import (
	"fmt"
	"strings"
	"testing"
)

const promoted = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: b}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: nginx
        image: ` + image + `
        envFrom: [{configMapRef: {name: settings}}]
`

// pods returns the UIDs of the pods of a namespace in a member.
func pods(t *testing.T, cluster, ns string) string {
	t.Helper()
	out, err := value(cluster, ns, "pods", "{.items[*].metadata.uid}")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPromote_AdoptsWithoutRestart(t *testing.T) { inBothModes(t, promoteAdoptsWithoutRestart) }

func promoteAdoptsWithoutRestart(t *testing.T, name string) {
	ns := namespace(t)
	eventually(t, is(name, "", "ns/"+ns, "{.metadata.name}", ns))
	mustWith(t, promoted, member(name, "apply", "-n", ns, "-f", "-")...)
	eventually(t, is(name, ns, "deploy/web", "{.status.readyReplicas}", "2"))
	before := pods(t, name, ns)

	if out := must(t, "promote", "deployment", "web", "-n", ns, "-C", name, "--dry-run"); out != "" {
		t.Errorf("a dry run printed %q", out)
	}
	printed := must(t, "promote", "deployment", "web", "-n", ns, "-C", name, "-d", "-o", "yaml")
	for _, want := range []string{"kind: Deployment", "---", "kind: PropagationPolicy", "propagateDeps: true"} {
		if !strings.Contains(printed, want) {
			t.Errorf("no %q in\n%s", want, printed)
		}
	}
	fails(t, "", "get", "deploy/web", "-n", ns, "-s", "karmada") // neither wrote anything

	out := must(t, "promote", "deployment", "web", "-n", ns, "-C", name, "-d")
	want := fmt.Sprintf("use default interpreter\n"+
		"Dependency resource \"/v1, Resource=configmaps\"(%[1]s/settings) is promoted successfully\n"+
		"ResourceTemplate (%[1]s/web) is created successfully\n", ns)
	if !strings.HasPrefix(out, want) || !strings.HasSuffix(out, fmt.Sprintf("Resource \"apps/v1, Resource=deployments\"(%s/web) is promoted successfully\n", ns)) {
		t.Errorf("promote printed\n%s", out)
	}
	eventually(t, all(
		is("", ns, "deploy/web", "{.status.readyReplicas}", "2"),
		is("", ns, "rb/web-deployment", `{.status.conditions[?(@.type=="FullyApplied")].status}`, "True"),
		is("", ns, "rb/settings-configmap", `{.status.conditions[?(@.type=="FullyApplied")].status}`, "True"),
		shows(row{"NAME": "web", "CLUSTER": name, "READY": "2/2", "ADOPTION": "Y"}, "get", "deploy", "-n", ns),
	))
	if after := pods(t, name, ns); after != before {
		t.Errorf("pods were %s, are %s", before, after)
	}

	again := ctl("", "promote", "deployment", "web", "-n", ns, "-C", name)
	if again.code != 0 || !strings.Contains(again.err, "already exists in the control plane") {
		t.Errorf("promoted again: exit code %d, %s", again.code, again.err)
	}
}

func TestPromote_ClusterScopedAndSeveral(t *testing.T) {
	ns := namespace(t)
	eventually(t, is("member1", "", "ns/"+ns, "{.metadata.name}", ns))
	role := ns + ":reader"
	mustWith(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "%s"}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: one, namespace: %[2]s, labels: {team: a}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: two, namespace: %[2]s, labels: {team: a}}
`, role, ns), member("member1", "apply", "-f", "-")...)
	t.Cleanup(func() { ctl("", "delete", "clusterrole", role, "--wait=false") })

	must(t, "promote", "clusterrole", role, "-n", ns, "-C", "member1")
	must(t, "promote", "configmaps", "-l", "team=a", "-n", ns, "-C", "member1")
	eventually(t, all(
		is("", "", "crb/"+strings.ReplaceAll(role, ":", ".")+"-clusterrole", `{.status.conditions[?(@.type=="FullyApplied")].status}`, "True"),
		is("", ns, "rb/one-configmap", `{.status.conditions[?(@.type=="FullyApplied")].status}`, "True"),
		is("", ns, "rb/two-configmap", `{.status.conditions[?(@.type=="FullyApplied")].status}`, "True"),
	))
}

func TestPromote_BadInput(t *testing.T) {
	ns := namespace(t)
	for line, want := range map[string]string{
		"promote deployment -C member1":                              "incorrect command format, please use correct command format",
		"promote deployment web":                                     "the cluster cannot be empty",
		"promote deployment web -C member1 -o table":                 "invalid output format: supported formats are json and yaml",
		"promote deployment web -C member1 -n " + ns:                 "failed to get resource in cluster(member1). err: the deployment or web don't exist in cluster(member1)",
		"promote deployment web -C nowhere -n " + ns:                 `"nowhere" not found`,
		"promote deployment a b -C member1 --policy-name p -n " + ns: "--policy-name names the policy of one object",
	} {
		if got := fails(t, "", strings.Fields(line)...); !strings.Contains(got, want) {
			t.Errorf("%s said %q, want %q", line, got, want)
		}
	}
}
