package binding

import (
	"fmt"
	"strings"

	"github.com/karmada-toolkit/karmada/internal/events"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// Reasons of events on bindings and templates.
const (
	ReasonSyncWorkSucceed   = "SyncWorkSucceed"
	ReasonSyncWorkFailed    = "SyncWorkFailed"
	ReasonCleanupWorkFailed = "CleanupWorkFailed"
	// ReasonNotDeliverable is for bindings whose template must not be delivered.
	ReasonNotDeliverable = "NotDeliverable"
	// ReasonInjectStateFailed is for preserved state that objects cannot have as labels.
	ReasonInjectStateFailed = "InjectStateFailed"
)

// recorder records the events of the controller of one scope.
type recorder struct {
	scope  *scope.Binding
	events *events.Recorder
}

// refused records why the template of a binding is not delivered.
func (r *recorder) refused(b workv1alpha2.Binding, refusal *delivery.Refusal) {
	r.events.Warning(b, ReasonNotDeliverable, refusal.Message)
}

// notCleanedUp records that Works of a binding could not be deleted.
func (r *recorder) notCleanedUp(b workv1alpha2.Binding, err error) {
	r.events.Warning(b, ReasonCleanupWorkFailed, err.Error())
}

// notInjected records which labels an object does not get in a cluster, although state was preserved for them.
func (r *recorder) notInjected(j *job, cluster string, labels []string) {
	message := fmt.Sprintf("Preserved state is not injected in cluster %s, because it is no value of a label: %s.", cluster, strings.Join(labels, ", "))
	r.events.PartWarning(j.binding, cluster, ReasonInjectStateFailed, message)
	r.events.PartWarning(j.template, cluster, ReasonInjectStateFailed, message)
}

// synced records the outcome of writing Works: a failure, or, if every success is recorded, a change.
func (r *recorder) synced(j *job, changed bool, err error) {
	name := j.binding.GetName()
	if r.scope.Namespaced {
		name = j.binding.GetNamespace() + "/" + name
	}
	switch {
	case err != nil:
		message := fmt.Sprintf("Failed to sync work of %s(%s): %v", r.scope.Kind, name, err)
		r.events.Warning(j.binding, ReasonSyncWorkFailed, message)
		r.events.Warning(j.template, ReasonSyncWorkFailed, message)
	case changed:
		message := fmt.Sprintf("Sync work of %s(%s) successful.", r.scope.Kind, name)
		r.events.Recovered(j.template)
		r.events.Detail(j.template, ReasonSyncWorkSucceed, message)
		r.events.Recovered(j.binding)
		r.events.Detail(j.binding, ReasonSyncWorkSucceed, message)
	default:
		r.events.Recovered(j.template)
		r.events.Recovered(j.binding)
	}
}
