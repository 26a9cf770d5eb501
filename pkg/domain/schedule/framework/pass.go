package framework

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/match"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
)

// Peer is another binding of the same workload affinity group.
type Peer struct {
	Namespace string
	Name      string
	Clusters  []workv1alpha2.TargetCluster
}

// Peers are the bindings that share a group with the one being scheduled.
type Peers struct {
	Affinity     []Peer
	AntiAffinity []Peer
}

// Binding is the binding being scheduled. Nothing in it may be changed.
type Binding struct {
	Namespace string
	Name      string
	Spec      *workv1alpha2.ResourceBindingSpec
	Status    *workv1alpha2.ResourceBindingStatus
	Peers     Peers
	// Now is the time of the decision. With none, tolerations for a number of seconds do not end.
	Now time.Time
}

// OutsideTiers is the tier of a cluster that neither the affinity nor an
// overflow affinity of the term in use selects.
const OutsideTiers = 1000

// Pass is one attempt to place one binding, with one of its affinity terms.
type Pass struct {
	Binding

	// Term is the affinity term in use; nil unless the placement has
	// clusterAffinities.
	Term *policyv1alpha1.ClusterAffinityTerm

	affinity match.Matcher
	overflow []match.Matcher
	tiered   bool
	held     []int32
	targets  []int32
	// served remembers the answer for the last set of APIs: most clusters share it.
	servedBy *apiSet
	served   bool
}

// Start begins with a binding. It is for the decision core.
func (p *Pass) Start(binding *Binding, snapshot *Snapshot) {
	p.Binding = *binding
	if n := snapshot.Len(); cap(p.held) < n {
		p.held = make([]int32, n)
	} else {
		p.held = p.held[:n]
	}
	p.targets = p.targets[:0]
	for i := range p.Spec.Clusters {
		at := snapshot.Find(p.Spec.Clusters[i].Name)
		p.targets = append(p.targets, int32(at))
		if at >= 0 && p.held[at] == 0 {
			p.held[at] = int32(i) + 1
		}
	}
}

// Use sets the affinity of the pass: a term, or without one the affinity of the
// placement. It is for the decision core.
func (p *Pass) Use(term *policyv1alpha1.ClusterAffinityTerm) {
	p.Term = term
	p.overflow = p.overflow[:0]
	p.tiered = false
	if term == nil {
		p.affinity = match.Compile(p.Spec.Placement.ClusterAffinity)
		return
	}
	p.affinity = match.Compile(&term.ClusterAffinity)
	if !p.Spec.IsWorkload() {
		return
	}
	p.tiered = term.OverflowAffinities != nil
	for i := range term.OverflowAffinities {
		p.overflow = append(p.overflow, match.Compile(&term.OverflowAffinities[i].ClusterAffinity))
	}
}

// End forgets the binding. It is for the decision core.
func (p *Pass) End() {
	for _, at := range p.targets {
		if at >= 0 {
			p.held[at] = 0
		}
	}
	clear(p.overflow)
	*p = Pass{held: p.held, targets: p.targets[:0], overflow: p.overflow[:0]}
}

// Targets returns the index in the snapshot of each cluster in the binding's
// target list; -1 stands for a cluster that is not there.
func (p *Pass) Targets() []int32 { return p.targets }

// IsTarget reports whether the cluster is in the binding's target list.
func (p *Pass) IsTarget(cluster *ClusterInfo) bool { return p.held[cluster.index] > 0 }

// Held returns the replicas that the target list gives the cluster.
func (p *Pass) Held(cluster *ClusterInfo) int32 {
	if at := p.held[cluster.index]; at > 0 {
		return p.Spec.Clusters[at-1].Replicas
	}
	return 0
}

// Tolerating returns the first toleration of the binding that tolerates a taint, or nil.
func (p *Pass) Tolerating(taint *corev1.Taint) *corev1.Toleration {
	tolerations := p.Spec.Placement.ClusterTolerations
	for i := range tolerations {
		if Tolerates(&tolerations[i], taint) {
			return &tolerations[i]
		}
	}
	return nil
}

// Tolerates reports whether a toleration tolerates a taint, whatever its seconds.
func Tolerates(t *corev1.Toleration, taint *corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	return t.Operator == corev1.TolerationOpExists || (t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.Value == taint.Value
}

// Full returns why the cluster gets no more replicas of the binding, although it may keep those it has: it is not Ready, or its
// condition Ready changes often and the binding does not tolerate that. It returns BoundNone if the cluster can get more.
func (p *Pass) Full(cluster *ClusterInfo) replicas.Bound {
	if cluster.NotReady {
		return replicas.BoundNotReady
	}
	for i := range cluster.Taints {
		taint := &cluster.Taints[i].Taint
		if taint.Key == clusterv1alpha1.TaintClusterFlapping && p.Tolerating(taint) == nil {
			return replicas.BoundFlapping
		}
	}
	return replicas.BoundNone
}

// Served reports whether the cluster serves the kind of the template.
func (p *Pass) Served(cluster *ClusterInfo) bool {
	if p.servedBy != cluster.apis {
		p.servedBy = cluster.apis
		p.served = cluster.HasAPI(p.Spec.Resource.APIVersion, p.Spec.Resource.Kind)
	}
	return p.served
}

// Tiered reports whether the term in use has overflow affinities.
func (p *Pass) Tiered() bool { return p.tiered }

// Mismatch returns which part of the affinity in use does not select the cluster; empty if the affinity selects it.
func (p *Pass) Mismatch(cluster *ClusterInfo) string { return p.affinity.Mismatch(cluster.Object) }

// Tier returns 0 for a cluster that the affinity selects, k for one that the
// k-th overflow affinity selects first, or OutsideTiers.
func (p *Pass) Tier(cluster *ClusterInfo) int32 {
	if p.affinity.Matches(cluster.Object) {
		return 0
	}
	for i := range p.overflow {
		if p.overflow[i].Matches(cluster.Object) {
			return int32(i) + 1
		}
	}
	return OutsideTiers
}
