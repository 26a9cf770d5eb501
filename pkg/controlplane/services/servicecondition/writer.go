// Package servicecondition writes the conditions of MultiClusterServices, which two
// controllers share.
package servicecondition

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/status"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
)

// remembered is the number of MultiClusterServices whose last written status is known.
const remembered = 4096

// Writer writes conditions of one type. Each MultiClusterService has one caller at a time.
type Writer struct {
	status  *status.Writer[*networkingv1alpha1.MultiClusterService, *corev1.ServiceStatus]
	written *status.Memory[types.NamespacedName, *status.Written[*corev1.ServiceStatus]]
	clock   clock.PassiveClock
}

// New returns a Writer with the clients of a manager.
func New(mgr manager.Manager) *Writer {
	return &Writer{
		clock: clock.RealClock{},
		status: status.NewWriter(status.Options[*networkingv1alpha1.MultiClusterService, *corev1.ServiceStatus]{
			Kind: "multiclusterservice", New: func(*networkingv1alpha1.MultiClusterService) *networkingv1alpha1.MultiClusterService {
				return &networkingv1alpha1.MultiClusterService{}
			},
			Get:              func(m *networkingv1alpha1.MultiClusterService) *corev1.ServiceStatus { return &m.Status },
			SharedConditions: true, Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{},
		}),
		written: status.NewMemory[types.NamespacedName, *status.Written[*corev1.ServiceStatus]](remembered),
	}
}

// Write sets a condition, unless it is set already.
func (w *Writer) Write(ctx context.Context, mcs *networkingv1alpha1.MultiClusterService, condition metav1.Condition) error {
	key := client.ObjectKeyFromObject(mcs)
	written, ok := w.written.Get(key)
	if !ok {
		written = &status.Written[*corev1.ServiceStatus]{}
		w.written.Set(key, written)
	}
	condition.LastTransitionTime = metav1.Time{Time: w.clock.Now()}
	_, err := w.status.Write(ctx, mcs, written, func(s *corev1.ServiceStatus) { meta.SetStatusCondition(&s.Conditions, condition) })
	return err
}
