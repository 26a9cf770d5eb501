package agent

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// rightsInterval is the time between two checks of the agent's rights. With a status report every 10 s, a refusal is in
// the Cluster within 30 s.
const rightsInterval = 15 * time.Second

// rights checks whether the agent may still read the Works of its cluster: a watch that is open goes on for minutes after
// the rights are gone.
type rights struct {
	reader  client.Reader
	cluster string
	clock   clock.Clock
	// refusal is the error of the last check if the agent was refused; else nil.
	refusal atomic.Pointer[string]
}

// run checks the rights until ctx ends.
func (r *rights) run(ctx context.Context) error {
	for {
		r.check(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-r.clock.After(rightsInterval):
		}
	}
}

// check lists one Work. An error other than a refusal keeps what is known: it says nothing about rights.
func (r *rights) check(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, access.Timeout)
	defer cancel()
	works := &metav1.PartialObjectMetadataList{}
	works.SetGroupVersionKind(workv1alpha1.GroupVersion.WithKind("WorkList"))
	err := r.reader.List(ctx, works, client.InNamespace(names.ExecutionNamespace(r.cluster)), client.Limit(1))
	switch {
	case err == nil:
		r.refusal.Store(nil)
	case apierrors.IsForbidden(err):
		text := err.Error()
		r.refusal.Store(&text)
	}
}

// conditions returns the condition AgentRefused: True while the agent is refused, none if it never was.
func (r *rights) conditions(cluster *clusterv1alpha1.Cluster) []metav1.Condition {
	out := metav1.Condition{Type: clusterv1alpha1.ClusterConditionAgentRefused}
	refusal := r.refusal.Load()
	switch {
	case refusal != nil:
		out.Status, out.Reason = metav1.ConditionTrue, "Forbidden"
		out.Message = fmt.Sprintf("the control plane refuses the agent its Works, so nothing is applied to the cluster; the Role and RoleBinding in namespace %s are made again by the controller-manager: %s",
			names.ExecutionNamespace(r.cluster), *refusal)
	case meta.FindStatusCondition(cluster.Status.Conditions, out.Type) != nil:
		out.Status, out.Reason, out.Message = metav1.ConditionFalse, "Permitted", "the agent may read the Works of the cluster"
	default:
		return nil
	}
	return []metav1.Condition{out}
}
