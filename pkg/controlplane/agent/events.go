package agent

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"

	"github.com/karmada-toolkit/karmada/internal/events"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

// events returns the publisher for the events of a source about the agent's own
// cluster and Works. The agent has no permissions in the namespaces of templates; the
// control plane records their events from the Works.
func (a *agent) events(source string) record.EventRecorder {
	return &recorder{
		EventRecorder: events.Plain(a.mgr.GetEventRecorderFor(source)), scheme: a.mgr.GetScheme(),
		own: names.ExecutionNamespace(a.options.ClusterName),
	}
}

// recorder leaves out the events that the control plane would refuse.
type recorder struct {
	record.EventRecorder
	scheme *runtime.Scheme
	own    string
}

// Event implements record.EventRecorder.
func (r *recorder) Event(obj runtime.Object, kind, reason, message string) {
	if r.allowed(obj) {
		r.EventRecorder.Event(obj, kind, reason, message)
	}
}

// Eventf implements record.EventRecorder.
func (r *recorder) Eventf(obj runtime.Object, kind, reason, format string, args ...any) {
	if r.allowed(obj) {
		r.EventRecorder.Eventf(obj, kind, reason, format, args...)
	}
}

// AnnotatedEventf implements record.EventRecorder.
func (r *recorder) AnnotatedEventf(obj runtime.Object, annotations map[string]string, kind, reason, format string, args ...any) {
	if r.allowed(obj) {
		r.EventRecorder.AnnotatedEventf(obj, annotations, kind, reason, format, args...)
	}
}

func (r *recorder) allowed(obj runtime.Object) bool {
	ref, err := reference.GetReference(r.scheme, obj)
	return err == nil && (ref.Namespace == r.own || isCluster(ref))
}

func isCluster(ref *corev1.ObjectReference) bool {
	return ref.Kind == "Cluster" && ref.GroupVersionKind().Group == clusterv1alpha1.GroupName
}
