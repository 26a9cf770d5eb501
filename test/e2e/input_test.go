package e2e

import (
	"strings"
	"testing"
)

// n
func TestBadInput_ErrorsNameTheNextStep(t *testing.T) {
	ns := namespace(t)
	for _, tc := range []struct {
		name  string
		input string
		args  []string
		want  []string
	}{
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
			"joining the same cluster under another name", "",
			[]string{"join", "other", "--cluster-kubeconfig", kubeconfig, "--cluster-context", "member1"},
			[]string{"registered"},
		},
		{
			"unknown member", "", []string{"get", "pods", "-C", "nowhere", "--operation-scope", "members"}, []string{"nowhere"},
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
