package detector

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/policy"
)

// relearn has the propagated templates looked at whose kind gets other rules. No
// user touched them, so lazy policies do not take effect.
func (d *detector) relearn(ctx context.Context, affects func(schema.GroupVersionKind) bool) {
	if ctx.Err() != nil {
		return
	}
	for _, gvk := range d.store.Kinds() {
		if !affects(gvk) {
			continue
		}
		for _, obj := range d.store.CachedAll(gvk) {
			if _, claimed := policy.Of(obj); claimed {
				d.queue.addLowPriority(templateKey{objectKey: keyOf(obj), byPolicy: true})
			}
		}
	}
}
