package e2e

import (
	"strings"
	"testing"
)

// n
func TestBadInput_ErrorsNameTheNextStep(t *testing.T) {
	ns := namespace(t)
	long := strings.Repeat("a", 64)
	for _, tc := range []struct {
		name  string
		input string
		args  []string
		want  []string
	}{
		{
			"invalid label selector in a policy",
			policyFor("bad", "{apiVersion: apps/v1, kind: Deployment}", "clusterAffinity: {fieldSelector: {matchExpressions: [{key: planet, operator: In, values: [earth]}]}}"),
			[]string{"apply", "-n", ns, "-f", "-"},
			[]string{"spec.placement.clusterAffinity.fieldSelector", `unsupported key "planet"`},
		},
		{
			"unknown division",
			policyFor("bad", "{apiVersion: apps/v1, kind: Deployment}", "replicaScheduling: {replicaSchedulingType: Shared}"),
			[]string{"apply", "-n", ns, "-f", "-"},
			[]string{"replicaSchedulingType", "Duplicated", "Divided"},
		},
		{
			"wrong kubeconfig", "", []string{"get", "clusters", "--kubeconfig", "/no/such/file"}, []string{"/no/such/file"},
		},
		{
			"cluster name that is too long", "",
			[]string{"join", long, "--cluster-kubeconfig", kubeconfig, "--cluster-context", "member1"},
			[]string{long, "48"},
		},
		{
			"joining another cluster under the name of a member", "",
			[]string{"join", "member1", "--cluster-kubeconfig", kubeconfig, "--cluster-context", "member2"},
			[]string{"member1", "registered", "choose another name"},
		},
		{
			"joining the same cluster under another name", "",
			[]string{"join", "other", "--cluster-kubeconfig", kubeconfig, "--cluster-context", "member1"},
			[]string{"registered"},
		},
		{
			"unknown member", "", []string{"get", "pods", "-C", "nowhere", "--operation-scope", "members"}, []string{"nowhere"},
		},
		{
			"unknown taint effect", "", []string{"taint", "clusters", "member1", "a=b:Never"}, []string{"invalid taint effect: Never"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			said := fails(t, tc.input, tc.args...)
			for _, want := range tc.want {
				if !strings.Contains(said, want) {
					t.Errorf("the error does not mention %q:\n%s", want, said)
				}
			}
		})
	}
	if err := absent("", ns, "pp/bad")(); err != nil {
		t.Error(err)
	}
}

func TestBadInput_UnknownClusterInAPolicyIsExplained(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, deployment("nginx", 1), policy("nginx", to("no-such-cluster")))
	eventually(t, is("", ns, "rb/nginx-deployment", `{.status.conditions[?(@.type=="Scheduled")].reason}`, "NoClusterFit"))
	message, err := value("", ns, "rb/nginx-deployment", `{.status.conditions[?(@.type=="Scheduled")].message}`)
	if err != nil {
		t.Fatal(err)
	}
	if want := "cluster(s) did not match the placement cluster affinity constraint"; !strings.Contains(message, want) {
		t.Errorf("the condition says %q", message)
	}
}
