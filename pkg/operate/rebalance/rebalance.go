// Package rebalance triggers a fresh schedule of workloads and returns which replicas moved.
package rebalance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/wait"
	appsv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/apps/v1alpha1"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

// ttlSeconds is the time after which a finished WorkloadRebalancer is deleted.
const ttlSeconds = 600

// Request names what is scheduled anew.
type Request struct {
	// Workloads are the templates; none is there twice.
	Workloads []appsv1alpha1.ObjectReference
	// Timeout limits each wait.
	Timeout time.Duration
	// Publish receives what a wait that takes long waits for. Optional.
	Publish func(reason error)
}

// Move is the schedule of one workload before and after.
type Move struct {
	Workload      appsv1alpha1.ObjectReference
	Before, After []workv1alpha2.TargetCluster
	// Notes name the clusters of the placement that get no more replicas because their condition Ready changes often.
	Notes []string
}

// Plan is a request whose bindings were read.
type Plan struct {
	client  client.Client
	request Request
	before  [][]workv1alpha2.TargetCluster
	// rebalancer is the object that Start created.
	rebalancer *appsv1alpha1.WorkloadRebalancer
}

// New reads the bindings of the workloads. It returns an error that names every workload without one, and writes
// nothing.
func New(ctx context.Context, c client.Client, r Request) (*Plan, error) {
	p := &Plan{client: c, request: r}
	var errs []error
	for _, w := range r.Workloads {
		b, err := p.binding(ctx, w)
		if apierrors.IsNotFound(err) {
			err = fmt.Errorf("%s is not propagated: it has no binding; create a policy that selects it first", describe(w))
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p.before = append(p.before, slices.Clone(b.GetSpec().Clusters))
	}
	return p, errors.Join(errs...)
}

// Start creates a WorkloadRebalancer and returns its name. It is deleted by itself 10 minutes after it is finished.
func (p *Plan) Start(ctx context.Context) (name string, err error) {
	ttl := int32(ttlSeconds)
	p.rebalancer = &appsv1alpha1.WorkloadRebalancer{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "rebalance-"},
		Spec:       appsv1alpha1.WorkloadRebalancerSpec{Workloads: p.request.Workloads, TTLSecondsAfterFinished: &ttl},
	}
	if err := p.client.Create(ctx, p.rebalancer); err != nil {
		return "", fmt.Errorf("creating a WorkloadRebalancer: %w", err)
	}
	return p.rebalancer.Name, nil
}

// Wait returns what moved, in the order of the request, when every workload is scheduled anew.
func (p *Plan) Wait(ctx context.Context) ([]Move, error) {
	o := wait.Options{Timeout: p.request.Timeout, Publish: p.request.Publish}
	if err := wait.Until(ctx, o, p.triggered); err != nil {
		return nil, fmt.Errorf("WorkloadRebalancer %q: %w", p.rebalancer.Name, err)
	}
	bindings := make([]workv1alpha2.Binding, len(p.request.Workloads))
	err := wait.Until(ctx, o, func(ctx context.Context) error {
		var pending []error
		for i, w := range p.request.Workloads {
			b, err := p.binding(ctx, w)
			if err == nil && !scheduled(b) {
				err = fmt.Errorf("%s is not scheduled yet%s", describe(w), reason(b))
			}
			if err != nil {
				pending = append(pending, err)
				continue
			}
			bindings[i] = b
		}
		return errors.Join(pending...)
	})
	if err != nil {
		return nil, err
	}
	var list clusterv1alpha1.ClusterList
	if err := p.client.List(ctx, &list); err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("listing the clusters: %w", err)
	}
	var objects []*clusterv1alpha1.Cluster
	for i := range list.Items {
		objects = append(objects, &list.Items[i])
	}
	clusters := framework.SnapshotOf(objects, false)
	var moves []Move
	for i, w := range p.request.Workloads {
		m := Move{Workload: w, Before: p.before[i], After: bindings[i].GetSpec().Clusters}
		m.Notes = m.flapping(bindings[i], clusters)
		moves = append(moves, m)
	}
	return moves, nil
}

// flapping returns the notes of a move.
func (m *Move) flapping(b workv1alpha2.Binding, clusters *framework.Snapshot) (notes []string) {
	spec := b.GetSpec()
	if spec.Placement == nil {
		return nil
	}
	var pass framework.Pass
	pass.Start(&framework.Binding{Spec: spec}, clusters)
	pass.Use(nil)
	for i := range spec.Placement.ClusterAffinities {
		if spec.Placement.ClusterAffinities[i].AffinityName == b.GetStatus().SchedulerObservedAffinityName {
			pass.Use(&spec.Placement.ClusterAffinities[i])
		}
	}
	for i := range clusters.Len() {
		c := clusters.At(i)
		before, _ := find(m.Before, c.Name())
		after, is := find(m.After, c.Name())
		if pass.Mismatch(c) != "" || pass.Full(c) != replicas.BoundFlapping || is && (after > before || after == spec.Replicas) {
			continue
		}
		notes = append(notes, c.Name()+" gets no more replicas: its condition Ready changes often, it is "+clustercondition.Flaps(c.Object))
	}
	return notes
}

// triggered returns an error until every workload was triggered.
func (p *Plan) triggered(ctx context.Context) error {
	if err := p.client.Get(ctx, client.ObjectKeyFromObject(p.rebalancer), p.rebalancer); err != nil {
		return wait.Terminal(fmt.Errorf("reading it: %w", err))
	}
	if p.rebalancer.Status.FinishTime == nil {
		return errors.New("karmada-controller-manager has not finished it yet")
	}
	var errs []error
	for _, w := range p.rebalancer.Status.ObservedWorkloads {
		if w.Result != appsv1alpha1.RebalanceSuccessful {
			errs = append(errs, fmt.Errorf("%s: %s", describe(w.Workload), cmp.Or(string(w.Reason), string(w.Result))))
		}
	}
	return wait.Terminal(errors.Join(errs...))
}

// scheduled reports whether a binding was scheduled after it was triggered.
func scheduled(b workv1alpha2.Binding) bool {
	triggered, last := b.GetSpec().RescheduleTriggeredAt, b.GetStatus().LastScheduledTime
	return b.GetStatus().SchedulerObservedGeneration == b.GetGeneration() && (triggered == nil || last != nil && !last.Before(triggered))
}

// reason returns why the scheduler found no clusters for a binding, after a colon, or "".
func reason(b workv1alpha2.Binding) string {
	c := meta.FindStatusCondition(b.GetStatus().Conditions, workv1alpha2.Scheduled)
	if c == nil || c.Status == metav1.ConditionTrue || c.Message == "" {
		return ""
	}
	return ": " + c.Message
}

func (p *Plan) binding(ctx context.Context, w appsv1alpha1.ObjectReference) (workv1alpha2.Binding, error) {
	namespace, name := eviction.RebalancedBinding(w)
	var b workv1alpha2.Binding = &workv1alpha2.ClusterResourceBinding{}
	if namespace != "" {
		b = &workv1alpha2.ResourceBinding{}
	}
	if err := p.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, b); err != nil {
		return nil, fmt.Errorf("reading the binding of %s: %w", describe(w), err)
	}
	return b, nil
}

// describe returns a workload as TYPE/NAME, with its namespace.
func describe(w appsv1alpha1.ObjectReference) string {
	text := strings.ToLower(w.Kind) + "/" + w.Name
	if w.Namespace != "" {
		text += fmt.Sprintf(" in namespace %q", w.Namespace)
	}
	return text
}

// String returns the move as users read it: TYPE/NAME and, of every cluster whose replicas changed, the number before and
// after; of objects without replicas, the clusters that were added and removed.
func (m Move) String() string {
	name := strings.ToLower(m.Workload.Kind) + "/" + m.Workload.Name
	var changes []string
	for _, cluster := range m.clusters() {
		before, was := find(m.Before, cluster)
		after, is := find(m.After, cluster)
		switch {
		case was && is && before == after:
		case !was && after == 0:
			changes = append(changes, cluster+" added")
		case !is && before == 0:
			changes = append(changes, cluster+" removed")
		default:
			changes = append(changes, fmt.Sprintf("%s %d -> %d", cluster, before, after))
		}
	}
	if len(changes) == 0 {
		changes = []string{"not moved"}
	}
	return strings.Join(append([]string{name + ": " + strings.Join(changes, ", ")}, m.Notes...), "; ")
}

// clusters returns the names of all clusters of the move, sorted.
func (m Move) clusters() []string {
	var out []string
	for _, c := range slices.Concat(m.Before, m.After) {
		out = append(out, c.Name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func find(clusters []workv1alpha2.TargetCluster, name string) (count int32, found bool) {
	i := slices.IndexFunc(clusters, func(c workv1alpha2.TargetCluster) bool { return c.Name == name })
	if i < 0 {
		return 0, false
	}
	return clusters[i].Replicas, true
}
