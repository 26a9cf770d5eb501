package binding

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// keptRetry is the time between checks whether the type of a template is back.
const keptRetry = 30 * time.Second

// keeper decides whether objects stay in the clusters although their template or their
// binding is gone.
type keeper struct {
	client client.Client
	live   client.Reader
	store  *templates.Store
}

// decide returns what happens to the Works of a binding that is being deleted: they are
// left to the binding that the detector creates next, or kept because the template was
// deleted with its type, or else deleted.
func (k *keeper) decide(ctx context.Context, b workv1alpha2.Binding) (leave bool, kept *delivery.Refusal, err error) {
	if gone, err := k.namespaceGone(ctx, b.GetNamespace()); gone || err != nil {
		return false, nil, err
	}
	ref := &b.GetSpec().Resource
	if delivery.Check(b.GetNamespace(), ref) != nil || ref.Name == "" {
		return false, nil, nil //nolint:nilerr // a binding that must not deliver has no successor
	}
	template, err := k.store.GetLive(ctx, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), ref.Namespace, ref.Name)
	if client.IgnoreNotFound(err) != nil {
		return false, nil, err
	}
	if err != nil || template.GetDeletionTimestamp() != nil {
		kept, err = k.deletedWithType(ctx, ref, b.GetCreationTimestamp())
		return false, kept, err
	}
	if scope.Canonical(b) {
		if leave, err = k.claimed(ctx, template); leave || err != nil {
			return leave, nil, err
		}
	}
	// A template that was created again with its type may be claimed later.
	kept, err = k.deletedWithType(ctx, ref, b.GetCreationTimestamp())
	return false, kept, err
}

// namespaceGone reports whether a namespace is deleted or being deleted: all in it is
// deleted, in any order.
func (k *keeper) namespaceGone(ctx context.Context, name string) (bool, error) {
	if name == "" {
		return false, nil
	}
	namespace := &corev1.Namespace{}
	err := k.live.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("getting namespace %s: %w", name, err)
	}
	return namespace.DeletionTimestamp != nil, nil
}

// claimed reports whether a policy claims the template, so that the detector creates a
// binding for it.
func (k *keeper) claimed(ctx context.Context, template *unstructured.Unstructured) (bool, error) {
	claim, ok := policy.Of(template)
	if !ok || template.GetLabels()[workv1alpha2.ResourceTemplateClaimedByLabel] != "" {
		return false, nil
	}
	p := claim.Scope().New()
	err := k.live.Get(ctx, client.ObjectKey{Namespace: claim.Namespace, Name: claim.Name}, p)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("getting %s: %w", claim.Describe(), err)
	}
	return p.GetDeletionTimestamp() == nil && len(p.PropagationSpec().DependentOverrides) == 0 && policy.Matches(template, p), nil
}

// deletedWithType returns why an object is gone that was delivered at a time, if no user
// deleted it: the CRD of its type is being deleted, was deleted, or was created since.
// Timestamps count seconds: a CRD created in the same second counts as created before.
func (k *keeper) deletedWithType(ctx context.Context, ref *workv1alpha2.ObjectReference, delivered metav1.Time) (*delivery.Refusal, error) {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	name, err := k.definition(ctx, gvk)
	if err != nil {
		return nil, err
	}
	if name == "" {
		if lasting, err := k.lasting(ctx, gvk); lasting || err != nil {
			return nil, err
		}
		return missing(ref, fmt.Sprintf("the CustomResourceDefinition of %s in group %s was deleted", gvk.Kind, gvk.Group)), nil
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err = k.live.Get(ctx, client.ObjectKey{Name: name}, crd)
	switch {
	case apierrors.IsNotFound(err):
		return missing(ref, fmt.Sprintf("CustomResourceDefinition %s was deleted", name)), nil
	case err != nil:
		return nil, fmt.Errorf("getting CustomResourceDefinition %s: %w", name, err)
	case crd.DeletionTimestamp != nil:
		return missing(ref, fmt.Sprintf("CustomResourceDefinition %s is being deleted", name)), nil
	case delivered.Before(&crd.CreationTimestamp):
		return missing(ref, fmt.Sprintf("CustomResourceDefinition %s was deleted and created again", name)), nil
	}
	return nil, nil
}

func missing(ref *workv1alpha2.ObjectReference, cause string) *delivery.Refusal {
	return &delivery.Refusal{Reason: delivery.ReasonTypeDeleted, Message: fmt.Sprintf(
		"%s, and %s %s with it; the objects in the clusters are kept: create %s again to manage them, or delete the works of this binding to delete them",
		cause, ref.Kind, ref.Name, ref.Name)}
}

// definition returns the name of the CRD of a kind, or "" if there is none.
func (k *keeper) definition(ctx context.Context, gvk schema.GroupVersionKind) (string, error) {
	crds, err := k.store.List(ctx, apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), "", labels.Everything())
	if err != nil {
		return "", err
	}
	for _, crd := range crds {
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		if group == gvk.Group && kind == gvk.Kind {
			return crd.GetName(), nil
		}
	}
	return "", nil
}

// lasting reports whether a kind without a CRD is one of Kubernetes or of an aggregated
// API server.
func (k *keeper) lasting(ctx context.Context, gvk schema.GroupVersionKind) (bool, error) {
	own := strings.HasSuffix(gvk.Group, ".karmada.io") || gvk.Group == "multicluster.x-k8s.io"
	if k.client.Scheme().Recognizes(gvk) && !own {
		return true, nil
	}
	service := &apiregistrationv1.APIService{}
	err := k.live.Get(ctx, client.ObjectKey{Name: gvk.Version + "." + gvk.Group}, service)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("getting APIService %s.%s: %w", gvk.Version, gvk.Group, err)
	}
	return err == nil && service.Spec.Service != nil, nil
}

// abandoned deletes the Works that a binding left to the next one, if the template was
// deleted before there was one.
func (r *reconciler) abandoned(ctx context.Context, key client.ObjectKey) error {
	list := &workv1alpha1.WorkList{}
	if err := r.client.List(ctx, list, client.MatchingFields{nameIndex: nameKey(r.scope, key)}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing works: %w", err)
	}
	for i := range list.Items {
		work := &list.Items[i]
		if work.DeletionTimestamp != nil {
			continue
		}
		if remains, err := r.remains(ctx, key, work); remains || err != nil {
			return err
		}
		if err := r.writer.works.Delete(ctx, work); err != nil {
			return err
		}
	}
	return nil
}

// remains reports whether a Work is kept although the cache does not have its binding.
func (r *reconciler) remains(ctx context.Context, key client.ObjectKey, work *workv1alpha1.Work) (bool, error) {
	if err := r.keeper.live.Get(ctx, key, r.scope.New()); !apierrors.IsNotFound(err) {
		return true, err
	}
	obj := objectOf(work)
	if obj == nil {
		return true, nil
	}
	_, err := r.store.GetLive(ctx, obj.GroupVersionKind(), obj.GetNamespace(), obj.GetName())
	if !apierrors.IsNotFound(err) {
		return true, err
	}
	kept, err := r.keeper.deletedWithType(ctx, &workv1alpha2.ObjectReference{
		APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName(),
	}, work.CreationTimestamp)
	return kept != nil, err
}

// objectOf returns the first manifest of a Work, or nil if there is none that can be decoded.
func objectOf(work *workv1alpha1.Work) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	if len(work.Spec.Workload.Manifests) == 0 || obj.UnmarshalJSON(work.Spec.Workload.Manifests[0].Raw) != nil {
		return nil
	}
	return obj
}
