// Package proxy carries requests to member clusters on behalf of users: the
// subresource proxy of a cluster. A request is sent with the impersonator's token
// and the name and groups of the user who made it. The name "*" stands for all
// clusters.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	restclient "k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// AllClusters is the name that stands for every cluster.
const AllClusters = "*"

// Clusters gives member clusters.
type Clusters interface {
	// Find returns one cluster. It must not be changed.
	Find(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error)
	// All returns every cluster. They must not be changed.
	All(ctx context.Context) ([]clusterv1alpha1.Cluster, error)
}

// Options are what the proxy needs.
type Options struct {
	Clusters Clusters
	// Secret returns a Secret of the control plane.
	Secret func(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	// ControlPlane is where requests to all clusters go that name no resource.
	ControlPlane *restclient.Config
	// MinTLSVersion is the lowest version of TLS towards members; 0 means 1.2.
	MinTLSVersion uint16
	// MemberTimeout bounds the wait for each member in requests to all clusters.
	MemberTimeout time.Duration
}

// REST is the subresource proxy of clusters.
type REST struct {
	clusters Clusters
	members  *Members
	all      *allClusters
}

var (
	_ rest.Connecter = (*REST)(nil)
	_ rest.Scoper    = (*REST)(nil)
)

// New returns the subresource.
func New(o Options) (*REST, error) {
	m := NewMembers(o.Secret, o.MinTLSVersion)
	r := &REST{clusters: o.Clusters, members: m}
	home, err := NewControlPlane(o.ControlPlane)
	if err != nil {
		return nil, err
	}
	r.all = &allClusters{clusters: o.Clusters, members: m, home: home, timeout: o.MemberTimeout}
	return r, nil
}

// New implements rest.Storage.
func (r *REST) New() runtime.Object { return &clusterv1alpha1.ClusterProxyOptions{} }

// Destroy implements rest.Storage.
func (r *REST) Destroy() { r.members.End() }

// NamespaceScoped implements rest.Scoper.
func (r *REST) NamespaceScoped() bool { return false }

// ConnectMethods implements rest.Connecter.
func (r *REST) ConnectMethods() []string {
	return []string{
		http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodHead, http.MethodOptions,
	}
}

// NewConnectOptions implements rest.Connecter.
func (r *REST) NewConnectOptions() (options runtime.Object, subpath bool, pathParameter string) {
	return &clusterv1alpha1.ClusterProxyOptions{}, true, "path"
}

// Connect implements rest.Connecter.
func (r *REST) Connect(ctx context.Context, name string, options runtime.Object, responder rest.Responder) (http.Handler, error) {
	o, ok := options.(*clusterv1alpha1.ClusterProxyOptions)
	if !ok {
		return nil, fmt.Errorf("proxy options are %T", options)
	}
	in, ok := InnerFrom(ctx)
	if !ok {
		in = Inner{path: o.Path}
	}
	requester, ok := genericrequest.UserFrom(ctx)
	if name == AllClusters {
		if !ok {
			return nil, errNoUser()
		}
		return r.all.handler(in, requester, responder), nil
	}
	cluster, err := r.clusters.Find(ctx, name)
	if err != nil {
		return nil, err
	}
	m, err := r.members.of(ctx, cluster)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errNoUser()
	}
	return forward(m, in, requester, responder, nil), nil
}

func errNoUser() error { return errors.New("no user found for request") }
