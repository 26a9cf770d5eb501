//go:build integration

package phases

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// TestNamespaces_AreProtected deletes namespaces as an administrator does by mistake.
func TestNamespaces_AreProtected(t *testing.T) {
	_, cp := emptied(t)
	for _, o := range components.WebhookConfigurations("https://127.0.0.1:1", nil, nil) {
		if strings.HasPrefix(o.GetName(), "namespaces.") {
			if err := cp.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	namespace := func(name string, labels map[string]string) *corev1.Namespace {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		if err := cp.Create(t.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		return ns
	}
	held := map[string]string{clusterv1alpha1.ExecutionNamespaceLabel: "m1"}
	for ns, want := range map[*corev1.Namespace]string{
		namespace("karmada-es-m1", held):                        "all that runs in cluster m1",
		namespace(clusterv1alpha1.NamespaceKarmadaSystem, nil):  "the state of the control plane",
		namespace(clusterv1alpha1.NamespaceKarmadaCluster, nil): "the credentials of clusters",
	} {
		// Admission policies have an effect soon after they were created.
		testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
			if err := cp.Delete(ctx, ns, client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
				return errors.Join(errors.New("the deletion was not refused"), err)
			}
			return nil
		})
	}
	for _, ns := range []*corev1.Namespace{namespace("karmada-es-gone", nil), namespace("team", held)} {
		if err := cp.Delete(t.Context(), ns); err != nil {
			t.Errorf("namespace %s: %v", ns.Name, err)
		}
	}
}
