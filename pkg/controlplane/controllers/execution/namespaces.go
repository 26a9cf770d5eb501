package execution

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/orphans"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// errNotEmpty is returned for a namespace whose deletion waits for that of the objects of other Works in it.
var errNotEmpty = errors.New("the namespace waits for the deletion of the objects in it")

const (
	// emptyRetry is the time between checks whether these are gone.
	emptyRetry = 2 * time.Second
	// emptyLimit is how long a namespace waits for objects whose Works are not being deleted. Then it stays.
	emptyLimit = 30 * time.Second
)

// occupant returns what a namespace is kept for that a member loses with a Work, or "" if it is to be deleted: deleting it would delete
// objects that are preserved, or that the control plane did not put there. The objects of other Works go first.
func (a *applier) occupant(ctx context.Context, m *access.Member, work *workv1alpha1.Work, namespace string) (string, error) {
	list := &workv1alpha1.WorkList{}
	if err := a.cached.List(ctx, list, client.InNamespace(work.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("listing works: %w", err)
	}
	mayWait := work.DeletionTimestamp != nil && a.config.Clock.Since(work.DeletionTimestamp.Time) < emptyLimit
	known := map[string]bool{}
	for i := range list.Items {
		other := &list.Items[i]
		known[other.Name] = true
		if other.Name == work.Name {
			continue
		}
		if _, key := scope.BindingOf(other); key.Namespace == namespace {
			if other.DeletionTimestamp == nil && !mayWait {
				return "the object of work " + other.Name, nil
			}
			return "", errNotEmpty
		}
	}
	wait := false
	found, err := orphans.Occupant(ctx, m, namespace, func(o *metav1.PartialObjectMetadata) bool {
		ours := mayWait && o.Annotations[workv1alpha2.WorkNamespaceAnnotation] == work.Namespace && known[o.Annotations[workv1alpha2.WorkNameAnnotation]]
		wait = wait || ours
		return ours
	})
	if err == nil && found == "" && wait {
		err = errNotEmpty
	}
	return found, err
}

// namespaceKept records on the cluster why a namespace stays in it.
func (e events) namespaceKept(cluster, namespace, occupant string) {
	e.applied.Event(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}, corev1.EventTypeNormal, reasonNamespaceKept,
		fmt.Sprintf("Namespace %s stays in the cluster, and does not belong to the control plane any more: it has %s", namespace, occupant))
}
