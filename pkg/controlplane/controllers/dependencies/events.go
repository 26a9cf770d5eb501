package dependencies

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmada-toolkit/karmada/internal/events"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Reasons of events on templates and bindings.
const (
	ReasonGetDependenciesSucceed = "GetDependenciesSucceed"
	ReasonGetDependenciesFailed  = "GetDependenciesFailed"
	ReasonSyncSucceed            = "SyncScheduleResultToDependenciesSucceed"
	ReasonSyncFailed             = "SyncScheduleResultToDependenciesFailed"
	ReasonPolicyConflict         = "DependencyPolicyConflict"
)

// recorder records the events of the controller.
type recorder struct{ events *events.Recorder }

// notInterpreted records why the dependencies of a template are unknown.
func (r *recorder) notInterpreted(template *unstructured.Unstructured, err error) {
	r.events.Warning(template, ReasonGetDependenciesFailed, err.Error())
}

// independent records that a template has no dependencies.
func (r *recorder) independent(template *unstructured.Unstructured) {
	r.events.Detail(template, ReasonGetDependenciesSucceed, "Get dependencies(0) succeed.")
}

// interpreted records that the dependencies of a template changed.
func (r *recorder) interpreted(template *unstructured.Unstructured, n int) {
	r.events.Normal(template, ReasonGetDependenciesSucceed, fmt.Sprintf("Get dependencies(%d) succeed.", n))
}

// distributed records the outcome of attaching bindings: a failure, or a change.
func (r *recorder) distributed(b *workv1alpha2.ResourceBinding, changed bool, err error) {
	switch {
	case apierrors.IsConflict(err):
	case err != nil:
		r.events.Warning(b, ReasonSyncFailed, fmt.Sprintf("Sync schedule results to dependencies failed: %v", err))
	case changed:
		r.events.Normal(b, ReasonSyncSucceed, "Sync schedule results to dependencies succeed.")
	default:
		r.events.Recovered(b)
	}
}

// conflict records what the referrers of an attached binding do not agree on.
func (r *recorder) conflict(attached *workv1alpha2.ResourceBinding, fields string) {
	r.events.Warning(attached, ReasonPolicyConflict, "Dependency policy conflict detected: "+fields+".")
}
