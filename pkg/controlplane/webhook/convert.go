package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/karmada-toolkit/karmada/internal/quantity"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// newConverter serves the conversion of bindings between v1alpha1 and v1alpha2.
func newConverter() (http.Handler, error) {
	scheme, registry := runtime.NewScheme(), conversion.NewRegistry()
	for _, add := range []func(*runtime.Scheme) error{workv1alpha1.AddToScheme, workv1alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	for _, kind := range []string{"ResourceBinding", "ClusterResourceBinding"} {
		group := schema.GroupKind{Group: workv1alpha2.GroupName, Kind: kind}
		if err := registry.RegisterConverter(group, bindingConverter{}); err != nil {
			return nil, fmt.Errorf("registering the conversion of %s: %w", kind, err)
		}
	}
	return checkedQuantities(conversion.NewWebhookHandler(scheme, registry)), nil
}

// conversionReview has the objects that are to be converted. Those of both scopes have the same quantities.
type conversionReview[T any] struct {
	Request struct {
		Objects []T `json:"objects"`
	} `json:"request"`
}

// checkedQuantities refuses requests with quantities that take minutes to decode. Nobody has to authenticate to send them.
func checkedQuantities(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = errors.Join(quantity.CheckJSON(body, reflect.TypeFor[conversionReview[workv1alpha1.ResourceBinding]]()),
				quantity.CheckJSON(body, reflect.TypeFor[conversionReview[workv1alpha2.ResourceBinding]]()))
		}
		if err != nil {
			http.Error(w, fmt.Sprintf("reading the request: %v", err), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// bindingConverter converts bindings of both scopes.
type bindingConverter struct{}

// ConvertObject implements conversion.Converter.
func (bindingConverter) ConvertObject(_ context.Context, src, dst runtime.Object) error {
	if from, ok := src.(workv1alpha2.Binding); ok {
		if meta, spec, status := oldParts(dst); meta != nil {
			copyMeta(from, meta)
			*spec, *status = oldSpec(from.GetSpec()), oldStatus(from.GetStatus())
			return nil
		}
	}
	if to, ok := dst.(workv1alpha2.Binding); ok {
		if meta, spec, status := oldParts(src); meta != nil {
			copyMeta(meta, to)
			*to.GetSpec(), *to.GetStatus() = newSpec(spec), newStatus(status)
			return nil
		}
	}
	return fmt.Errorf("cannot convert %T to %T", src, dst)
}

// oldParts returns the parts of a binding of v1alpha1, or nil.
func oldParts(obj runtime.Object) (*metav1.ObjectMeta, *workv1alpha1.ResourceBindingSpec, *workv1alpha1.ResourceBindingStatus) {
	switch b := obj.(type) {
	case *workv1alpha1.ResourceBinding:
		return &b.ObjectMeta, &b.Spec, &b.Status
	case *workv1alpha1.ClusterResourceBinding:
		return &b.ObjectMeta, &b.Spec, &b.Status
	}
	return nil, nil, nil
}

// copyMeta copies all metadata.
func copyMeta(from, to metav1.Object) {
	to.SetName(from.GetName())
	to.SetGenerateName(from.GetGenerateName())
	to.SetNamespace(from.GetNamespace())
	to.SetSelfLink(from.GetSelfLink())
	to.SetUID(from.GetUID())
	to.SetResourceVersion(from.GetResourceVersion())
	to.SetGeneration(from.GetGeneration())
	to.SetCreationTimestamp(from.GetCreationTimestamp())
	to.SetDeletionTimestamp(from.GetDeletionTimestamp())
	to.SetDeletionGracePeriodSeconds(from.GetDeletionGracePeriodSeconds())
	to.SetLabels(from.GetLabels())
	to.SetAnnotations(from.GetAnnotations())
	to.SetOwnerReferences(from.GetOwnerReferences())
	to.SetFinalizers(from.GetFinalizers())
	to.SetManagedFields(from.GetManagedFields())
}

func oldSpec(s *workv1alpha2.ResourceBindingSpec) workv1alpha1.ResourceBindingSpec {
	out := workv1alpha1.ResourceBindingSpec{Resource: workv1alpha1.ObjectReference{
		APIVersion: s.Resource.APIVersion, Kind: s.Resource.Kind, Namespace: s.Resource.Namespace, Name: s.Resource.Name,
		ResourceVersion: s.Resource.ResourceVersion, Replicas: s.Replicas,
	}}
	if s.ReplicaRequirements != nil {
		out.Resource.ReplicaResourceRequirements = s.ReplicaRequirements.ResourceRequest
	}
	for _, c := range s.Clusters {
		out.Clusters = append(out.Clusters, workv1alpha1.TargetCluster{Name: c.Name, Replicas: c.Replicas})
	}
	return out
}

func newSpec(s *workv1alpha1.ResourceBindingSpec) workv1alpha2.ResourceBindingSpec {
	out := workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{
			APIVersion: s.Resource.APIVersion, Kind: s.Resource.Kind, Namespace: s.Resource.Namespace, Name: s.Resource.Name,
			ResourceVersion: s.Resource.ResourceVersion,
		},
		Replicas: s.Resource.Replicas,
	}
	if s.Resource.ReplicaResourceRequirements != nil {
		out.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: s.Resource.ReplicaResourceRequirements}
	}
	for _, c := range s.Clusters {
		out.Clusters = append(out.Clusters, workv1alpha2.TargetCluster{Name: c.Name, Replicas: c.Replicas})
	}
	return out
}

func oldStatus(s *workv1alpha2.ResourceBindingStatus) workv1alpha1.ResourceBindingStatus {
	out := workv1alpha1.ResourceBindingStatus{Conditions: s.Conditions}
	for _, a := range s.AggregatedStatus {
		out.AggregatedStatus = append(out.AggregatedStatus, workv1alpha1.AggregatedStatusItem{
			ClusterName: a.ClusterName, Status: a.Status, Applied: a.Applied, AppliedMessage: a.AppliedMessage,
		})
	}
	return out
}

func newStatus(s *workv1alpha1.ResourceBindingStatus) workv1alpha2.ResourceBindingStatus {
	out := workv1alpha2.ResourceBindingStatus{Conditions: s.Conditions}
	for _, a := range s.AggregatedStatus {
		out.AggregatedStatus = append(out.AggregatedStatus, workv1alpha2.AggregatedStatusItem{
			ClusterName: a.ClusterName, Status: a.Status, Applied: a.Applied, AppliedMessage: a.AppliedMessage,
		})
	}
	return out
}
