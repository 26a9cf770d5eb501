package registry

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/aggregated/internalversion"
)

// uniqueIDs refuses a second cluster with the same id: one member must not be
// joined under two names.
type uniqueIDs struct {
	store *genericregistry.Store
	turn  chan struct{}
	// credentials checks the Secrets that clusters refer to.
	credentials *credentials
	// loopback lets agents name addresses of the control plane's own machine.
	loopback bool
}

// turn is the right of a request to write an id. It is taken before the ids are compared, and given back when the write has
// ended: other changes of clusters do not wait for each other.
type turn struct {
	ids  *uniqueIDs
	held bool
}

// take waits until no other request of this process writes an id.
func (t *turn) take(ctx context.Context) error {
	if t.held {
		return nil // an update is checked again after a conflict
	}
	select {
	case t.ids.turn <- struct{}{}:
		t.held = true
		return nil
	case <-ctx.Done():
		return apierrors.NewTimeoutError("waiting for other changes of clusters", 1)
	}
}

func (t *turn) done() {
	if t.held {
		<-t.ids.turn
	}
}

// checkCreate returns a check of a new cluster, whose fields are valid, that follows another one.
func (u *uniqueIDs) checkCreate(t *turn, first rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if first != nil {
			if err := first(ctx, obj); err != nil {
				return err
			}
		}
		if err := checkAgent(ctx, versioned(obj), nil, u.loopback); err != nil {
			return err
		}
		if err := u.credentials.check(ctx, versioned(obj), nil); err != nil {
			return err
		}
		return u.check(ctx, t, versioned(obj))
	}
}

// checkUpdate returns a check of a changed cluster, whose fields are valid, that follows another one.
func (u *uniqueIDs) checkUpdate(t *turn, first rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, obj, old runtime.Object) error {
		if first != nil {
			if err := first(ctx, obj, old); err != nil {
				return err
			}
		}
		if err := checkAgent(ctx, versioned(obj), versioned(old), u.loopback); err != nil {
			return err
		}
		if err := u.credentials.check(ctx, versioned(obj), versioned(old)); err != nil {
			return err
		}
		if versioned(obj).Spec.ID == versioned(old).Spec.ID {
			return nil
		}
		return u.check(ctx, t, versioned(obj))
	}
}

// check refuses the cluster when another one has its id.
func (u *uniqueIDs) check(ctx context.Context, t *turn, c *clusterv1alpha1.Cluster) error {
	if c.Spec.ID == "" {
		return nil
	}
	if err := t.take(ctx); err != nil {
		return err
	}
	list := &internalversion.ClusterList{}
	if err := listClusters(ctx, u.store, "", list); err != nil {
		return err
	}
	for i := range list.Items {
		if other := &list.Items[i]; other.Spec.ID == c.Spec.ID && other.Name != c.Name {
			err := field.Duplicate(field.NewPath("spec", "id"), c.Spec.ID)
			err.Detail = "cluster " + other.Name + " has this id; a cluster can be joined once"
			return apierrors.NewInvalid(clusterv1alpha1.Kind("Cluster"), c.Name, field.ErrorList{err})
		}
	}
	return nil
}

// listClusters reads all clusters: version "" reads what is stored now, "0" what
// the watch cache has.
func listClusters(ctx context.Context, store *genericregistry.Store, version string, into *internalversion.ClusterList) error {
	options := storage.ListOptions{ResourceVersion: version, Predicate: storage.Everything, Recursive: true}
	return store.Storage.GetList(ctx, store.KeyRootFunc(ctx), options, into)
}
