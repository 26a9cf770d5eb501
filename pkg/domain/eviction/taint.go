package eviction

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// ErrNoPlacement is returned for a binding that was not scheduled: nothing is known of its tolerations.
var ErrNoPlacement = errors.New("the applied placement is empty")

// TaintFacts are what decides whether a binding leaves a cluster because of the taints of the cluster.
type TaintFacts struct {
	// Now is the current time.
	Now time.Time
	// ClusterName is the name of the cluster, and Cluster the object; nil if there is none.
	ClusterName string
	Cluster     *clusterv1alpha1.Cluster
	// Binding is not changed.
	Binding workv1alpha2.Binding
	// Enabled reports whether NoExecute taints evict at all.
	Enabled bool
	// PurgeMode applies to bindings without a cluster failover behavior.
	PurgeMode policyv1alpha1.PurgeMode
	// PreserveState reports whether state is preserved as the binding asks for.
	PreserveState bool
	// KeepUnclaimed reports whether a binding stays that no policy claims: nothing would schedule it elsewhere.
	KeepUnclaimed bool
}

// TaintVerdict is what becomes of a binding in a cluster. The zero value means that it stays.
type TaintVerdict struct {
	// Evict reports whether the binding leaves the cluster now; Spec is then the spec with the task.
	Evict bool
	Spec  *workv1alpha2.ResourceBindingSpec
	// After is when to decide again; 0 means when something changes.
	After time.Duration
	// Unclaimed reports whether the binding would leave the cluster now, and stays because no policy claims it.
	Unclaimed bool
}

// Taint returns whether a binding leaves a cluster because of NoExecute taints that it does not tolerate, or not any
// longer. It returns ErrNoPlacement, whatever the cluster is, or an error about state that cannot be preserved.
func Taint(f TaintFacts) (TaintVerdict, error) {
	spec := f.Binding.GetSpec()
	if f.Binding.GetDeletionTimestamp() != nil || !isTarget(spec, f.ClusterName) {
		return TaintVerdict{}, nil
	}
	placement, err := appliedPlacement(f.Binding)
	if err != nil {
		return TaintVerdict{}, err
	}
	if f.Cluster == nil || !f.Enabled {
		return TaintVerdict{}, nil
	}
	at, ok := evictionTime(f.Cluster.Spec.Taints, placement.ClusterTolerations, f.Now)
	switch {
	case !ok:
		return TaintVerdict{}, nil
	case at.After(f.Now):
		return TaintVerdict{After: at.Sub(f.Now)}, nil
	case f.KeepUnclaimed && !scope.Claimed(f.Binding):
		return TaintVerdict{Unclaimed: true}, nil
	}
	task := workv1alpha2.GracefulEvictionTask{
		FromCluster: f.ClusterName, Producer: ProducerTaintManager, Reason: ReasonTaintUntolerated, PurgeMode: f.PurgeMode,
	}
	if spec.Failover != nil && spec.Failover.Cluster != nil {
		if task.PurgeMode = spec.Failover.Cluster.PurgeMode; task.PurgeMode == "" {
			task.PurgeMode = policyv1alpha1.PurgeModeGracefully
		}
		if f.PreserveState {
			if task.PreservedLabelState, err = preserve(spec.Failover.Cluster.StatePreservation, f.Binding.GetStatus(), f.ClusterName); err != nil {
				return TaintVerdict{}, err
			}
		}
	}
	out := spec.DeepCopy()
	evict(out, task)
	return TaintVerdict{Evict: true, Spec: out}, nil
}

func appliedPlacement(b workv1alpha2.Binding) (*policyv1alpha1.Placement, error) {
	text := b.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation]
	if text == "" {
		return nil, fmt.Errorf("binding %q: %w", b.GetName(), ErrNoPlacement)
	}
	placement := &policyv1alpha1.Placement{}
	if err := json.Unmarshal([]byte(text), placement); err != nil {
		return nil, fmt.Errorf("decoding the applied placement of binding %q: %w", b.GetName(), err)
	}
	return placement, nil
}

// evictionTime returns when the NoExecute taints of a cluster evict, and false if they never do.
func evictionTime(taints []corev1.Taint, tolerations []corev1.Toleration, now time.Time) (at time.Time, ok bool) {
	var used []corev1.Toleration
	var execute []corev1.Taint
	for i := range taints {
		if taints[i].Effect != corev1.TaintEffectNoExecute {
			continue
		}
		toleration := tolerating(tolerations, &taints[i])
		if toleration == nil {
			return now, true
		}
		execute, used = append(execute, taints[i]), append(used, *toleration)
	}
	for i := range used {
		if used[i].TolerationSeconds == nil {
			continue
		}
		for j := range execute {
			if execute[j].TimeAdded == nil || !tolerates(&used[i], &execute[j]) {
				continue
			}
			until := execute[j].TimeAdded.Add(time.Duration(*used[i].TolerationSeconds) * time.Second)
			if !ok || until.Before(at) {
				at, ok = until, true
			}
		}
	}
	return at, ok
}

// tolerating returns the first toleration that tolerates a taint, or nil.
func tolerating(tolerations []corev1.Toleration, taint *corev1.Taint) *corev1.Toleration {
	for i := range tolerations {
		if tolerates(&tolerations[i], taint) {
			return &tolerations[i]
		}
	}
	return nil
}

func tolerates(toleration *corev1.Toleration, taint *corev1.Taint) bool {
	return toleration.ToleratesTaint(klog.Logger{}, taint, false)
}
