package execution

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// The reasons of the events.
const (
	reasonSyncSucceed           = "SyncSucceed"
	reasonSyncFailed            = "SyncFailed"
	reasonDispatching           = "WorkDispatching"
	reasonReflectStatus         = "ReflectStatusSucceed"
	reasonReflectStatusFailed   = "ReflectStatusFailed"
	reasonInterpretHealth       = "InterpretHealthSucceed"
	reasonInterpretHealthFailed = "InterpretHealthFailed"
)

// events tells users what happened. Success is told on the template only, and
// only when something was written; a failure on the template and the Work, once
// for each message.
type events struct {
	applied, observed record.EventRecorder
	// all reports whether every success is recorded, not only those on templates.
	all bool
}

// workApplied records on the Work that all of its objects were applied.
func (e events) workApplied(work *workv1alpha1.Work, cluster string) {
	if e.all {
		e.applied.Event(work, corev1.EventTypeNormal, reasonSyncSucceed,
			fmt.Sprintf("Sync work(%s/%s) to cluster(%s) successful.", work.Namespace, work.Name, cluster))
	}
}

// statusReflected records that the status of an object was read.
func (e events) statusReflected(work *workv1alpha1.Work, o *object) {
	if e.all {
		e.observed.Event(work, corev1.EventTypeNormal, reasonReflectStatus, fmt.Sprintf("Reflect status for object(%s/%s) succeed.", o.gvk.Kind, o.key))
	}
}

// healthInterpreted records what the health of an object is.
func (e events) healthInterpreted(work *workv1alpha1.Work, o *object, health workv1alpha1.ResourceHealth) {
	if e.all {
		e.observed.Event(work, corev1.EventTypeNormal, reasonInterpretHealth,
			fmt.Sprintf("Interpret health of object(%s/%s) as %s.", o.gvk.Kind, o.key, strings.ToLower(string(health))))
	}
}

// objectApplied tells that an object was created or changed.
func (e events) objectApplied(obj *unstructured.Unstructured, cluster string) {
	key := types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	if ref := template(obj.GetAPIVersion(), obj.GetKind(), key, obj.GetAnnotations()); ref != nil {
		e.appliedTo(ref, key, cluster)
	}
}

// appliedTo records, on a template, that its object was created or changed.
func (e events) appliedTo(template *corev1.ObjectReference, key types.NamespacedName, cluster string) {
	e.applied.Event(template, corev1.EventTypeNormal, reasonSyncSucceed, fmt.Sprintf("Successfully applied resource(%s) to cluster %s", key, cluster))
}

// failed tells that the objects of a Work could not be applied.
func (e events) failed(work *workv1alpha1.Work, objects []failedObject, cluster, message string) {
	e.applied.Event(work, corev1.EventTypeWarning, reasonSyncFailed,
		fmt.Sprintf("Failed to sync work(%s/%s) to cluster(%s), err: %s", work.Namespace, work.Name, cluster, message))
	for _, o := range objects {
		e.failedFor(o, cluster)
	}
}

// failedFor tells, on its template, that an object could not be applied.
func (e events) failedFor(o failedObject, cluster string) {
	if o.template != nil {
		e.applied.Event(o.template, corev1.EventTypeWarning, reasonSyncFailed,
			fmt.Sprintf("Failed to create or update resource(%s) in member cluster(%s): %s", o.name, cluster, o.message))
	}
}

// dispatching tells that dispatching was suspended or taken up again.
func (e events) dispatching(work *workv1alpha1.Work, message string) {
	e.applied.Event(work, corev1.EventTypeNormal, reasonDispatching, message)
}

// statusFailed tells that the interpreter failed on an object.
func (e events) statusFailed(work *workv1alpha1.Work, reason, message string) {
	e.observed.Event(work, corev1.EventTypeWarning, reason, message)
}

// failedObject is an object that could not be applied.
type failedObject struct {
	name, message string
	template      *corev1.ObjectReference
}

// maxMessage is how long a text with words of a member may be, in bytes.
const maxMessage = 1024

// memberText returns text with words of a member, such as an error, fit for events and
// conditions.
func memberText(s string) string { return plaintext.Line(s, maxMessage) }

func failure(raw []byte, err error) failedObject { return failedObjectOf(raw, memberText(err.Error())) }

func failedObjectOf(raw []byte, message string) failedObject {
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
