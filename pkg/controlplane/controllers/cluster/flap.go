package cluster

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
)

// flapping is whether the Ready condition of a cluster changes often.
type flapping struct {
	// flaps reports whether the cluster is tainted, and after is the time until it may not be any longer; 0 if it is not.
	flaps bool
	after time.Duration
	// annotations have the times of the changes and that of the end, nil for none, and changed reports whether they differ
	// from the stored ones.
	annotations map[string]any
	changed     bool
}

// flapping returns whether the Ready condition of a cluster changes often.
func (r *reconciler) flapping(cluster *clusterv1alpha1.Cluster, now time.Time) flapping {
	stored, storedUntil := cluster.Annotations[clusterv1alpha1.ReadyChangesAnnotation], cluster.Annotations[clusterv1alpha1.FlappingUntilAnnotation]
	annotations := map[string]any{clusterv1alpha1.ReadyChangesAnnotation: nil, clusterv1alpha1.FlappingUntilAnnotation: nil}
	if r.options.FlapWindow <= 0 {
		return flapping{annotations: annotations, changed: stored != "" || storedUntil != ""}
	}
	var last time.Time
	if ready := cluster.ReadyCondition(); ready != nil {
		last = ready.LastTransitionTime.Time
	}
	known, flapped := decodeChanges(stored), slices.ContainsFunc(cluster.Spec.Taints, flapTaint)
	changes, flaps, after := clustercondition.Flapping(clustercondition.FlapFacts{
		Now: now, Window: r.options.FlapWindow, Changes: known, Last: last, Flapping: flapped,
	})
	f := flapping{flaps: flaps, after: after, annotations: annotations}
	text, until := encodeChanges(changes), ""
	if flaps {
		until = encodeChanges([]time.Time{now.Add(after)})
		annotations[clusterv1alpha1.FlappingUntilAnnotation] = until
	}
	// That a change no longer counts is not worth a write.
	f.changed = until != storedUntil || text != stored && (flaps != flapped || !slices.ContainsFunc(known, last.Equal) && slices.ContainsFunc(changes, last.Equal))
	if text != "" {
		annotations[clusterv1alpha1.ReadyChangesAnnotation] = text
	}
	return f
}

// taints adds or removes the taint, and reports whether that changed them.
func (f flapping) taints(taints []corev1.Taint, now time.Time) ([]corev1.Taint, bool) {
	has := slices.ContainsFunc(taints, flapTaint)
	switch {
	case f.flaps && !has:
		at := metav1.NewTime(now)
		return append(slices.Clone(taints), corev1.Taint{Key: clusterv1alpha1.TaintClusterFlapping, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &at}), true
	case !f.flaps && has:
		return slices.DeleteFunc(slices.Clone(taints), flapTaint), true
	}
	return taints, false
}

func flapTaint(t corev1.Taint) bool {
	return t.Key == clusterv1alpha1.TaintClusterFlapping && t.Effect == corev1.TaintEffectNoSchedule
}

// decodeChanges returns the times in an annotation. What is no time is ignored.
func decodeChanges(text string) []time.Time {
	var out []time.Time
	for field := range strings.SplitSeq(text, ",") {
		if at, err := time.Parse(time.RFC3339, field); err == nil {
			out = append(out, at)
		}
	}
	return out
}

func encodeChanges(changes []time.Time) string {
	fields := make([]string, len(changes))
	for i, at := range changes {
		fields[i] = at.UTC().Format(time.RFC3339)
	}
	return strings.Join(fields, ",")
}
