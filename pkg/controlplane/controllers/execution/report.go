package execution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	recording "github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/status"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/member"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/workstatus"
)

// statusWriter writes the status of Works.
type statusWriter = status.Writer[*workv1alpha1.Work, *workv1alpha1.WorkStatus]

// reporter writes the status of the Works of one cluster and publishes their events.
type reporter struct {
	cluster     string
	clock       clock.PassiveClock
	status      *statusWriter
	events      events
	debouncer   *workstatus.Debouncer
	interpreter workstatus.Interpreter
	stuck       *Stuck
	// revision returns the revision of the rules of a kind.
	revision func(schema.GroupVersionKind) uint64
}

// report is what the status of a Work is computed from, beside its objects.
type report struct {
	suspended bool
	// reachable reports that the objects can be observed.
	reachable bool
	// result is how the objects were applied; nil if that was not tried.
	result *result
}

// report writes the status of a Work if it differs from the stored one and is due. It
// returns when to report again.
func (r *reporter) report(ctx context.Context, work *workv1alpha1.Work, s *workState, rep report) (time.Duration, error) {
	now := r.clock.Now()
	before := r.status.Current(work, &s.written)
	after := before.DeepCopy()
	facts := workstatus.Facts{Generation: work.Generation, Suspended: rep.suspended}
	if rep.result != nil {
		facts.Result = &rep.result.Result
	}
	workstatus.SetConditions(after, facts, now)
	fields, ports := s.contested()
	workstatus.SetContested(after, fields, ports, now)
	var err error
	change := workstatus.Stable
	if rep.reachable && workstatus.Applied(after) && len(s.objects) > 0 {
		err = r.observe(work, s, rep.suspended)
		change = workstatus.SetObjects(after, s.statusObjects(), now)
	}
	if equality.Semantic.DeepEqual(before, after) {
		s.dirtySince = time.Time{}
		r.debouncer.Unchanged(work.Name, change, now)
		return 0, err
	}
	if s.dirtySince.IsZero() {
		s.dirtySince = now
	}
	switch {
	case workstatus.Transitioned(before, after, workv1alpha1.WorkDispatching):
		change = workstatus.Stable
	case rep.result != nil && rep.result.Err != nil:
		change = workstatus.Failed
	}
	if wait := r.debouncer.Delay(work.Name, change, now, s.dirtySince, s.written.At()); wait > 0 {
		return wait, err
	}
	wrote, writeErr := r.status.Write(ctx, work, &s.written, func(status *workv1alpha1.WorkStatus) { *status = *after })
	if writeErr != nil || !wrote {
		return 0, errors.Join(err, writeErr)
	}
	s.dirtySince = time.Time{}
	r.debouncer.Written(work.Name)
	r.publish(work, before, after, rep)
	if portsTakenAnew(before, after) != "" {
		r.events.nodePorts(work, s, r.cluster)
	}
	return status.WrittenTTL, err // to detect that the write was undone by a restore
}

// observe updates the status of the objects of a Work.
func (r *reporter) observe(work *workv1alpha1.Work, s *workState, suspended bool) error {
	var errs []error
	for _, o := range s.objects {
		if o.informer == nil {
			continue
		}
		view := o.informer.Get(o.key)
		snapshot, revision := o.applied.Latest(view.Snapshot), r.revision(o.gvk)
		switch {
		case snapshot == nil && suspended && view.Synced:
			o.observed = o.observed.Missing()
		case snapshot != nil && !o.observed.UpToDate(snapshot, revision):
			errs = append(errs, r.observeObject(work, s, o, snapshot, revision))
		}
	}
	return errors.Join(errs...)
}

func (r *reporter) observeObject(work *workv1alpha1.Work, s *workState, o *object, snapshot *member.Snapshot, revision uint64) error {
	observed, events, err := workstatus.Observe(r.interpreter, o.gvk, o.key, o.observed, snapshot, revision)
	o.observed = observed
	for _, e := range events {
		if e.Type == corev1.EventTypeNormal || s.isNews(e.Reason, o.key.String(), e.Message) {
			r.events.objectObserved(work, e)
		}
	}
	return err
}

// removing records that the objects of a Work that is being deleted stay in the cluster, and why.
func (r *reporter) removing(ctx context.Context, work *workv1alpha1.Work, s *workState, reason, message string) error {
	message = member.Text(message)
	r.stuck.set(r.cluster, stuckRemoval, work.Name, message)
	old := meta.FindStatusCondition(r.status.Current(work, &s.written).Conditions, workv1alpha1.WorkRemoved)
	if old != nil && old.Reason == reason && old.Message == message {
		return nil
	}
	_, err := r.status.Write(ctx, work, &s.written, func(status *workv1alpha1.WorkStatus) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: workv1alpha1.WorkRemoved, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(r.clock.Now()),
		})
	})
	r.events.applied.Event(work, corev1.EventTypeWarning, reason, fmt.Sprintf("The objects of work(%s/%s) stay in cluster(%s): %s", work.Namespace, work.Name, r.cluster, message))
	return err
}

// publish records the events about a status that was written.
func (r *reporter) publish(work *workv1alpha1.Work, before, after *workv1alpha1.WorkStatus, rep report) {
	if workstatus.Transitioned(before, after, workv1alpha1.WorkDispatching) {
		r.events.dispatching(work, meta.FindStatusCondition(after.Conditions, workv1alpha1.WorkDispatching).Message)
	}
	if r.events.all && meta.FindStatusCondition(before.Conditions, workv1alpha1.WorkDispatching) == nil && !rep.suspended {
		r.events.dispatching(work, workv1alpha1.WorkDispatchingMessage)
	}
	if rep.result == nil {
		return
	}
	old := meta.FindStatusCondition(before.Conditions, workv1alpha1.WorkApplied)
	if rep.result.Err == nil {
		if now := meta.FindStatusCondition(after.Conditions, workv1alpha1.WorkApplied); now != nil && !rep.result.Incomplete &&
			(old == nil || old.Status != now.Status || old.ObservedGeneration != now.ObservedGeneration) {
			r.events.workApplied(work, r.cluster)
		}
		return
	}
	if old == nil || old.Status != metav1.ConditionFalse || old.Message != rep.result.Message() {
		r.events.failed(work, rep.result.failed, r.cluster, member.Text(rep.result.Err.Error()))
	}
}

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
func (e events) objectObserved(work *workv1alpha1.Work, event workstatus.Event) {
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
	message := member.Text(err.Error())
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
