// Package orphans finds the objects in member clusters whose Work does not exist in the
// control plane: those of an earlier membership, and those that were applied after the
// backup from which the control plane was restored. It reports them in a condition of the
// Cluster, and deletes them when a user confirms that.
package orphans

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/ptr"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/orphan"
)

// page is the number of objects in a page of a list.
const page = 200

// Object is an object in a member whose Work does not exist.
type Object struct {
	gvr  schema.GroupVersionResource
	kind string
	key  types.NamespacedName
	uid  types.UID
}

// String returns the kind, the namespace and the name.
func (o Object) String() string {
	if o.key.Namespace == "" {
		return o.kind + " " + o.key.Name
	}
	return o.kind + " " + o.key.String()
}

// weight sorts first the objects whose deletion deletes others.
func (o Object) weight() int {
	if o.kind == "Namespace" || o.kind == "CustomResourceDefinition" {
		return 0
	}
	return 1
}

// API is the part of a member that a search uses.
type API interface {
	Discovery() discovery.DiscoveryInterface
	Metadata() metadata.Interface
	// OnClose calls a function when the member is closed, and Incarnation is that of its store.
	OnClose(fn func()) (forget func() bool)
	Incarnation() access.Incarnation
}

// listTimeout bounds one list of a search, which ends with the first list that takes longer.
const listTimeout = 10 * time.Second

// Find returns the objects in a member that name a Work of the execution namespace which
// is not in works. Objects whose deletion deletes others are first. It lists the types of
// kinds, or all that the member serves if kinds is nil.
func Find(ctx context.Context, member API, namespace string, works map[string]bool, kinds sets.Set[schema.GroupKind]) ([]Object, error) {
	lists, err := member.Discovery().ServerPreferredResources()
	if len(lists) == 0 && err != nil {
		return nil, fmt.Errorf("discovering the APIs of the member: %w", err)
	}
	var out []Object
	var errs []error
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			if kinds != nil && !kinds.Has(schema.GroupKind{Group: gv.Group, Kind: r.Kind}) {
				continue
			}
			found, err := findKind(ctx, member, gv.WithResource(r.Name), r.Kind, func(m *metav1.PartialObjectMetadata) bool {
				work := m.Annotations[workv1alpha2.WorkNameAnnotation]
				return m.Annotations[workv1alpha2.WorkNamespaceAnnotation] == namespace && work != "" && !works[work] &&
					// An object with an owner has copies of the labels of the owner's template, and is
					// deleted with the owner.
					m.DeletionTimestamp == nil && len(m.OwnerReferences) == 0
			})
			if errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
				return nil, err
			}
			errs = append(errs, err)
			out = append(out, found...)
		}
	}
	slices.SortFunc(out, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.weight(), b.weight()), cmp.Compare(a.String(), b.String()), cmp.Compare(a.gvr.String(), b.gvr.String()))
	})
	return out, errors.Join(errs...)
}

func findKind(ctx context.Context, member API, gvr schema.GroupVersionResource, kind string, orphaned func(*metav1.PartialObjectMetadata) bool) ([]Object, error) {
	var out []Object
	options := metav1.ListOptions{LabelSelector: workv1alpha2.ManagedByKarmadaLabel + "=" + workv1alpha2.ManagedByKarmadaLabelValue, Limit: page}
	for {
		list, err := listPage(ctx, member, gvr, metav1.NamespaceAll, options)
		switch {
		case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err), apierrors.IsForbidden(err), apierrors.IsServiceUnavailable(err):
			return out, nil // some discovered resources cannot be listed
		case err != nil:
			return out, fmt.Errorf("listing %s of the member: %w", gvr.GroupResource(), err)
		}
		for i := range list.Items {
			if m := &list.Items[i]; orphaned(m) {
				out = append(out, Object{gvr: gvr, kind: kind, key: types.NamespacedName{Namespace: m.Namespace, Name: m.Name}, uid: m.UID})
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return out, nil
		}
	}
}

func listPage(ctx context.Context, member API, gvr schema.GroupVersionResource, namespace string, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	return member.Metadata().Resource(gvr).Namespace(namespace).List(ctx, options)
}

// Delete deletes objects, unless they were replaced since they were found. A namespace is deleted after the others. If it has any other
// object, only its labels and annotations of the control plane are removed.
func Delete(ctx context.Context, member API, objects []Object) error {
	var errs []error
	for _, namespaces := range []bool{false, true} {
		for _, o := range objects {
			if (o.kind == "Namespace") != namespaces {
				continue
			}
			if err := remove(ctx, member, o); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				errs = append(errs, fmt.Errorf("deleting %s: %w", o, err))
			}
		}
	}
	return errors.Join(errs...)
}

// remove deletes an object, or releases a namespace that is in use.
func remove(ctx context.Context, member API, o Object) error {
	resource := member.Metadata().Resource(o.gvr).Namespace(o.key.Namespace)
	if o.kind == "Namespace" {
		occupant, err := Occupant(ctx, member, o.key.Name, func(*metav1.PartialObjectMetadata) bool { return false })
		if err != nil {
			return err
		}
		if occupant != "" {
			patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:null},"annotations":{%q:null,%q:null}}}`, o.uid,
				workv1alpha2.ManagedByKarmadaLabel, workv1alpha2.WorkNamespaceAnnotation, workv1alpha2.WorkNameAnnotation)
			_, err = resource.Patch(ctx, o.key.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		}
	}
	return resource.Delete(ctx, o.key.Name, metav1.DeleteOptions{
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground), Preconditions: &metav1.Preconditions{UID: &o.uid},
	})
}

// Token identifies the objects: confirming the deletion of those in a message does not
// confirm that of later ones.
func Token(objects []Object) string {
	h := fnv.New32a()
	for _, o := range objects {
		_, _ = h.Write([]byte(o.uid))
		_, _ = h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Message names the objects and the command that confirms their deletion. It is
// empty if there are none.
func Message(cluster string, objects []Object) string {
	if len(objects) == 0 {
		return ""
	}
	return report(objects).Message(cluster)
}

// Summary names the first objects.
func Summary(objects []Object) string { return report(objects).Summary() }

func report(objects []Object) orphan.Report {
	r := orphan.Report{Count: len(objects), Token: Token(objects)}
	for _, o := range objects[:min(len(objects), orphan.MaxNames)] {
		r.Names = append(r.Names, o.String())
	}
	return r
}
