package services

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// DispatchFacts are what decides where the slice of a collected Work goes.
type DispatchFacts struct {
	// Work is the collected Work, and Source its cluster.
	Work   *workv1alpha1.Work
	Source string
	// MCS is nil if it does not exist.
	MCS      *networkingv1alpha1.MultiClusterService
	Clusters Clusters
	// Withdrawn reports that the slice must be in no consumer.
	Withdrawn bool
	// Get returns the Work of a name in the execution namespace of a cluster, or nil.
	Get func(cluster, name string) *workv1alpha1.Work
	// Dispatched are the Works that exist of this slice.
	Dispatched []*workv1alpha1.Work
}

// DispatchVerdict is what becomes of the slice of a collected Work.
type DispatchVerdict struct {
	// Write are the Works to create or update, and Delete those to delete.
	Write, Delete []*workv1alpha1.Work
	// Release reports whether the finalizer of the collected Work is removed, after the
	// Works in Delete.
	Release bool
	Events  []Event
}

// Dispatch returns the Works of one collected slice in its consumers.
func Dispatch(f DispatchFacts) (DispatchVerdict, error) {
	var v DispatchVerdict
	if f.Work.DeletionTimestamp != nil || MCS.ServiceOf(f.Work.Labels).Name == "" {
		return DispatchVerdict{Delete: f.Dispatched, Release: true}, nil
	}
	if f.Withdrawn {
		return DispatchVerdict{Delete: f.Dispatched}, nil
	}
	if f.MCS == nil {
		return v, nil
	}
	consumers := Consumers(f.MCS, f.Clusters)
	if f.MCS.DeletionTimestamp != nil || !CrossCluster(f.MCS) {
		consumers = sets.New[string]()
	}
	v.Delete = f.elsewhere(consumers)
	slice, err := manifestOf(f.Work)
	if err != nil {
		return v, err
	}
	for _, consumer := range sets.List(consumers) {
		if consumer == f.Source {
			continue
		}
		if e := f.Clusters.unusable(consumer, "Consumer", kindEndpointSlice); e != nil {
			v.Events = append(v.Events, *e)
			continue
		}
		name, existing, err := f.destination(consumer)
		if err != nil {
			return v, err
		}
		next, err := f.dispatched(types.NamespacedName{Namespace: names.ExecutionNamespace(consumer), Name: name}, slice.DeepCopy(), existing)
		if err != nil {
			return v, err
		}
		v.Write = append(v.Write, next)
	}
	v.Events = append(v.Events, normal(ReasonDispatchSucceed, slicesDispatchedMessage))
	return v, nil
}

// elsewhere returns the Works of the slice in clusters that are not its consumers.
func (f *DispatchFacts) elsewhere(consumers sets.Set[string]) []*workv1alpha1.Work {
	var out []*workv1alpha1.Work
	for _, w := range f.Dispatched {
		if cluster, err := names.ClusterOfExecutionNamespace(w.Namespace); err == nil && !consumers.Has(cluster) && w.DeletionTimestamp == nil {
			out = append(out, w)
		}
	}
	return out
}

// DispatchedNames returns the names that the Works of a dispatched slice may have in
// consumers, as WorkNames does.
func DispatchedNames(source, work string) [2]string {
	return [2]string{work, alternative(work, source)}
}

// alternative returns the name of a dispatched Work whose name belongs to another Work. Its
// end identifies the cluster whose slice it has.
func alternative(work, source string) string { return work + "-" + names.Hash(source) }

// SourceWork returns the name of the collected Work whose slice a Work carries to a
// consumer, if its name is one of DispatchedNames.
func SourceWork(dispatched *workv1alpha1.Work) types.NamespacedName {
	source := dispatched.Annotations[ProvisionClusterAnnotation]
	key := types.NamespacedName{Namespace: names.ExecutionNamespace(source), Name: dispatched.Name}
	if end := alternative("", source); len(key.Name) > len(end) && key.Name[len(key.Name)-len(end):] == end {
		key.Name = key.Name[:len(key.Name)-len(end)]
	}
	return key
}

// destination returns the name and the current Work of the slice in a consumer. Names
// that other Works have are left to them.
func (f *DispatchFacts) destination(consumer string) (string, *workv1alpha1.Work, error) {
	free := ""
	for _, name := range DispatchedNames(f.Source, f.Work.Name) {
		existing := f.Get(consumer, name)
		switch {
		case existing == nil && free == "":
			free = name
		case existing != nil && existing.Annotations[ProvisionClusterAnnotation] == f.Source:
			return name, existing, nil
		}
	}
	if free == "" {
		return "", nil, fmt.Errorf("the names %v of the work in cluster %s belong to other works", DispatchedNames(f.Source, f.Work.Name), consumer)
	}
	return free, nil, nil
}

// dispatched returns the Work of the slice for one consumer. It changes slice.
func (f *DispatchFacts) dispatched(key types.NamespacedName, slice *unstructured.Unstructured, existing *workv1alpha1.Work) (*workv1alpha1.Work, error) {
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if existing != nil {
		work = existing.DeepCopy()
	}
	work.Finalizers = sets.List(sets.New(work.Finalizers...).Insert(workv1alpha2.ExecutionControllerFinalizer))
	metav1.SetMetaDataAnnotation(&work.ObjectMeta, ProvisionClusterAnnotation, f.Source)
	metav1.SetMetaDataLabel(&work.ObjectMeta, MCSNamespaceLabel, f.MCS.Namespace)
	metav1.SetMetaDataLabel(&work.ObjectMeta, MCSNameLabel, f.MCS.Name)
	work.Spec.SuspendDispatching = nil
	slice.SetName(f.Clusters.Prefixed("", f.Source, slice.GetName()))
	slice.SetLabels(map[string]string{discoveryv1.LabelServiceName: f.MCS.Name, discoveryv1.LabelManagedBy: DispatchedSlice})
	slice.SetAnnotations(map[string]string{ProvisionClusterAnnotation: f.Source})
	return work, prepare(work, slice, "")
}

// DispatchCondition returns the condition of a MultiClusterService about all its slices.
// failures are those of the slices that are not in all their consumers, in a fixed order.
func DispatchCondition(failures []string) metav1.Condition {
	c := metav1.Condition{Type: SlicesDispatched, Status: metav1.ConditionTrue, Reason: SlicesDispatchedSucceed, Message: slicesDispatchedMessage}
	if len(failures) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, SlicesDispatchedFailed, joined(failures)
	}
	return c
}

// maxFailures limits the failures in a message.
const maxFailures = 5

func joined(failures []string) string {
	out := strings.Join(failures[:min(len(failures), maxFailures)], "; ")
	if more := len(failures) - maxFailures; more > 0 {
		out += fmt.Sprintf("; and %d more", more)
	}
	return out
}

// HasReady reports whether a collected Work has an endpoint that is ready.
func HasReady(work *workv1alpha1.Work) bool {
	if work.DeletionTimestamp != nil || !bytes.Contains(work.Spec.Workload.Manifests[0].Raw, []byte(`"addresses"`)) {
		return false
	}
	var slice struct {
		Endpoints []discoveryv1.Endpoint `json:"endpoints"`
	}
	if json.Unmarshal(work.Spec.Workload.Manifests[0].Raw, &slice) != nil {
		return false
	}
	return slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return ptr.Deref(e.Conditions.Ready, true) })
}

// Replaced reports whether the slices of a provider that is not ready are withdrawn:
// another provider, which is ready, has ready endpoints. If none has, the provider may
// still serve although the control plane does not reach it. works are the collected
// Works of the Service.
func Replaced(source string, works []*workv1alpha1.Work, clusters Clusters) bool {
	if clusters.Ready(source) {
		return false
	}
	return slices.ContainsFunc(works, func(w *workv1alpha1.Work) bool {
		cluster, err := names.ClusterOfExecutionNamespace(w.Namespace)
		return err == nil && cluster != source && clusters.Ready(cluster) && Collected(w) && HasReady(w)
	})
}
