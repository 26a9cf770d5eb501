package bindingstatus

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/plaintext"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/conditions"
)

// The reasons of the events.
const (
	reasonSucceed = "AggregateStatusSucceed"
	reasonFailed  = "AggregateStatusFailed"
)

// publishAggregated publishes that the status of a template was written, in the mode that records every success.
func publishAggregated(r *events.Recorder, template *unstructured.Unstructured) {
	r.Recovered(template)
	r.Detail(template, reasonSucceed, "Update Resource with AggregatedStatus successfully.")
}

// publishWritten publishes that the status of a binding was written, in the mode that records every success.
func publishWritten(r *events.Recorder, binding workv1alpha2.Binding) {
	kind, name := "ClusterResourceBinding", binding.GetName()
	if ns := binding.GetNamespace(); ns != "" {
		kind, name = "ResourceBinding", ns+"/"+name
	}
	r.Detail(binding, reasonSucceed, fmt.Sprintf("Update %s(%s) with AggregatedStatus successfully.", kind, name))
}

// publishFailed publishes that a status could not be written, on the binding and the template.
func publishFailed(r *events.Recorder, binding workv1alpha2.Binding, err error) {
	r.Warning(binding, reasonFailed, err.Error())
	r.Warning(templateOf(binding), reasonFailed, err.Error())
}

// publishRecovered makes the next failure be published even if it is the same as the last one.
func publishRecovered(r *events.Recorder, binding workv1alpha2.Binding) {
	r.Recovered(binding)
	r.Recovered(templateOf(binding))
}

// publishExcluded publishes that the status of a template lacks that of a cluster.
func publishExcluded(r *events.Recorder, binding workv1alpha2.Binding, template *unstructured.Unstructured, cluster string, reason error) {
	message := fmt.Sprintf("The status in cluster %s is left out of the aggregated status: %s", cluster, plaintext.Line(reason.Error(), maxReason))
	r.PartWarning(binding, cluster, reasonFailed, message)
	r.PartWarning(template, cluster, reasonFailed, message)
}

// publishReplicaFailure publishes that a member refuses pods of a template, when the condition ReplicaFailure becomes True.
func publishReplicaFailure(r *events.Recorder, before, after *unstructured.Unstructured) {
	failure, failed := conditions.ReplicaFailure(after), conditions.ReplicaFailure(before) != nil
	if failure == nil {
		if failed {
			r.Recovered(after)
		}
		return
	}
	if failed {
		return
	}
	r.Warning(after, cmp.Or(failure.Reason, string(failure.Type)), failure.Message)
}

func templateOf(binding workv1alpha2.Binding) *corev1.ObjectReference {
	ref := binding.GetSpec().Resource
	return &corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}
}
