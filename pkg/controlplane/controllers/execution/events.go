package execution

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/record"

	recording "github.com/karmada-toolkit/karmada/internal/events"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/execution"
)

// The reasons of the events.
const (
	reasonSyncSucceed = "SyncSucceed"
	reasonSyncFailed  = "SyncFailed"
	reasonDispatching = "WorkDispatching"
	// reasonNamespaceKept is of an event on a Cluster.
	reasonNamespaceKept = "NamespaceKept"
	reasonNodePort      = workv1alpha1.WorkNodePortTakenReason
)

// events records what was done. A success is recorded on the template only, and only
// when something was written; a failure on the template and the Work, once per message.
type events struct {
	applied, observed record.EventRecorder
	// successes are the events about templates.
	successes *successes
	// all reports whether every success is recorded, not only those on templates.
	all bool
}

func newEvents(applied, observed record.EventRecorder, d Deps) events {
	applied, observed = recording.Plain(applied), recording.Plain(observed)
	return events{applied: applied, observed: observed, all: d.EventMode.All(), successes: newSuccesses(applied, d.SuccessDelay)}
}

// workApplied records on the Work that all of its objects were applied.
func (e events) workApplied(work *workv1alpha1.Work, cluster string) {
	if e.all {
		e.applied.Event(work, corev1.EventTypeNormal, reasonSyncSucceed,
			fmt.Sprintf("Sync work(%s/%s) to cluster(%s) successful.", work.Namespace, work.Name, cluster))
	}
}

// objectObserved records an event about the status of an object on its Work.
func (e events) objectObserved(work *workv1alpha1.Work, event execution.Event) {
	if e.all || event.Type != corev1.EventTypeNormal {
		e.observed.Event(work, event.Type, event.Reason, event.Message)
	}
}

// objectApplied records that an object was created or changed.
func (e events) objectApplied(obj *unstructured.Unstructured, cluster string) {
	key := types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	if ref := template(obj.GetAPIVersion(), obj.GetKind(), key, obj.GetAnnotations()); ref != nil {
		e.appliedTo(ref, key, cluster)
	}
}

// appliedTo records, on a template, that its object was created or changed.
func (e events) appliedTo(template *corev1.ObjectReference, key types.NamespacedName, cluster string) {
	e.successes.add(appliedObject{*template, key}, cluster)
}

// failed records that the objects of a Work could not be applied.
func (e events) failed(work *workv1alpha1.Work, objects []failedObject, cluster, message string) {
	e.applied.Event(work, corev1.EventTypeWarning, reasonSyncFailed,
		fmt.Sprintf("Failed to sync work(%s/%s) to cluster(%s), err: %s", work.Namespace, work.Name, cluster, message))
	for _, o := range objects {
		e.failedFor(o, cluster)
	}
}

// failedFor records, on its template, that an object could not be applied.
func (e events) failedFor(o failedObject, cluster string) {
	if o.template != nil {
		e.applied.Event(o.template, corev1.EventTypeWarning, reasonSyncFailed,
			fmt.Sprintf("Failed to create or update resource(%s) in member cluster(%s): %s", o.name, cluster, o.message))
	}
}

// nodePorts records, on the Work and the templates of Services, that the cluster has other node ports than the control plane.
func (e events) nodePorts(work *workv1alpha1.Work, s *workState, cluster string) {
	for i, o := range s.objects {
		lines := o.applied.NodePorts()
		if len(lines) == 0 {
			continue
		}
		service := failure(work.Spec.Workload.Manifests[i].Raw, errors.New(strings.Join(lines, "; ")))
		e.otherPorts(work, service.name, cluster, service.message)
		if service.template != nil {
			e.otherPorts(service.template, service.name, cluster, service.message)
		}
	}
}

// otherPorts records that a Service has other node ports in a cluster than in the control plane.
func (e events) otherPorts(on runtime.Object, name, cluster, ports string) {
	e.applied.Event(on, corev1.EventTypeWarning, reasonNodePort, fmt.Sprintf("Resource(%s) has other node ports in member cluster(%s): %s", name, cluster, ports))
}

// dispatching records that dispatching was suspended or resumed.
func (e events) dispatching(work *workv1alpha1.Work, message string) {
	e.applied.Event(work, corev1.EventTypeNormal, reasonDispatching, message)
}

// failedObject is an object that could not be applied.
type failedObject struct {
	name, message string
	template      *corev1.ObjectReference
}

// failure returns the object of a manifest that failed.
func failure(raw []byte, err error) failedObject {
	message := execution.Text(err.Error())
	var m metav1.PartialObjectMetadata
	if json.Unmarshal(raw, &m) != nil {
		return failedObject{message: message}
	}
	key := types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
	return failedObject{name: key.String(), message: message, template: template(m.APIVersion, m.Kind, key, m.Annotations)}
}

// template refers to the template that an object was made from, or is nil.
func template(apiVersion, kind string, key types.NamespacedName, annotations map[string]string) *corev1.ObjectReference {
	uid := annotations[workv1alpha2.ResourceTemplateUIDAnnotation]
	if uid == "" {
		return nil
	}
	return &corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: key.Namespace, Name: key.Name, UID: types.UID(uid)}
}

// successDelay is the time for which the clusters of one event are collected: the members apply the same change within
// less than that, unless one is slow.
const successDelay = 2 * time.Second

// appliedObject is an object that was applied, and its template.
type appliedObject struct {
	template corev1.ObjectReference
	key      types.NamespacedName
}

// successes records that objects were applied: one event per object that names all clusters within a delay.
type successes struct {
	recorder record.EventRecorder
	// delay is the time before the event; with 0 every cluster gets an event at once.
	delay time.Duration

	mu      sync.Mutex
	pending map[appliedObject]sets.Set[string]
}

func newSuccesses(recorder record.EventRecorder, delay time.Duration) *successes {
	return &successes{recorder: recorder, delay: delay, pending: map[appliedObject]sets.Set[string]{}}
}

// add records that an object was applied in a cluster.
func (s *successes) add(o appliedObject, cluster string) {
	if s.delay <= 0 {
		s.record(o, cluster)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	clusters, ok := s.pending[o]
	if !ok {
		clusters = sets.New[string]()
		s.pending[o] = clusters
		time.AfterFunc(s.delay, func() { s.flush(o) })
	}
	clusters.Insert(cluster)
}

func (s *successes) flush(o appliedObject) {
	s.mu.Lock()
	clusters := s.pending[o].UnsortedList()
	delete(s.pending, o)
	s.mu.Unlock()
	slices.Sort(clusters)
	s.record(o, strings.Join(clusters, ", "))
}

func (s *successes) record(o appliedObject, clusters string) {
	s.recorder.Event(&o.template, corev1.EventTypeNormal, reasonSyncSucceed, fmt.Sprintf("Successfully applied resource(%s) to cluster %s", o.key, clusters))
}

// namespaceKept records on the cluster why a namespace stays in it.
func (e events) namespaceKept(cluster, namespace, occupant string) {
	e.applied.Event(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}, corev1.EventTypeNormal, reasonNamespaceKept,
		fmt.Sprintf("Namespace %s stays in the cluster, and does not belong to the control plane any more: it has %s", namespace, occupant))
}
