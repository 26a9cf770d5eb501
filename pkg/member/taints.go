package member

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/patch"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// UpdateTaints changes the taints of a cluster. Controllers write them too, so the
// change is made to what is there at the moment of writing. change returns the new
// taints, and false to leave them.
func UpdateTaints(ctx context.Context, c client.Client, cluster string, dryRun bool, change func([]corev1.Taint) ([]corev1.Taint, bool, error)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		obj := &clusterv1alpha1.Cluster{}
		if err := c.Get(ctx, client.ObjectKey{Name: cluster}, obj); err != nil {
			if apierrors.IsNotFound(err) {
				return notFederation(err)
			}
			return fmt.Errorf("reading cluster %q: %w", cluster, err)
		}
		locked := patch.Locked(obj)
		taints, changed, err := change(obj.Spec.Taints)
		if err != nil || !changed || dryRun {
			return err
		}
		obj.Spec.Taints = taints
		return c.Patch(ctx, obj, locked)
	})
}

// FormatTaints returns taints in the notation of the command line, separated by commas.
func FormatTaints(taints []corev1.Taint) string {
	out := make([]string, 0, len(taints))
	for _, t := range taints {
		text := t.Key
		if t.Value != "" {
			text += "=" + t.Value
		}
		out = append(out, text+":"+string(t.Effect))
	}
	return strings.Join(out, ",")
}
