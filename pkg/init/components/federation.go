package components

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/crds"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// SystemLabels are the labels of what the system makes for itself.
func SystemLabels() map[string]string {
	return map[string]string{workv1alpha2.SystemLabel: workv1alpha2.SystemLabelValue}
}

// SystemNamespaces are the namespaces of the control plane's own objects: the usual
// ones, and those given beside them.
func SystemNamespaces(more ...string) []client.Object {
	var out []client.Object
	names := append([]string{clusterv1alpha1.NamespaceKarmadaSystem, clusterv1alpha1.NamespaceKarmadaCluster}, more...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		out = append(out, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: SystemLabels()}})
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
