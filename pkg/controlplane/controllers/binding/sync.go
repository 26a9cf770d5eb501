package binding

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/eviction"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/manifest"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/override"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scope"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
)

// syncing is the writing of all Works of one binding.
type syncing struct {
	*reconciler
	binding     workv1alpha2.Binding
	id          string
	template    *unstructured.Unstructured
	targets     []workv1alpha2.TargetCluster
	completions map[string]int64
	// existing are the Works of the binding before. They are shared and read-only.
	existing []workv1alpha1.Work
}

// run writes the Work of every target. One that fails does not keep the others
// from being written. It reports whether any was changed.
func (s *syncing) run(ctx context.Context) (bool, error) {
	if len(s.targets) == 0 {
		return false, nil
	}
	policies, err := works.ListOverridePolicies(ctx, s.client, s.template.GetNamespace())
	if err != nil {
		return false, err
	}
	s.completions = completions(s.template, s.binding.GetSpec(), s.targets)
	errs := make([]error, len(s.targets))
	var changed atomic.Bool
	var g errgroup.Group
	g.SetLimit(parallel)
	for i := range s.targets {
		g.Go(func() error {
			result, err := s.one(ctx, &s.targets[i], policies)
			if err == nil && result != works.Unchanged {
				changed.Store(true)
			}
			errs[i] = err
			return nil
		})
	}
	_ = g.Wait() // the errors are in errs
	return changed.Load(), errors.Join(errs...)
}

// one writes the Work of one target.
func (s *syncing) one(ctx context.Context, target *workv1alpha2.TargetCluster, policies override.Policies) (works.Result, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := s.client.Get(ctx, client.ObjectKey{Name: target.Name}, cluster, client.UnsafeDisableDeepCopy); err != nil {
		return works.Unchanged, fmt.Errorf("getting cluster %q: %w", target.Name, err)
	}
	if cluster.DeletionTimestamp != nil {
		return works.Unchanged, nil
	}
	obj, err := s.revise(target)
	if err != nil {
		return works.Unchanged, fmt.Errorf("cluster %q: %w", target.Name, err)
	}
	obj, applied, err := override.Apply(obj, cluster, policies)
	if err != nil {
		s.overrides.Failed(s.template, err)
		return works.Unchanged, errors.Join(err, s.discard(ctx, target.Name, err))
	}
	annotations, err := applied.Annotations()
	if err != nil {
		return works.Unchanged, err
	}
	if s.statefulFailover {
		obj.SetLabels(eviction.Inject(s.binding.GetSpec(), target.Name, obj.GetLabels()))
	}
	want := s.want(obj, target.Name, annotations)
	result, err := s.works.Write(ctx, want)
	if err != nil || result == works.Unchanged {
		return result, err
	}
	if result == works.Created {
		s.ledger.created(ledgerKey(s.binding, s.id), types.NamespacedName{Namespace: want.Namespace, Name: want.Name})
	}
	s.overrides.Succeeded(s.template, target.Name, applied)
	return result, nil
}

// revise returns a copy of the template with the replicas of a target.
func (s *syncing) revise(target *workv1alpha2.TargetCluster) (*unstructured.Unstructured, error) {
	obj := s.template.DeepCopy()
	spec := s.binding.GetSpec()
	if spec.IsWorkload() && s.interpreter.HookEnabled(obj.GroupVersionKind(), configv1alpha1.InterpreterOperationReviseReplica) {
		revised, err := s.interpreter.ReviseReplica(obj, int64(target.Replicas))
		if err != nil {
			return nil, fmt.Errorf("revising replicas: %w", err)
		}
		obj = revised
	}
	if err := override.IdentityOf(s.template).Check(obj.Object); err != nil {
		return nil, fmt.Errorf("revising replicas: %w", err)
	}
	if s.completions == nil {
		return obj, nil
	}
	n, ok := s.completions[target.Name]
	if !ok {
		return nil, fmt.Errorf("no completions found for cluster %s", target.Name)
	}
	if err := unstructured.SetNestedField(obj.Object, n, "spec", "completions"); err != nil {
		return nil, fmt.Errorf("setting completions: %w", err)
	}
	return obj, nil
}

func (s *syncing) want(obj *unstructured.Unstructured, cluster string, annotations map[string]string) *works.Want {
	spec := s.binding.GetSpec()
	key := types.NamespacedName{Namespace: s.binding.GetNamespace(), Name: s.binding.GetName()}
	origin := s.scope.Annotations(key)
	maps.Copy(origin, annotations)
	return &works.Want{
		Namespace:          names.ExecutionNamespace(cluster),
		Name:               names.Work(obj.GetKind(), obj.GetName(), obj.GetNamespace()),
		Labels:             map[string]string{s.scope.IDLabel: s.id},
		Annotations:        origin,
		Object:             obj,
		Binding:            &manifest.BindingRef{Namespace: key.Namespace, Name: key.Name, PermanentID: s.id},
		UID:                s.template.GetUID(),
		Generation:         s.template.GetGeneration(),
		ConflictResolution: manifest.ConflictResolution(obj, spec.ConflictResolution),
		Suspend:            new(scope.DispatchingSuspended(spec.Suspension, cluster)),
		Preserve:           new(ptr.Deref(spec.PreserveResourcesOnDeletion, false)),
	}
}
