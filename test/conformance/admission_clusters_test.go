package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/aggregated/internalversion"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/aggregated/registry"
)

// newClusters returns the storage of the aggregated API server before an etcd without objects. The requester may read every
// Secret, as the administrator of the recorded cases.
func newClusters() (*registry.Clusters, error) {
	scheme, err := internalversion.NewScheme()
	if err != nil {
		return nil, err
	}
	codec := serializer.NewCodecFactory(scheme).LegacyCodec(clusterv1alpha1.GroupVersion)
	clusters, _, err := registry.New(registry.Options{
		Typer: scheme, ResourceModeling: true, Now: func() metav1.Time { return metav1.NewTime(time.Unix(0, 0)) },
		Authorizer: authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			return authorizer.DecisionAllow, "", nil
		}),
		RESTOptions: generic.RESTOptions{
			StorageConfig:  (&storagebackend.Config{Codec: codec}).ForResource(clusterv1alpha1.Resource("clusters")),
			ResourcePrefix: "/clusters", Decorator: emptyStorage,
		},
	})
	return clusters, err
}

// createCluster creates a Cluster by a dry run.
func createCluster(ctx context.Context, clusters *registry.Clusters, raw []byte) (map[string]any, error) {
	c := &internalversion.Cluster{}
	if err := utiljson.Unmarshal(raw, c.Versioned()); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	ctx = genericrequest.WithUser(genericrequest.WithNamespace(ctx, ""), &user.DefaultInfo{Name: "system:admin"})
	created, err := clusters.Create(ctx, c, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(created.(*internalversion.Cluster).Versioned())
	if err != nil {
		return nil, fmt.Errorf("encoding the cluster: %w", err)
	}
	out := map[string]any{}
	return out, utiljson.Unmarshal(data, &out)
}

// emptyStore is a storage without objects.
type emptyStore struct{ storage.Interface }

func emptyStorage(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object,
	func() runtime.Object, storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	return emptyStore{}, func() {}, nil
}

// Get implements storage.Interface.
func (emptyStore) Get(_ context.Context, key string, _ storage.GetOptions, _ runtime.Object) error {
	return storage.NewKeyNotFoundError(key, 0)
}

// GetList implements storage.Interface.
func (emptyStore) GetList(context.Context, string, storage.ListOptions, runtime.Object) error {
	return nil
}

// Versioner implements storage.Interface.
func (emptyStore) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }
