package binding

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/status"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/dependency"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
	"github.com/karmada-toolkit/karmada/pkg/domain/override"
	"github.com/karmada-toolkit/karmada/pkg/domain/propagation"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// workWriter writes the Works of the targets of a binding.
type workWriter struct {
	scope            *scope.Binding
	client           client.Client
	interpreter      env.Interpreter
	works            *works.Writer
	owned            *ownedWorks
	overrides        *works.Overrides
	events           *recorder
	statefulFailover bool
	clock            clock.PassiveClock
	enforceQuotas    bool
	// next holds the cluster at which the next slice of a binding begins.
	next *status.Memory[types.NamespacedName, string]
}

// job is a binding whose Works are written.
type job struct {
	binding  workv1alpha2.Binding
	template *unstructured.Unstructured
	targets  []workv1alpha2.TargetCluster
	// object makes the objects of the targets.
	object *propagation.Object
	// existing are the Works of the binding before. They are shared and read-only.
	existing []workv1alpha1.Work
}

// write writes the Work of every target, also if one of them fails, until a slice is written. It reports whether any was
// changed, and whether targets are left: then it returns no error, as what failed is tried again, and the next call begins
// where this one ended and looks at all targets. What is not changed, or fails, does not count, so the calls come to an end.
func (w *workWriter) write(ctx context.Context, j *job) (changed, more bool, err error) {
	if len(j.targets) == 0 {
		return false, false, nil
	}
	policies, err := works.ListOverridePolicies(ctx, w.client, propagation.OverridingNamespace(j.binding, j.template))
	if err != nil {
		return false, false, err
	}
	j.object = propagation.ObjectOf(j.template, j.binding.GetSpec(), j.targets, w.interpreter)
	key := client.ObjectKeyFromObject(j.binding)
	begin := 0
	if at, ok := w.next.Get(key); ok {
		begin = max(0, slices.IndexFunc(j.targets, func(t workv1alpha2.TargetCluster) bool { return t.Name == at }))
	}
	errs := make([]error, len(j.targets))
	var written atomic.Int32
	var g errgroup.Group
	g.SetLimit(parallel)
	for n := range j.targets {
		i := (begin + n) % len(j.targets)
		if written.Load() >= slice {
			w.next.Set(key, j.targets[i].Name)
			more = true
			break
		}
		g.Go(func() error {
			result, err := w.writeOne(ctx, j, &j.targets[i], policies)
			if err == nil && result != works.Unchanged {
				written.Add(1)
			}
			errs[i] = err
			return nil
		})
	}
	_ = g.Wait() // the errors are in errs
	if more {
		return true, true, nil
	}
	w.next.Delete(key)
	return written.Load() > 0, false, errors.Join(errs...)
}

// writeOne writes the Work of one target.
func (w *workWriter) writeOne(ctx context.Context, j *job, target *workv1alpha2.TargetCluster, policies override.Policies) (works.Result, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := w.client.Get(ctx, client.ObjectKey{Name: target.Name}, cluster, client.UnsafeDisableDeepCopy); err != nil {
		return works.Unchanged, fmt.Errorf("getting cluster %q: %w", target.Name, err)
	}
	if cluster.DeletionTimestamp != nil {
		return works.Unchanged, nil
	}
	var applied override.Applied
	want, err := w.delivered(j, target)
	if want == nil && err == nil {
		want, applied, err = w.compute(ctx, j, target, cluster, policies)
	}
	if err != nil {
		return works.Unchanged, err
	}
	result, err := w.works.Write(ctx, want)
	if err != nil || result == works.Unchanged {
		return result, err
	}
	if result == works.Created {
		w.owned.add(j.binding, types.NamespacedName{Namespace: want.Namespace, Name: want.Name})
	}
	w.overrides.Succeeded(j.template, target.Name, applied)
	return result, nil
}

// compute returns the wanted Work of a target, made of the template, and the overrides in it.
func (w *workWriter) compute(ctx context.Context, j *job, target *workv1alpha2.TargetCluster, cluster *clusterv1alpha1.Cluster, policies override.Policies) (*works.Want, override.Applied, error) {
	revised, err := j.object.Revise(target)
	if err != nil {
		return nil, override.Applied{}, fmt.Errorf("cluster %q: %w", target.Name, err)
	}
	obj, applied, err := override.ApplyInTime(revised, cluster, policies, w.clock)
	if err == nil && len(applied.Namespaced) > 0 {
		err = w.checkQuota(ctx, revised, obj, cluster, policies)
	}
	if err != nil {
		w.overrides.Failed(j.template, err)
		return nil, applied, errors.Join(err, w.discard(ctx, j, target.Name, err))
	}
	annotations, err := applied.Annotations()
	if err != nil {
		return nil, applied, err
	}
	if w.statefulFailover {
		labels, left := eviction.Inject(j.binding.GetSpec(), target.Name, obj.GetLabels())
		if obj.SetLabels(labels); len(left) > 0 {
			w.events.notInjected(j, target.Name, left)
		}
	}
	return w.want(j, obj, target.Name, annotations), applied, nil
}

func (w *workWriter) want(j *job, obj *unstructured.Unstructured, cluster string, annotations map[string]string) *works.Want {
	spec := j.binding.GetSpec()
	key := types.NamespacedName{Namespace: j.binding.GetNamespace(), Name: j.binding.GetName()}
	origin := w.scope.Annotations(key)
	maps.Copy(origin, annotations)
	return &works.Want{
		Namespace:          names.ExecutionNamespace(cluster),
		Name:               names.Work(obj.GetKind(), obj.GetName(), obj.GetNamespace()),
		Labels:             map[string]string{w.scope.IDLabel: w.scope.ID(j.binding)},
		Annotations:        origin,
		Object:             obj,
		Binding:            &manifest.BindingRef{Namespace: key.Namespace, Name: key.Name, PermanentID: w.scope.ID(j.binding)},
		UID:                j.template.GetUID(),
		Generation:         j.template.GetGeneration(),
		ConflictResolution: manifest.ConflictResolution(obj, spec.ConflictResolution),
		Suspend:            new(scope.DispatchingSuspended(spec.Suspension, cluster)),
		Preserve:           new(dependency.Preserves(j.binding, cluster)),
	}
}

// discard deletes the Work that a cluster still has from before an override was
// refused, if it carries another object than the template.
func (w *workWriter) discard(ctx context.Context, j *job, cluster string, refused error) error {
	if !errors.Is(refused, override.ErrForbidden) {
		return nil
	}
	for i := range j.existing {
		work := &j.existing[i]
		if work.Namespace != names.ExecutionNamespace(cluster) || work.DeletionTimestamp != nil || carries(work, j.template) {
			continue
		}
		if err := w.client.Delete(ctx, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}}); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return nil
}

// carries reports whether every manifest of a Work is the template.
func carries(w *workv1alpha1.Work, template *unstructured.Unstructured) bool {
	want := override.IdentityOf(template)
	for i := range w.Spec.Workload.Manifests {
		obj := map[string]any{}
		if json.Unmarshal(w.Spec.Workload.Manifests[i].Raw, &obj) != nil || want.Check(obj) != nil {
			return false
		}
	}
	return true
}
