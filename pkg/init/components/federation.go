package components

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/apis/crds"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

// SystemNamespaces are the namespaces of the control plane's own objects: the usual
// ones, and those given beside them.
func SystemNamespaces(more ...string) []client.Object {
	var out []client.Object
	for _, name := range names.SystemNamespaces(more...) {
		out = append(out, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: names.SystemLabels()}})
	}
	return out
}

// CRDs are the definitions of the control plane's kinds. The kinds with several
// versions are converted by the webhook server at webhookURL.
func CRDs(webhookURL string, caBundle []byte) ([]client.Object, error) {
	all, err := crds.WithConversion(webhookURL, caBundle)
	if err != nil {
		return nil, fmt.Errorf("reading the embedded CRDs: %w", err)
	}
	out := make([]client.Object, len(all))
	for i := range all {
		out[i] = all[i]
	}
	return out, nil
}
