package propagation

import (
	"strings"
	"testing"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

func TestParseNamespaces(t *testing.T) {
	namespaces, err := ParseNamespaces([]string{"kube-.*", "a|b"})
	if err != nil {
		t.Fatal(err)
	}
	for namespace, want := range map[string]bool{
		"kube-system": true, "my-kube-system": false, "default": false, "karmada-system": true, "karmada-cluster": true,
		"karmada-es-m1": true, "karmada-other": false, "": false, "a": true,
	} {
		if got := namespaces.Contains(namespace); got != want {
			t.Errorf("%q: got %v", namespace, got)
		}
	}
	for name, want := range map[string]bool{"team": true, "default": false, "kube-public": false, "a": false, "karmada-es-m1": false} {
		if got := namespaces.Syncs(build.Object("v1", "Namespace", "", name)); got != want {
			t.Errorf("sync of %q: got %v", name, got)
		}
	}
	if none, err := ParseNamespaces(nil); err != nil || none.Syncs(build.Object("v1", "Namespace", "", "kube-node-lease")) {
		t.Errorf("clusters get a namespace that they have of their own, %v", err)
	}
	for _, namespace := range []string{"kube-system", "kubeflow", "default", "karmada-system", "team"} {
		if DefaultNamespaces().Contains(namespace) != names.SkippedByDefault(namespace) {
			t.Errorf("%s is skipped by one default only", namespace)
		}
	}
	if _, err := ParseNamespaces([]string{"("}); err == nil || !strings.HasPrefix(err.Error(), "Invalid namespace regular expression") {
		t.Errorf("got error %v", err)
	}
}
