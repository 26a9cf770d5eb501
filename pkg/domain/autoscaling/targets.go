package autoscaling

import (
	"errors"
	"math"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Binding returns the binding of a target with these labels, out of candidates.
func Binding(namespace string, target autoscalingv2.CrossVersionObjectReference, labels map[string]string, candidates []*workv1alpha2.ResourceBinding) (*workv1alpha2.ResourceBinding, error) {
	if len(labels) == 0 {
		return nil, errors.New("target resource has no label")
	}
	key := policyv1alpha1.PropagationPolicyPermanentIDLabel
	id, ok := labels[key]
	if !ok {
		key = policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel
		if id, ok = labels[key]; !ok {
			return nil, errors.New("no label of policy permanent-id found")
		}
	}
	labelled := false
	for _, b := range candidates {
		if b.Labels[key] != id {
			continue
		}
		labelled = true
		r := b.Spec.Resource
		if r.Name == target.Name && r.APIVersion == target.APIVersion && r.Kind == target.Kind && r.Namespace == namespace {
			return b, nil
		}
	}
	if !labelled {
		return nil, errors.New("length of binding list is zero")
	}
	return nil, errors.New("no binding matches the target resource")
}

// Clusters returns the clusters of a binding that are ready, and those that are not.
func Clusters(b *workv1alpha2.ResourceBinding, get func(name string) (*clusterv1alpha1.Cluster, error)) (ready []*clusterv1alpha1.Cluster, unready []string, err error) {
	if len(b.Spec.Clusters) == 0 {
		return nil, nil, errors.New("binding has no schedulable clusters")
	}
	for _, target := range b.Spec.Clusters {
		cluster, err := get(target.Name)
		if err != nil {
			return nil, nil, err
		}
		if cluster.Ready() {
			ready = append(ready, cluster)
		} else {
			unready = append(unready, cluster.Name)
		}
	}
	return ready, unready, nil
}

// Selector returns the selector of the first member that has one.
func Selector(members []Member) string {
	for _, m := range members {
		if m.Selector != "" {
			return m.Selector
		}
	}
	return ""
}

// size is how many replicas the target has, and how far usage is from its target before it gets others.
type size struct {
	// current is spec.replicas of the template.
	current int32
	// spec and status are the sums of spec.replicas and status.replicas of the members that answered.
	spec, status int32
	tolerance    float64
	// behavior may have tolerances of its own. Default nil.
	behavior *autoscalingv2.HorizontalPodAutoscalerBehavior
}

// add counts a member, which may report any number.
func (s *size) add(m Member) {
	s.spec = clamp(float64(s.spec) + float64(max(0, m.Spec)))
	s.status = clamp(float64(s.status) + float64(max(0, m.Status)))
}

// tolerated reports whether a ratio is too near to 1 to change anything.
func (s *size) tolerated(ratio float64) bool {
	tolerance := s.tolerance
	if b := s.behavior; b != nil {
		rules := b.ScaleUp
		if ratio < 1 {
			rules = b.ScaleDown
		}
		if rules.Tolerance != nil {
			tolerance = rules.Tolerance.AsApproximateFloat64()
		}
	}
	return math.Abs(1-ratio) <= tolerance
}

// calibrated converts replicas of the members that answered into replicas of the template, rounded up.
func (s *size) calibrated(replicas float64) int32 {
	return clamp(math.Ceil(replicas / (float64(s.spec) / float64(s.current))))
}
