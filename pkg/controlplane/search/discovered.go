package search

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	restclient "k8s.io/client-go/rest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// discoveryInterval is the time until the kinds of an API version are read again.
	discoveryInterval = 10 * time.Second
	// discoveryTimeout is how long the control plane is waited for.
	discoveryTimeout = 5 * time.Second
)

// discovered are the kinds that the control plane serves. The RESTMapper of the manager does not forget kinds.
type discovered struct {
	client   restclient.Interface
	versions map[schema.GroupVersion]discoveredVersion
}

// discoveredVersion has the kinds of an API version; they are nil until they are known.
type discoveredVersion struct {
	kinds sets.Set[string]
	read  time.Time
}

// has reports whether the control plane serves a kind. If it does not answer, the last answer counts, and true before the first.
func (d *discovered) has(ctx context.Context, kind schema.GroupVersionKind, now time.Time) bool {
	version := kind.GroupVersion()
	known := d.versions[version]
	if now.Sub(known.read) >= discoveryInterval {
		kinds, err := d.kinds(ctx, version)
		if err == nil {
			known.kinds = kinds
		} else {
			ctrllog.FromContext(ctx).V(4).Info("Reading the kinds of the control plane failed, trying again", "version", version.String(), "err", err.Error())
		}
		known.read = now
		d.versions[version] = known
	}
	return known.kinds == nil || known.kinds.Has(kind.Kind)
}

// kinds returns the kinds of an API version: none if the control plane does not serve it.
func (d *discovered) kinds(ctx context.Context, version schema.GroupVersion) (sets.Set[string], error) {
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	path := "/apis/" + version.String()
	if version.Group == "" {
		path = "/api/" + version.Version
	}
	var list metav1.APIResourceList
	out := sets.New[string]()
	if err := d.client.Get().AbsPath(path).Do(ctx).Into(&list); err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	for _, r := range list.APIResources {
		if !strings.Contains(r.Name, "/") { // a subresource has a kind of its own
			out.Insert(r.Kind)
		}
	}
	return out, nil
}
