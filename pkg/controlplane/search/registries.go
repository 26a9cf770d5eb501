package search

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/karmada-toolkit/karmada/internal/extension"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	domain "github.com/karmada-toolkit/karmada/pkg/domain/search"
)

// registryOptions are what the storage of registries needs to know.
type registryOptions struct {
	typer       runtime.ObjectTyper
	restOptions generic.RESTOptionsGetter
	// authorizer decides whether a requester may read the Secret of a backend store.
	authorizer authorizer.Authorizer
	// mapper knows the resources of kinds.
	mapper meta.RESTMapper
	now    func() metav1.Time
}

// registries is the storage of the resource resourceregistries.
type registries struct {
	*genericregistry.Store

	authorizer authorizer.Authorizer
	mapper     meta.RESTMapper
}

var (
	_ rest.StandardStorage      = (*registries)(nil)
	_ rest.SingularNameProvider = (*registries)(nil)
	_ rest.RESTCreateStrategy   = registryRules{}
	_ extension.StatusRules     = registryRules{}
	_ extension.StatusRules     = registryStatusRules{}
	_ rest.RESTDeleteStrategy   = registryRules{}
)

// newRegistries returns the storage of registries and of their status.
func newRegistries(o registryOptions) (*registries, *extension.Status, error) {
	rules := registryRules{ObjectTyper: o.typer, NameGenerator: names.SimpleNameGenerator}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &searchv1alpha1.ResourceRegistry{} },
		NewListFunc:               func() runtime.Object { return &searchv1alpha1.ResourceRegistryList{} },
		DefaultQualifiedResource:  searchv1alpha1.Resource("resourceregistries"),
		SingularQualifiedResource: searchv1alpha1.Resource("resourceregistry"),
		CreateStrategy:            rules,
		UpdateStrategy:            rules,
		DeleteStrategy:            rules,
		ResetFieldsStrategy:       rules,
		TableConvertor:            newRegistryTable(o.now),
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: registryKeys{o.restOptions}}); err != nil {
		return nil, nil, fmt.Errorf("preparing the storage of registries: %w", err)
	}
	return &registries{Store: store, authorizer: o.authorizer, mapper: o.mapper}, extension.NewStatus(store, registryStatusRules{rules}), nil
}

// registryKeys are the options of the storage with the keys in etcd of the reference, which have a capital letter.
type registryKeys struct{ generic.RESTOptionsGetter }

// GetRESTOptions implements generic.RESTOptionsGetter.
func (k registryKeys) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := k.RESTOptionsGetter.GetRESTOptions(resource, example)
	options.ResourcePrefix = searchv1alpha1.GroupName + "/resourceRegistries"
	return options, err
}

// storeInterval is the time between two checks whether the store can be read after a start.
const storeInterval = 20 * time.Millisecond

// informer returns an informer that reads the store.
func (r *registries) informer() toolscache.SharedIndexInformer {
	from := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if err := wait.PollUntilContextCancel(ctx, storeInterval, true, func(context.Context) (bool, error) { return r.ReadinessCheck() == nil, nil }); err != nil {
				return nil, err
			}
			return r.List(ctx, &metainternalversion.ListOptions{ResourceVersion: o.ResourceVersion})
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := r.Watch(ctx, &metainternalversion.ListOptions{ResourceVersion: o.ResourceVersion, AllowWatchBookmarks: o.AllowWatchBookmarks})
			if err != nil {
				return nil, err
			}
			return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
				if cached, ok := e.Object.(runtime.CacheableObject); ok {
					e.Object = cached.GetObject()
				}
				return e, true
			}), nil
		},
	}
	return toolscache.NewSharedIndexInformer(stored{from}, &searchv1alpha1.ResourceRegistry{}, 0, toolscache.Indexers{})
}

// stored has an informer list, and not watch from the beginning.
type stored struct{ *toolscache.ListWatch }

// IsWatchListSemanticsUnSupported is read by the informer.
func (stored) IsWatchListSemanticsUnSupported() bool { return true }

// Create stores a new registry.
func (r *registries) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	return r.Store.Create(ctx, obj, r.checkCreate(validate), options)
}

// Update implements rest.Updater. It creates a registry that is applied.
func (r *registries) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.Store.Update(ctx, name, objInfo, r.checkCreate(createValidation), func(ctx context.Context, obj, old runtime.Object) error {
		if err := r.checkStore(ctx, obj.(*searchv1alpha1.ResourceRegistry), old.(*searchv1alpha1.ResourceRegistry)); err != nil || updateValidation == nil {
			return err
		}
		return updateValidation(ctx, obj, old)
	}, forceAllowCreate, options)
}

// checkCreate extends the validation of a new registry by that of its Secret.
func (r *registries) checkCreate(validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if err := r.checkStore(ctx, obj.(*searchv1alpha1.ResourceRegistry), nil); err != nil || validate == nil {
			return err
		}
		return validate(ctx, obj)
	}
}

// Delete implements rest.GracefulDeleter.
func (r *registries) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return r.Store.Delete(ctx, name, extension.UnlessProtected(r.DefaultQualifiedResource, validate), options)
}

// DeleteCollection implements rest.CollectionDeleter.
func (r *registries) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, which *metainternalversion.ListOptions) (runtime.Object, error) {
	return r.Store.DeleteCollection(ctx, extension.UnlessProtected(r.DefaultQualifiedResource, validate), options, which)
}

// checkStore refuses a registry whose requester sends objects to a backend store and may not list them, or sets or changes the
// store and may not read its Secret: the server sends both to the addresses of the store. A nil old is a creation.
func (r *registries) checkStore(ctx context.Context, updated, old *searchv1alpha1.ResourceRegistry) error {
	store := openSearchOf(updated)
	if store == nil || old != nil && equality.Semantic.DeepEqual(updated.Spec, old.Spec) {
		return nil
	}
	err := r.checkLists(ctx, updated)
	if err == nil && extension.PossibleSecret(store.SecretRef) && (old == nil || !equality.Semantic.DeepEqual(store, openSearchOf(old))) {
		err = extension.CheckReadsSecret(ctx, r.authorizer, store.SecretRef, "to which spec.backendStore.openSearch.secretRef refers: its password would go to the addresses of the store")
	}
	return extension.Refuse(r.DefaultQualifiedResource, updated.Name, err)
}

// checkLists returns an error unless the requester may list in the control plane what a registry selects.
func (r *registries) checkLists(ctx context.Context, registry *searchv1alpha1.ResourceRegistry) error {
	user, ok := genericrequest.UserFrom(ctx)
	for kind, namespaces := range domain.Kinds(registry) {
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		if mapping, err := r.mapper.RESTMapping(kind.GroupKind(), kind.Version); err == nil {
			resource = mapping.Resource
		}
		names := namespaces.Names
		if namespaces.All {
			names = []string{""}
		}
		for _, namespace := range names {
			decision := authorizer.DecisionDeny
			var err error
			if ok {
				decision, _, err = r.authorizer.Authorize(ctx, authorizer.AttributesRecord{
					User: user, Verb: "list", APIGroup: resource.Group, APIVersion: resource.Version, Resource: resource.Resource, Namespace: namespace, ResourceRequest: true,
				})
			}
			if decision == authorizer.DecisionAllow {
				continue
			}
			if err != nil {
				return apierrors.NewInternalError(fmt.Errorf("asking whether the requester may list %s: %w", resource.GroupResource(), err))
			}
			return apierrors.NewForbidden(r.DefaultQualifiedResource, registry.Name, fmt.Errorf(
				"the requester cannot list %s in %s of the control plane, which spec.backendStore would send to the addresses of the store", resource.GroupResource(), cmp.Or(namespace, "all namespaces")))
		}
	}
	return nil
}

func openSearchOf(r *searchv1alpha1.ResourceRegistry) *searchv1alpha1.OpenSearchConfig {
	if r.Spec.BackendStore == nil {
		return nil
	}
	return r.Spec.BackendStore.OpenSearch
}

// registryRules are how registries are created, changed and deleted.
type registryRules struct {
	runtime.ObjectTyper
	names.NameGenerator
}

// NamespaceScoped implements rest.RESTCreateStrategy.
func (registryRules) NamespaceScoped() bool { return false }

// PrepareForCreate implements rest.RESTCreateStrategy.
func (registryRules) PrepareForCreate(_ context.Context, obj runtime.Object) {
	r := obj.(*searchv1alpha1.ResourceRegistry)
	r.Generation, r.Status = 1, searchv1alpha1.ResourceRegistryStatus{}
}

// PrepareForUpdate implements rest.RESTUpdateStrategy.
func (registryRules) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	updated, stored := obj.(*searchv1alpha1.ResourceRegistry), old.(*searchv1alpha1.ResourceRegistry)
	updated.Status, updated.Generation = stored.Status, stored.Generation
	if !equality.Semantic.DeepEqual(updated.Spec, stored.Spec) {
		updated.Generation++
	}
}

// Validate implements rest.RESTCreateStrategy.
func (registryRules) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateResourceRegistry(obj.(*searchv1alpha1.ResourceRegistry))
}

// ValidateUpdate implements rest.RESTUpdateStrategy.
func (registryRules) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateResourceRegistryUpdate(obj.(*searchv1alpha1.ResourceRegistry), old.(*searchv1alpha1.ResourceRegistry))
}

// WarningsOnCreate implements rest.RESTCreateStrategy.
func (registryRules) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate implements rest.RESTUpdateStrategy.
func (registryRules) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// Canonicalize implements rest.RESTCreateStrategy.
func (registryRules) Canonicalize(runtime.Object) {}

// AllowCreateOnUpdate implements rest.RESTUpdateStrategy.
func (registryRules) AllowCreateOnUpdate() bool { return false }

// AllowUnconditionalUpdate implements rest.RESTUpdateStrategy.
func (registryRules) AllowUnconditionalUpdate() bool { return true }

// GetResetFields implements rest.ResetFieldsStrategy.
func (registryRules) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return extension.ResetFields(searchv1alpha1.GroupVersion, "status")
}

// registryStatusRules are how the status of registries is changed.
type registryStatusRules struct{ registryRules }

// PrepareForUpdate implements rest.RESTUpdateStrategy.
func (registryStatusRules) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	updated, stored := obj.(*searchv1alpha1.ResourceRegistry), old.(*searchv1alpha1.ResourceRegistry)
	status, managers := updated.Status, updated.ManagedFields
	version := updated.ResourceVersion
	stored.DeepCopyInto(updated)
	updated.Status, updated.ManagedFields, updated.ResourceVersion = status, managers, version
}

// ValidateUpdate implements rest.RESTUpdateStrategy. A status is not validated.
func (registryStatusRules) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (registryStatusRules) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return extension.ResetFields(searchv1alpha1.GroupVersion, "spec", "metadata")
}
