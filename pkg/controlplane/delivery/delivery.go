// Package delivery decides what a binding may deliver to members. Users can create
// bindings, so every controller that reads the template of a binding checks it.
package delivery

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
)

// Reasons of the condition.
const (
	// ReasonForeignNamespace is for a template of another namespace.
	ReasonForeignNamespace = "ForeignNamespace"
	// ReasonReservedNamespace is for a template in a namespace of the control plane.
	ReasonReservedNamespace = "ReservedNamespace"
	// ReasonReservedAPI is for a template of an API that controls the federation.
	ReasonReservedAPI = "ReservedAPI"
	// ReasonWrongScope is for a cluster-scoped template of a ResourceBinding that no
	// template of the namespace depends on, for a namespaced one without a
	// namespace, and for a namespaced template of a ClusterResourceBinding.
	ReasonWrongScope = "WrongScope"
	// ReasonReservedObject is for the Service that every cluster has for its own API
	// server, with its Endpoints and EndpointSlice.
	ReasonReservedObject = "ReservedObject"
	// ReasonOverrideForbidden is for an override that changes which object it is.
	ReasonOverrideForbidden = "OverrideForbidden"
	// ReasonOverrideTooLarge is for overrides that exceed what the overrides of an object may take.
	ReasonOverrideTooLarge = "OverrideTooLarge"
	// ReasonWorkTooLarge is for a template that is too large to be stored in a Work.
	ReasonWorkTooLarge = "WorkTooLarge"
	// ReasonActsInControlPlane is for a template that would act on the control plane, which cannot deactivate it.
	ReasonActsInControlPlane = "ActsInControlPlane"
	// ReasonDeletionSuspended is for an object that is not deleted from a cluster while dispatching to it is suspended.
	ReasonDeletionSuspended = "DeletionSuspended"
	// ReasonTypeDeleted is for a template that was deleted with the CRD of its type: its
	// objects stay in the clusters.
	ReasonTypeDeleted = "TypeDeleted"
)

// Refusal is why a binding does not deliver.
type Refusal struct {
	// Reason is one of the constants.
	Reason string
	// Message is for users. It names the field and the allowed values.
	Message string
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

// Check returns why a binding of the namespace must not deliver what it refers
// to, or nil. The namespace is empty for a ClusterResourceBinding. A reference of
// a ResourceBinding without a namespace passes: whether it is to a cluster-scoped
// dependency is for the caller to check.
func Check(namespace string, ref *workv1alpha2.ObjectReference) *Refusal {
	switch {
	case namespace == "" && ref.Namespace != "":
		return &Refusal{ReasonWrongScope, fmt.Sprintf(
			"spec.resource.namespace is %q; a ClusterResourceBinding delivers cluster-scoped objects only", ref.Namespace)}
	case namespace != "" && ref.Namespace != "" && ref.Namespace != namespace:
		return &Refusal{ReasonForeignNamespace, fmt.Sprintf(
			"spec.resource.namespace is %q; a ResourceBinding delivers objects of its own namespace only", ref.Namespace)}
	case names.ReservedNamespace(ref.Namespace):
		return &Refusal{ReasonReservedNamespace, fmt.Sprintf(
			"namespace %q belongs to the control plane; nothing in it is delivered", ref.Namespace)}
	case templates.ReservedAPI(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)):
		return &Refusal{ReasonReservedAPI, fmt.Sprintf(
			"%s of %s controls the federation and is not delivered", ref.Kind, ref.APIVersion)}
	case ownObject(ref):
		return &Refusal{ReasonReservedObject, fmt.Sprintf(
			"%s %q in namespace %q leads to the API server of its own cluster and is not delivered to others", ref.Kind, ref.Name, ref.Namespace)}
	}
	return nil
}

// ownObject reports whether an object is part of a Service that every cluster makes for itself.
func ownObject(ref *workv1alpha2.ObjectReference) bool {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	return (gvk.Group == "" && (gvk.Kind == "Service" || gvk.Kind == "Endpoints") || gvk.Group == "discovery.k8s.io") &&
		validation.OwnService(types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
}

// EventObjects returns what an event about a binding is recorded on: the binding and a reference to its template, unless
// the binding must not deliver it. A user who may write bindings in one namespace must not write events about objects in
// others.
func EventObjects(b workv1alpha2.Binding) []runtime.Object {
	out := []runtime.Object{b}
	ref := &b.GetSpec().Resource
	if Check(b.GetNamespace(), ref) == nil {
		out = append(out, &corev1.ObjectReference{
			APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID, ResourceVersion: ref.ResourceVersion,
		})
	}
	return out
}

// Depends reports whether any of the dependencies of a template is on an object, by
// its name or by its labels.
func Depends(ctx context.Context, store *templates.Store, deps []configv1alpha1.DependentObjectReference, on *workv1alpha2.ObjectReference) (bool, error) {
	for i := range deps {
		dep := &deps[i]
		if !OnKind(dep, on.APIVersion, on.Kind, on.Namespace) {
			continue
		}
		if dep.Name != "" || dep.LabelSelector == nil {
			if dep.Name == on.Name {
				return true, nil
			}
			continue
		}
		obj, err := store.Get(ctx, schema.FromAPIVersionAndKind(on.APIVersion, on.Kind), on.Namespace, on.Name)
		if client.IgnoreNotFound(err) != nil {
			return false, err
		}
		if err == nil && SelectsLabels(dep, obj.GetLabels()) {
			return true, nil
		}
	}
	return false, nil
}

// OnKind reports whether a dependency is on objects of a kind in a namespace.
func OnKind(dep *configv1alpha1.DependentObjectReference, apiVersion, kind, namespace string) bool {
	return dep.APIVersion == apiVersion && dep.Kind == kind && dep.Namespace == namespace
}

// SelectsLabels reports whether a dependency by labels selects an object with labels.
func SelectsLabels(dep *configv1alpha1.DependentObjectReference, have map[string]string) bool {
	if dep.LabelSelector == nil {
		return false
	}
	selector, err := validation.LabelSelector(dep.LabelSelector)
	return err == nil && selector.Matches(labels.Set(have))
}
