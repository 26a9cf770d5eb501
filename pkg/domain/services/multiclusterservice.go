package services

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Facts are what decides about a MultiClusterService.
type Facts struct {
	MCS      *networkingv1alpha1.MultiClusterService
	Clusters Clusters
	// Service and Binding are nil if they do not exist.
	Service *corev1.Service
	Binding *workv1alpha2.ResourceBinding
	// Works are the marker Works and the Works of slices with the labels of the
	// MultiClusterService.
	Works []*workv1alpha1.Work
}

// Verdict is what becomes of a MultiClusterService and of the objects that belong to it.
type Verdict struct {
	// Finalizer reports whether the MultiClusterService needs its finalizer.
	Finalizer bool
	// Write are the Works to create or update, and Delete those to delete.
	Write, Delete []*workv1alpha1.Work
	// Service and Binding are nil if nothing changes about them.
	Service *corev1.Service
	Binding *workv1alpha2.ResourceBinding
	// Condition is nil while the MultiClusterService is deleted.
	Condition *metav1.Condition
	Events    []Event
	// Err is why the Service is not propagated as requested. The rest is valid.
	Err error
}

// Decide returns what becomes of a MultiClusterService.
func Decide(f Facts) (Verdict, error) {
	var v Verdict
	switch {
	case f.MCS.DeletionTimestamp != nil:
		v.release(f, sets.New[string]())
		return v, nil
	case validation.OwnService(types.NamespacedName{Namespace: f.MCS.Namespace, Name: f.MCS.Name}):
		v.release(f, sets.New[string]())
		v.Err = errOwnService
	case !CrossCluster(f.MCS):
		v.release(f, Providers(f.MCS, f.Clusters))
	default:
		v.Finalizer = true
		if err := v.mark(f); err != nil {
			return Verdict{}, err
		}
		v.clean(f, Providers(f.MCS, f.Clusters))
		v.Err = v.claim(f)
	}
	v.conclude()
	return v, nil
}

func (v *Verdict) conclude() {
	c := metav1.Condition{Type: ServiceApplied, Status: metav1.ConditionTrue, Reason: ServiceAppliedSucceed, Message: serviceAppliedMessage}
	if v.Err != nil {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, ServiceAppliedFailed, v.Err.Error()
		v.Events = append(v.Events, warning(ReasonSyncServiceFailed, v.Err.Error()))
	} else {
		v.Events = append(v.Events, normal(ReasonSyncServiceSucceed, serviceAppliedMessage))
	}
	v.Condition = &c
}

// MarkerName returns the name of the Work that marks a cluster as a provider.
func MarkerName(mcs types.NamespacedName) string {
	return names.Work(kindMultiClusterService, mcs.Name, mcs.Namespace)
}

// mark adds the marker Work of every provider.
func (v *Verdict) mark(f Facts) error {
	existing := map[string]*workv1alpha1.Work{}
	for _, w := range f.Works {
		existing[w.Namespace+"/"+w.Name] = w
	}
	name := MarkerName(types.NamespacedName{Namespace: f.MCS.Namespace, Name: f.MCS.Name})
	for _, cluster := range sets.List(Providers(f.MCS, f.Clusters)) {
		if e := f.Clusters.unusable(cluster, "Provider", kindMultiClusterService); e != nil {
			v.Events = append(v.Events, *e)
			continue
		}
		namespace := names.ExecutionNamespace(cluster)
		work, err := marker(f.MCS, types.NamespacedName{Namespace: namespace, Name: name}, existing[namespace+"/"+name])
		if err != nil {
			return err
		}
		v.Write = append(v.Write, work)
	}
	return nil
}

func marker(mcs *networkingv1alpha1.MultiClusterService, key types.NamespacedName, existing *workv1alpha1.Work) (*workv1alpha1.Work, error) {
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if existing != nil {
		work = existing.DeepCopy()
	}
	for label, value := range map[string]string{
		networkingv1alpha1.MultiClusterServicePermanentIDLabel: permanentID(mcs), MCSNamespaceLabel: mcs.Namespace, MCSNameLabel: mcs.Name,
	} {
		metav1.SetMetaDataLabel(&work.ObjectMeta, label, value)
	}
	work.Spec.SuspendDispatching = new(true)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(mcs)
	if err != nil {
		return nil, fmt.Errorf("converting multiclusterservice %s/%s: %w", mcs.Namespace, mcs.Name, err)
	}
	obj := &unstructured.Unstructured{Object: content}
	obj.SetGroupVersionKind(networkingv1alpha1.GroupVersion.WithKind(kindMultiClusterService))
	return work, prepare(work, obj, mcs.UID)
}

func permanentID(mcs *networkingv1alpha1.MultiClusterService) string {
	return mcs.Labels[networkingv1alpha1.MultiClusterServicePermanentIDLabel]
}

// clean removes the Works of clusters that do not provide the Service.
func (v *Verdict) clean(f Facts, providers sets.Set[string]) {
	id := permanentID(f.MCS)
	own := types.NamespacedName{Namespace: f.MCS.Namespace, Name: f.MCS.Name}
	left := sets.New[string]()
	for _, w := range f.Works {
		cluster, err := names.ClusterOfExecutionNamespace(w.Namespace)
		if err != nil || providers.Has(cluster) || w.DeletionTimestamp != nil {
			continue
		}
		// Users can change the id, so markers with an earlier one count too.
		if id != "" && w.Labels[networkingv1alpha1.MultiClusterServicePermanentIDLabel] == id || Marks(w) == own {
			v.Delete = append(v.Delete, w)
			left.Insert(w.Namespace)
		}
	}
	for _, w := range f.Works {
		if !left.Has(w.Namespace) || MCS.ServiceOf(w.Labels) != own || !Collected(w) || w.DeletionTimestamp != nil {
			continue
		}
		if next := Release(w, MCS); next != nil {
			v.Write = append(v.Write, next)
		} else {
			v.Delete = append(v.Delete, w)
		}
	}
}

// release gives up the Service, and the Works of clusters that are no providers.
func (v *Verdict) release(f Facts, providers sets.Set[string]) {
	v.clean(f, providers)
	if f.Service != nil && f.Service.Labels[workv1alpha2.ResourceTemplateClaimedByLabel] == claimedByMultiClusterService {
		next := f.Service.DeepCopy()
		delete(next.Labels, workv1alpha2.ResourceTemplateClaimedByLabel)
		delete(next.Labels, networkingv1alpha1.MultiClusterServicePermanentIDLabel)
		v.Service = next
	}
	if f.Binding != nil && f.Binding.Labels[BindingManagedByLabel] == claimedByMultiClusterService {
		next := f.Binding.DeepCopy()
		delete(next.Annotations, MCSNameLabel)
		delete(next.Annotations, MCSNamespaceLabel)
		delete(next.Labels, BindingManagedByLabel)
		delete(next.Labels, networkingv1alpha1.MultiClusterServicePermanentIDLabel)
		v.Binding = next
	}
}

// ErrOtherOwner is returned while the binding belongs to a Service that was deleted.
var ErrOtherOwner = errors.New("the binding belongs to an earlier Service of this name; it is tried again when the binding is garbage collected")

// errOwnService is returned for a MultiClusterService of the Service that every cluster has for its own API server.
var errOwnService = errors.New("the Service default/kubernetes leads to the API server of its own cluster and is not propagated")

// claim takes the Service from policies and propagates it to providers and consumers.
func (v *Verdict) claim(f Facts) error {
	if f.Service == nil {
		return fmt.Errorf("there is no Service %s/%s: create it in the control plane", f.MCS.Namespace, f.MCS.Name)
	}
	v.Service = claimed(f.Service, f.MCS)
	binding, err := bindingOf(f)
	if err != nil {
		return err
	}
	v.Binding = binding
	return nil
}

// claimed returns the Service with the labels of a MultiClusterService, and without those
// of policies.
func claimed(service *corev1.Service, mcs *networkingv1alpha1.MultiClusterService) *corev1.Service {
	next := service.DeepCopy()
	delete(next.Labels, policyv1alpha1.PropagationPolicyPermanentIDLabel)
	delete(next.Labels, policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel)
	delete(next.Annotations, policyv1alpha1.PropagationPolicyNamespaceAnnotation)
	delete(next.Annotations, policyv1alpha1.PropagationPolicyNameAnnotation)
	delete(next.Annotations, policyv1alpha1.ClusterPropagationPolicyAnnotation)
	metav1.SetMetaDataLabel(&next.ObjectMeta, workv1alpha2.ResourceTemplateClaimedByLabel, claimedByMultiClusterService)
	metav1.SetMetaDataLabel(&next.ObjectMeta, networkingv1alpha1.MultiClusterServicePermanentIDLabel, permanentID(mcs))
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, MCSNameLabel, mcs.Name)
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, MCSNamespaceLabel, mcs.Namespace)
	return next
}

// bindingOf returns the binding of the Service.
func bindingOf(f Facts) (*workv1alpha2.ResourceBinding, error) {
	next := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: f.MCS.Namespace, Name: names.Binding("Service", f.MCS.Name)}}
	if f.Binding != nil {
		if owner := metav1.GetControllerOf(f.Binding); owner != nil && owner.UID != f.Service.UID {
			return nil, fmt.Errorf("resourcebinding %s/%s: %w", f.Binding.Namespace, f.Binding.Name, ErrOtherOwner)
		}
		next = f.Binding.DeepCopy()
	}
	next.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: f.Service.Name, UID: f.Service.UID}}
	next.Finalizers = sets.List(sets.New(next.Finalizers...).Insert(workv1alpha2.BindingControllerFinalizer))
	metav1.SetMetaDataLabel(&next.ObjectMeta, BindingManagedByLabel, claimedByMultiClusterService)
	metav1.SetMetaDataLabel(&next.ObjectMeta, networkingv1alpha1.MultiClusterServicePermanentIDLabel, permanentID(f.MCS))
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, MCSNameLabel, f.MCS.Name)
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, MCSNamespaceLabel, f.MCS.Namespace)
	targets := Providers(f.MCS, f.Clusters).Union(Consumers(f.MCS, f.Clusters))
	next.Spec.Placement = &policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: sets.List(targets)}}
	next.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
	next.Spec.Resource = workv1alpha2.ObjectReference{
		APIVersion: "v1", Kind: "Service", Namespace: f.Service.Namespace, Name: f.Service.Name, UID: f.Service.UID,
		ResourceVersion: f.Service.ResourceVersion,
	}
	return next, nil
}
