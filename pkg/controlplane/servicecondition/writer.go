// Package servicecondition writes the conditions of MultiClusterServices, which two
// controllers share.
package servicecondition

import (
	"context"
	"sync"

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

// Writer writes conditions. The controllers share one, so that each sees what the other wrote although its cache is behind.
type Writer struct {
	status  *status.Writer[*networkingv1alpha1.MultiClusterService, *corev1.ServiceStatus]
	written *status.Memory[types.NamespacedName, *written]
	clock   clock.PassiveClock
}

// written is the last status of a MultiClusterService, for one user at a time.
type written struct {
	mu sync.Mutex
	status.Written[*corev1.ServiceStatus]
}

// New returns a Writer with the clients of a manager.
func New(mgr manager.Manager) *Writer {
	return &Writer{
		clock: clock.RealClock{},
		status: status.NewWriter(status.Options[*networkingv1alpha1.MultiClusterService, *corev1.ServiceStatus]{
			Kind: "multiclusterservice", New: func(*networkingv1alpha1.MultiClusterService) *networkingv1alpha1.MultiClusterService {
				return &networkingv1alpha1.MultiClusterService{}
			},
			Get:    func(m *networkingv1alpha1.MultiClusterService) *corev1.ServiceStatus { return &m.Status },
			Shared: []string{"conditions"}, Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{},
		}),
		written: status.NewMemory[types.NamespacedName, *written](remembered),
	}
}

// Write sets the condition that compute returns, unless it is set already. For each MultiClusterService, compute is called
// by one caller at a time.
func (w *Writer) Write(ctx context.Context, mcs *networkingv1alpha1.MultiClusterService, compute func() metav1.Condition) error {
	var last *written
	w.written.Update(client.ObjectKeyFromObject(mcs), func(known *written, found bool) (*written, bool) {
		if last = known; !found {
			last = &written{}
		}
		return last, true
	})
	last.mu.Lock()
	defer last.mu.Unlock()
	condition := compute()
	condition.LastTransitionTime = metav1.Time{Time: w.clock.Now()}
	_, err := w.status.Write(ctx, mcs, &last.Written, func(s *corev1.ServiceStatus) { meta.SetStatusCondition(&s.Conditions, condition) })
	return err
}
