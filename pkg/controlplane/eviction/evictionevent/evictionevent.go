// Package evictionevent records events about evictions, on bindings and on their templates.
package evictionevent

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/karmada-toolkit/karmada/internal/events"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
)

// Reasons of the events.
const (
	ReasonSucceed = "EvictWorkloadFromClusterSucceed"
	ReasonFailed  = "EvictWorkloadFromClusterFailed"
)

// Succeeded records that a workload is evicted from a cluster.
func Succeeded(r *events.Recorder, b workv1alpha2.Binding, cluster string) {
	for _, obj := range objects(b) {
		r.Normal(obj, ReasonSucceed, fmt.Sprintf("Evict from cluster %s succeed.", cluster))
	}
}

// Failed records why a workload could not be evicted from a cluster, once for each error text.
func Failed(r *events.Recorder, b workv1alpha2.Binding, cluster string, err error) {
	for _, obj := range objects(b) {
		r.Warning(obj, ReasonFailed, fmt.Sprintf("Evict from cluster %s failed: %v", cluster, err))
	}
}

// objects returns the binding and a reference to its template, unless the binding must not deliver it: whoever may
// write bindings in one namespace must not write events about objects in others.
func objects(b workv1alpha2.Binding) []runtime.Object {
	out := []runtime.Object{b}
	ref := &b.GetSpec().Resource
	if delivery.Check(b.GetNamespace(), ref) == nil {
		out = append(out, &corev1.ObjectReference{
			APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID, ResourceVersion: ref.ResourceVersion,
		})
	}
	return out
}
