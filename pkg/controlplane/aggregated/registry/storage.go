// Package registry stores clusters: the rules for their creation and change, the
// status subresource, and how they print as a table.
package registry

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/karmada-toolkit/karmada/internal/extension"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/aggregated/internalversion"
)

// Options are what the storage needs to know.
type Options struct {
	// Typer knows the kinds of objects.
	Typer runtime.ObjectTyper
	// RESTOptions configure the storage of objects.
	RESTOptions generic.RESTOptionsGetter
	// ResourceModeling gives clusters default and standard resource models.
	ResourceModeling bool
	// LoopbackEndpoints lets agents publish that their cluster is reached at a loopback or
	// link-local address.
	LoopbackEndpoints bool
	// Authorizer decides whether a requester may read the Secrets that a cluster
	// refers to; nil checks no references.
	Authorizer authorizer.Authorizer
	// Secret reads a Secret of the control plane.
	Secret func(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	// Now is the clock.
	Now func() metav1.Time
}

// Clusters is the storage of the resource clusters.
type Clusters struct {
	*genericregistry.Store

	ids *uniqueIDs
}

var (
	_ rest.StandardStorage      = (*Clusters)(nil)
	_ rest.SingularNameProvider = (*Clusters)(nil)
)

// New returns the storage of clusters and of their status.
func New(o Options) (*Clusters, *Status, error) {
	rules := strategy{ObjectTyper: o.Typer, NameGenerator: names.SimpleNameGenerator, resourceModeling: o.ResourceModeling, now: o.Now}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &internalversion.Cluster{} },
		NewListFunc:               func() runtime.Object { return &internalversion.ClusterList{} },
		DefaultQualifiedResource:  clusterv1alpha1.Resource("clusters"),
		SingularQualifiedResource: clusterv1alpha1.Resource("cluster"),
		CreateStrategy:            rules,
		UpdateStrategy:            rules,
		DeleteStrategy:            rules,
		ResetFieldsStrategy:       rules,
		TableConvertor:            newTable(o.Now),
	}
	ids := &uniqueIDs{store: store, credentials: &credentials{authorizer: o.Authorizer, secret: o.Secret}, turn: make(chan struct{}, 1), loopback: o.LoopbackEndpoints}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: o.RESTOptions}); err != nil {
		return nil, nil, fmt.Errorf("preparing the storage of clusters: %w", err)
	}
	clusters := &Clusters{Store: store, ids: ids}
	return clusters, &Status{extension.NewStatus(store, statusStrategy{rules}), clusters}, nil
}

// Create stores a new cluster. Those who write ids wait for each other, so that no two clusters get the same one. What
// asks others, such as who may read the Secrets, is checked for valid fields only.
func (c *Clusters) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	t := &turn{ids: c.ids}
	defer t.done()
	return c.Store.Create(ctx, obj, c.ids.checkCreate(t, validate), options)
}

// Update implements rest.Updater.
func (c *Clusters) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	t := &turn{ids: c.ids}
	defer t.done()
	obj, created, err := c.Store.Update(ctx, name, objInfo, c.ids.checkCreate(t, createValidation), c.ids.checkUpdate(t, updateValidation), forceAllowCreate, options)
	obj, err = c.view(ctx, obj, err)
	return obj, created, err
}

// Find returns a cluster, from the watch cache where it is there.
func (c *Clusters) Find(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error) {
	obj, err := c.Store.Get(ctx, name, &metav1.GetOptions{ResourceVersion: "0"}) // the requester does not see it
	if err != nil {
		obj, err = c.Store.Get(ctx, name, &metav1.GetOptions{})
	}
	if err != nil {
		return nil, err
	}
	return versioned(obj), nil
}

// All returns every cluster, from the watch cache.
func (c *Clusters) All(ctx context.Context) ([]clusterv1alpha1.Cluster, error) {
	list := &internalversion.ClusterList{}
	if err := c.list(ctx, "0", list); err != nil {
		return nil, err
	}
	out := make([]clusterv1alpha1.Cluster, len(list.Items))
	for i := range list.Items {
		out[i] = clusterv1alpha1.Cluster(list.Items[i])
	}
	return out, nil
}

func (c *Clusters) list(ctx context.Context, version string, into *internalversion.ClusterList) error {
	return listClusters(ctx, c.Store, version, into)
}
