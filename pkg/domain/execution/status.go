package execution

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

// ConditionInterpreted is a condition of Works that is False while the rules for
// the status or the health of an object fail, and absent otherwise: the event is
// gone after an hour, and the health Unknown does not say why.
const ConditionInterpreted = "Interpreted"

const (
	// messageContested begins the message of the condition Contested.
	messageContested = "Changed in the cluster again and again, and therefore written again once a minute only. To keep what the cluster sets, " +
		"add a retention rule (ResourceInterpreterCustomization) or leave the field out of the template: "
	// messageNodePorts begins the part about node ports.
	messageNodePorts = "Node ports that the control plane allocated are taken in the cluster, which keeps others. " +
		"To have the same in all clusters, set nodePort in the template to one that is free in all" + NodePortsFollow
)

// NodePortsFollow is in the message of the condition Contested before the node ports.
const NodePortsFollow = ": "

// maxContestedMessage is the limit of the message of the condition Contested, in bytes.
const maxContestedMessage = 4 << 10

// SetContested sets or removes the condition Contested, which names fields, the objects that have them, and who changes them, and
// node ports.
func SetContested(status *workv1alpha1.WorkStatus, fields, ports []string, now time.Time) {
	var messages []string
	reason := workv1alpha1.WorkContestedReason
	if len(fields) > 0 {
		messages = append(messages, messageContested+strings.Join(fields, "; "))
	}
	if len(ports) > 0 {
		messages = append(messages, messageNodePorts+strings.Join(ports, "; "))
	}
	switch {
	case len(messages) == 0:
		meta.RemoveStatusCondition(&status.Conditions, workv1alpha1.WorkContested)
		return
	case len(fields) == 0:
		reason = workv1alpha1.WorkNodePortTakenReason
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: workv1alpha1.WorkContested, Status: metav1.ConditionTrue, Reason: reason,
		Message: plaintext.Line(strings.Join(messages, ". "), maxContestedMessage), LastTransitionTime: metav1.NewTime(now),
	})
}

// maxErrors is the limit of the errors of all objects of a Work, in bytes. The API
// limits messages of conditions to 32 KiB.
const maxErrors = 8 << 10

// Result counts the objects of a Work that were applied.
type Result struct {
	Succeeded, Total int
	// Err joins the errors of the objects that failed.
	Err error
	// Immutable reports that all errors are about fields that a cluster does not change.
	Immutable bool
	// Incomplete reports that some objects are applied later.
	Incomplete bool
}

// Message returns the message of the condition Applied after a failure.
func (r *Result) Message() string {
	return fmt.Sprintf("Failed to apply all manifests (%d/%d): %s", r.Succeeded, r.Total, plaintext.Line(r.Err.Error(), maxErrors))
}

// Object is an object of a Work.
type Object struct {
	GVK schema.GroupVersionKind
	Key types.NamespacedName
	Observed
}

// SetConditions sets the conditions Dispatching and Applied of a Work. res is how the objects were applied; nil if that was not tried.
func SetConditions(work *workv1alpha1.Work, status *workv1alpha1.WorkStatus, res *Result, now time.Time) {
	dispatching := metav1.Condition{
		Type: workv1alpha1.WorkDispatching, Status: metav1.ConditionTrue,
		Reason: workv1alpha1.WorkDispatchingReason, Message: workv1alpha1.WorkDispatchingMessage,
		LastTransitionTime: metav1.NewTime(now),
	}
	if ptr.Deref(work.Spec.SuspendDispatching, false) {
		dispatching.Status = metav1.ConditionFalse
		dispatching.Reason, dispatching.Message = workv1alpha1.WorkSuspendDispatchReason, workv1alpha1.WorkSuspendDispatchMessage
	}
	meta.SetStatusCondition(&status.Conditions, dispatching)
	if res == nil || res.Err == nil && res.Incomplete {
		return
	}
	applied := metav1.Condition{
		Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
		Reason: workv1alpha1.WorkAppliedSuccessReason, Message: workv1alpha1.WorkAppliedSuccessMessage,
		ObservedGeneration: work.Generation, LastTransitionTime: metav1.NewTime(now),
	}
	if res.Err != nil {
		applied.Status, applied.Reason = metav1.ConditionFalse, workv1alpha1.WorkAppliedFailedReason
		applied.Message = res.Message()
	}
	if res.Err != nil && res.Immutable {
		applied.Reason = workv1alpha1.WorkImmutableFieldReason
	}
	meta.SetStatusCondition(&status.Conditions, applied)
}

// SetObjects sets the status of the objects and the condition Interpreted. It returns
// whether the status is stable.
func SetObjects(status *workv1alpha1.WorkStatus, objects []Object, now time.Time) bool {
	status.ManifestStatuses = manifestStatuses(objects, status.ManifestStatuses)
	setInterpreted(status, objects, now)
	for i := range objects {
		if !objects[i].Healthy() {
			return false
		}
	}
	return true
}

// setInterpreted sets or removes the condition Interpreted. Its message is the first
// failure.
func setInterpreted(status *workv1alpha1.WorkStatus, objects []Object, now time.Time) {
	var first interpretError
	failed := 0
	for i := range objects {
		if objects[i].err == (interpretError{}) {
			continue
		}
		if failed++; failed == 1 {
			first = objects[i].err
		}
	}
	if failed == 0 {
		meta.RemoveStatusCondition(&status.Conditions, ConditionInterpreted)
		return
	}
	if failed > 1 {
		first.message += fmt.Sprintf(" %d more failed.", failed-1)
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: ConditionInterpreted, Status: metav1.ConditionFalse, Reason: first.reason, Message: plaintext.Escape(first.message),
		LastTransitionTime: metav1.NewTime(now),
	})
}

// IsApplied reports whether the objects of a Work were applied.
func IsApplied(status *workv1alpha1.WorkStatus) bool {
	return meta.IsStatusConditionTrue(status.Conditions, workv1alpha1.WorkApplied)
}

// Transitioned reports whether a condition changed its status. A condition that is new
// and True did not.
func Transitioned(before, after *workv1alpha1.WorkStatus, kind string) bool {
	now := meta.FindStatusCondition(after.Conditions, kind)
	old := meta.FindStatusCondition(before.Conditions, kind)
	if now == nil {
		return false
	}
	if old == nil {
		return now.Status != metav1.ConditionTrue
	}
	return old.Status != now.Status
}

// manifestStatuses returns the status of each object that was observed. An object that
// was not keeps its status in before.
func manifestStatuses(objects []Object, before []workv1alpha1.ManifestStatus) []workv1alpha1.ManifestStatus {
	var out []workv1alpha1.ManifestStatus
	for i := range objects {
		o := &objects[i]
		id := workv1alpha1.ResourceIdentifier{
			Ordinal: i, Group: o.GVK.Group, Version: o.GVK.Version, Kind: o.GVK.Kind,
			Namespace: o.Key.Namespace, Name: o.Key.Name,
		}
		old := statusOf(before, id)
		switch {
		case o.version == "" && old != nil:
			kept := *old
			kept.Identifier = id
			out = append(out, kept)
		case o.version != "":
			status := o.status
			if old != nil && sameRaw(old.Status, status) {
				status = old.Status
			}
			out = append(out, workv1alpha1.ManifestStatus{Identifier: id, Status: status, Health: o.health})
		}
	}
	return out
}

func statusOf(statuses []workv1alpha1.ManifestStatus, id workv1alpha1.ResourceIdentifier) *workv1alpha1.ManifestStatus {
	for i := range statuses {
		have := statuses[i].Identifier
		if have.Group == id.Group && have.Version == id.Version && have.Kind == id.Kind && have.Namespace == id.Namespace && have.Name == id.Name {
			return &statuses[i]
		}
	}
	return nil
}

// sameRaw reports whether two JSON values are equal. A field that is null is absent.
func sameRaw(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil || len(a.Raw) == 0 || len(b.Raw) == 0 {
		return (a == nil || len(a.Raw) == 0) == (b == nil || len(b.Raw) == 0)
	}
	if bytes.Equal(a.Raw, b.Raw) {
		return true
	}
	var x, y any
	return utiljson.Unmarshal(a.Raw, &x) == nil && utiljson.Unmarshal(b.Raw, &y) == nil && equality.Semantic.DeepEqual(withoutNulls(x), withoutNulls(y))
}

// withoutNulls removes the fields that are null: the API server does not store them.
func withoutNulls(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			if field == nil {
				delete(v, key)
				continue
			}
			withoutNulls(field)
		}
	case []any:
		for _, element := range v {
			withoutNulls(element)
		}
	}
	return value
}
