package registry

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/karmada-toolkit/karmada/internal/extension"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/aggregated/internalversion"
)

// strategy implements how clusters are created, changed and deleted.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator

	resourceModeling bool
	now              func() metav1.Time
}

var (
	_ rest.RESTCreateStrategy  = strategy{}
	_ rest.RESTUpdateStrategy  = strategy{}
	_ rest.RESTDeleteStrategy  = strategy{}
	_ rest.ResetFieldsStrategy = strategy{}
	_ rest.RESTUpdateStrategy  = statusStrategy{}
	_ rest.ResetFieldsStrategy = statusStrategy{}
)

func versioned(obj runtime.Object) *clusterv1alpha1.Cluster {
	return obj.(*internalversion.Cluster).Versioned()
}

// NamespaceScoped implements rest.RESTCreateStrategy.
func (strategy) NamespaceScoped() bool { return false }

// PrepareForCreate implements rest.RESTCreateStrategy.
func (s strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	clusterv1alpha1.PrepareClusterForCreate(versioned(obj), s.resourceModeling)
}

// PrepareForUpdate implements rest.RESTUpdateStrategy.
func (s strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	restore(&versioned(obj).Spec, &versioned(old).Spec)
	clusterv1alpha1.PrepareClusterForUpdate(versioned(obj), versioned(old), s.resourceModeling)
}

// Validate implements rest.RESTCreateStrategy.
func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateNewCluster(versioned(obj))
}

// ValidateUpdate implements rest.RESTUpdateStrategy.
func (strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return append(validation.ValidateClusterUpdate(versioned(obj), versioned(old)), limitAgent(ctx, versioned(obj), versioned(old))...)
}

// WarningsOnCreate implements rest.RESTCreateStrategy.
func (strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return taintWarnings(versioned(obj).Spec.Taints, nil)
}

// WarningsOnUpdate implements rest.RESTUpdateStrategy.
func (strategy) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	return taintWarnings(versioned(obj).Spec.Taints, versioned(old).Spec.Taints)
}

// noExecute is the warning about taints with the effect NoExecute.
const noExecute = "taint %s: NoExecute evicts workloads that do not tolerate it at once, but only if karmada-controller-manager runs with --feature-gates=Failover=true and --enable-no-execute-taint-eviction"

// taintWarnings warns of new taints that should evict and do not yet. The control
// plane's own are left out.
func taintWarnings(taints, known []corev1.Taint) []string {
	var out []string
	for i := range taints {
		t := &taints[i]
		own := t.Key == clusterv1alpha1.TaintClusterNotReady || t.Key == clusterv1alpha1.TaintClusterUnreachable
		if t.Effect != corev1.TaintEffectNoExecute || own || slices.ContainsFunc(known, func(k corev1.Taint) bool { return k.MatchTaint(t) }) {
			continue
		}
		out = append(out, fmt.Sprintf(noExecute, t.Key))
	}
	return out
}

// Canonicalize implements rest.RESTCreateStrategy.
func (s strategy) Canonicalize(obj runtime.Object) {
	clusterv1alpha1.CanonicalizeCluster(versioned(obj), s.now())
}

// AllowCreateOnUpdate implements rest.RESTUpdateStrategy.
func (strategy) AllowCreateOnUpdate() bool { return false }

// AllowUnconditionalUpdate implements rest.RESTUpdateStrategy.
func (strategy) AllowUnconditionalUpdate() bool { return true }

// GetResetFields implements rest.ResetFieldsStrategy: writers of a cluster do not
// come to own its status.
func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return extension.ResetFields(clusterv1alpha1.GroupVersion, "status")
}

// statusStrategy implements how the status of a cluster is changed.
type statusStrategy struct{ strategy }

// PrepareForUpdate implements rest.RESTUpdateStrategy.
func (statusStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	if _, ok := agent(ctx); ok {
		rewordConditions(versioned(obj))
	}
	clusterv1alpha1.PrepareClusterForStatusUpdate(versioned(obj), versioned(old))
}

// ValidateUpdate implements rest.RESTUpdateStrategy. A status is not validated, but for its size.
func (statusStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return limitAgent(ctx, versioned(obj), versioned(old))
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return extension.ResetFields(clusterv1alpha1.GroupVersion, "spec", "metadata")
}

// Delete implements rest.GracefulDeleter. The webhook that protects other objects
// does not see clusters, so it is done here.
func (c *Clusters) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	obj, deleted, err := c.Store.Delete(ctx, name, extension.UnlessProtected(clusterv1alpha1.Resource("clusters"), validate), options)
	obj, err = c.view(ctx, obj, err)
	return obj, deleted, err
}

// DeleteCollection implements rest.CollectionDeleter.
func (c *Clusters) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, which *metainternalversion.ListOptions) (runtime.Object, error) {
	list, err := c.Store.DeleteCollection(ctx, extension.UnlessProtected(clusterv1alpha1.Resource("clusters"), validate), options, which)
	return c.view(ctx, list, err)
}
