package registry

import (
	"context"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/karmada-toolkit/karmada/internal/extension"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/aggregated/internalversion"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
)

// view returns what the requester may read of an answer with clusters, which it changes.
func (c *Clusters) view(ctx context.Context, answer runtime.Object, err error) (runtime.Object, error) {
	var hidden []*internalversion.Cluster
	add := func(cluster *internalversion.Cluster) {
		if hasCredentials(cluster) {
			hidden = append(hidden, cluster)
		}
	}
	switch o := answer.(type) {
	case *internalversion.Cluster:
		add(o)
	case *internalversion.ClusterList:
		for i := range o.Items {
			add(&o.Items[i])
		}
	}
	if err != nil || len(hidden) == 0 {
		return answer, err
	}
	sees, err := c.ids.credentials.seen(ctx)
	if err != nil || sees {
		return answer, err
	}
	for _, cluster := range hidden {
		hide(cluster)
	}
	return answer, nil
}

// seen reports whether the requester may read the credentials for proxies: it may update the cluster, or get the Secrets of clusters.
func (c *credentials) seen(ctx context.Context) (bool, error) {
	user, _ := genericrequest.UserFrom(ctx)
	if c.authorizer == nil || user == nil {
		return c.authorizer == nil, nil
	}
	name := ""
	if info, ok := genericrequest.RequestInfoFrom(ctx); ok {
		name = info.Name
	}
	if cluster, ok := agent(ctx); ok && name == "" {
		name = cluster // it lists nothing else
	}
	var failed error
	for _, a := range []authorizer.AttributesRecord{
		{Verb: "update", APIGroup: clusterv1alpha1.GroupName, APIVersion: clusterv1alpha1.GroupVersion.Version, Resource: "clusters", Name: name},
		{Verb: "get", APIVersion: "v1", Resource: "secrets", Namespace: clusterv1alpha1.NamespaceKarmadaCluster},
	} {
		a.User, a.ResourceRequest = user, true
		decision, _, err := c.authorizer.Authorize(ctx, a)
		if decision == authorizer.DecisionAllow {
			return true, nil
		}
		if err != nil {
			failed = apierrors.NewInternalError(err) // clients that need the credentials repeat the request
		}
	}
	return false, failed
}

func hasCredentials(c *internalversion.Cluster) bool {
	return len(c.Spec.ProxyHeader) > 0 || manifest.MaskUser(c.Spec.ProxyURL) != c.Spec.ProxyURL || strings.Contains(c.Annotations[corev1.LastAppliedConfigAnnotation], "roxy")
}

// hide masks the credentials of a cluster whose maps others read.
func hide(c *internalversion.Cluster) {
	c.Spec.ProxyURL = manifest.MaskUser(c.Spec.ProxyURL)
	c.Spec.ProxyHeader, c.Annotations = maps.Clone(c.Spec.ProxyHeader), maps.Clone(c.Annotations)
	for name := range c.Spec.ProxyHeader {
		c.Spec.ProxyHeader[name] = manifest.Mask
	}
	delete(c.Annotations, corev1.LastAppliedConfigAnnotation)
}

// restore gives a cluster that is written as it was shown the credentials that it has.
func restore(updated, old *clusterv1alpha1.ClusterSpec) {
	if updated.ProxyURL != old.ProxyURL && updated.ProxyURL != manifest.MaskUser(old.ProxyURL) {
		return // they are for the other proxy
	}
	updated.ProxyURL = old.ProxyURL
	for name, value := range updated.ProxyHeader {
		if has, found := old.ProxyHeader[name]; found && value == manifest.Mask {
			updated.ProxyHeader[name] = has
		}
	}
}

// hiding returns the events of a watch with the credentials of clusters masked.
func hiding(from watch.Interface) watch.Interface {
	events := make(chan watch.Event)
	out := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		defer from.Stop()
		for {
			select {
			case e, more := <-from.ResultChan():
				if !more {
					return
				}
				if cached, ok := e.Object.(runtime.CacheableObject); ok {
					e.Object = cached.GetObject()
				}
				if cluster, ok := e.Object.(*internalversion.Cluster); ok && hasCredentials(cluster) {
					own := *cluster
					hide(&own)
					e.Object = &own
				}
				select {
				case events <- e:
				case <-out.StopChan():
					return
				}
			case <-out.StopChan():
				return
			}
		}
	}()
	return out
}

// Get implements rest.Getter.
func (c *Clusters) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := c.Store.Get(ctx, name, options)
	return c.view(ctx, obj, err)
}

// Status is the subresource status of clusters. Its readers see what those of clusters do.
type Status struct {
	*extension.Status
	clusters *Clusters
}

// Get implements rest.Getter.
func (s *Status) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := s.Status.Get(ctx, name, options)
	return s.clusters.view(ctx, obj, err)
}

// Update implements rest.Updater.
func (s *Status) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	obj, created, err := s.Status.Update(ctx, name, objInfo, createValidation, updateValidation, forceAllowCreate, options)
	obj, err = s.clusters.view(ctx, obj, err)
	return obj, created, err
}
