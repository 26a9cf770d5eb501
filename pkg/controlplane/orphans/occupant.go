package orphans

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
)

const (
	// maxPages bounds the pages of a list: a namespace in which nothing was found by then counts as one that is in use.
	maxPages = 50
	// maxName is the length of what a member calls an object.
	maxName = 300
)

// Occupant returns an object for which a namespace of a member must not be deleted, or "": one that is there for its own sake, and not
// because Kubernetes creates it in every namespace, or another object of the namespace controls it. PersistentVolumeClaims, which stay
// when their StatefulSet is deleted, count. Objects for which except returns true do not. What cannot be listed counts, too.
func Occupant(ctx context.Context, member API, namespace string, except func(*metav1.PartialObjectMetadata) bool) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	lists, err := member.Discovery().ServerPreferredResources()
	failed, partly := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partly {
		return "", fmt.Errorf("discovering the APIs of the member: %w", err)
	}
	for gv := range failed {
		if stores(gv) {
			return fmt.Sprintf("whatever %s has, which does not answer", gv), nil
		}
	}
	resources, kinds := namespaced(lists)
	for _, gvr := range resources {
		occupant, err := occupantOf(ctx, member, gvr, namespace, func(o *metav1.PartialObjectMetadata) bool {
			by := metav1.GetControllerOf(o)
			return o.DeletionTimestamp == nil && !given(gvr, o) && !except(o) &&
				(by == nil || !kinds.Has(schema.FromAPIVersionAndKind(by.APIVersion, by.Kind).GroupKind()))
		})
		if err != nil || occupant != "" {
			return occupant, err
		}
	}
	return "", nil
}

// stores reports whether an API has objects of its own: that of metrics has none.
func stores(gv schema.GroupVersion) bool { return !strings.HasSuffix(gv.Group, "metrics.k8s.io") }

// namespaced returns what of a member may hold a namespace, and all kinds of objects in namespaces.
func namespaced(lists []*metav1.APIResourceList) (resources []schema.GroupVersionResource, kinds sets.Set[schema.GroupKind]) {
	// What says nothing about whether a namespace is in use.
	transient := []string{"events", "leases", "endpoints", "endpointslices", "controllerrevisions"}
	kinds = sets.New[schema.GroupKind]()
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || !stores(gv) {
			continue
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			if !r.Namespaced {
				continue
			}
			kinds.Insert(schema.GroupKind{Group: gv.Group, Kind: r.Kind})
			if !slices.Contains(transient, r.Name) && sets.New(r.Verbs...).HasAll("list", "create") {
				resources = append(resources, gv.WithResource(r.Name))
			}
		}
	}
	return resources, kinds
}

// given reports whether Kubernetes creates an object in every namespace. Before 1.24 that was a token of the ServiceAccount, too.
func given(gvr schema.GroupVersionResource, o *metav1.PartialObjectMetadata) bool {
	return gvr.Group == "" && (gvr.Resource == "configmaps" && o.Name == "kube-root-ca.crt" || gvr.Resource == "serviceaccounts" && o.Name == "default" ||
		gvr.Resource == "secrets" && o.Annotations[corev1.ServiceAccountNameKey] == "default")
}

func occupantOf(ctx context.Context, member API, gvr schema.GroupVersionResource, namespace string, counts func(*metav1.PartialObjectMetadata) bool) (string, error) {
	options := metav1.ListOptions{Limit: page}
	for range maxPages {
		list, err := listPage(ctx, member, gvr, namespace, options)
		switch {
		case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
			return "", nil // some discovered resources cannot be listed
		case apierrors.IsForbidden(err), apierrors.IsServiceUnavailable(err):
			return fmt.Sprintf("whatever it has of %s, which cannot be listed", gvr.GroupResource()), nil
		case err != nil:
			return "", fmt.Errorf("listing %s in namespace %s of the member: %w", gvr.GroupResource(), namespace, err)
		}
		for i := range list.Items {
			if counts(&list.Items[i]) {
				return plaintext.Line(gvr.GroupResource().String()+" "+list.Items[i].Name, maxName), nil
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return "", nil
		}
	}
	return fmt.Sprintf("more than %d pages of %s", maxPages, gvr.GroupResource()), nil
}
