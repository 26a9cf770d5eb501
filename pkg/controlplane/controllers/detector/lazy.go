package detector

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/policy"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
)

// onTemplate enqueues a template that changed. A template that is gone only
// leaves the memory.
func (d *detector) onTemplate(e templates.Event) {
	key := keyOf(e.Object())
	if e.New == nil {
		d.matched(key)
		d.records.remove(key)
		return
	}
	request := templateKey{objectKey: key, byPolicy: d.byPolicy(e)}
	if !e.Initial {
		d.queue.inner.Add(request)
		return
	}
	if _, claimed := policy.Of(e.New); !claimed {
		d.unmatched.list(key)
	}
	d.queue.addLowPriority(request)
}

// byPolicy says whether the change is one that a lazy policy does not act upon:
// the control plane's own, or a restart of it.
func (d *detector) byPolicy(e templates.Event) bool {
	if e.Old == nil && !e.Initial {
		return false
	}
	claim, ok := policy.Of(e.New)
	if !ok {
		return false
	}
	p := claim.Scope().New()
	key := client.ObjectKey{Namespace: claim.Namespace, Name: claim.Name}
	if err := d.client.Get(context.Background(), key, p, client.UnsafeDisableDeepCopy); err != nil || !policy.IsLazy(p) {
		return false
	}
	return e.Old == nil || !userEdited(e.Old, e.New)
}

// ownKeys are the labels and annotations that the control plane writes on
// templates.
func ownKeys() []string {
	return []string{
		policyv1alpha1.PropagationPolicyPermanentIDLabel,
		policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel,
		policyv1alpha1.PropagationPolicyNamespaceAnnotation,
		policyv1alpha1.PropagationPolicyNameAnnotation,
		policyv1alpha1.ClusterPropagationPolicyAnnotation,
		workv1alpha2.ResourceTemplateClaimedByLabel,
		workv1alpha2.RetainReplicasLabel,
	}
}

// userEdited says whether anything differs but what the control plane itself
// writes.
func userEdited(before, after *unstructured.Unstructured) bool {
	return !templates.SameContent(withoutOwn(before), withoutOwn(after))
}

func withoutOwn(obj *unstructured.Unstructured) *unstructured.Unstructured {
	content := templates.Content(obj)
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		return &unstructured.Unstructured{Object: content}
	}
	delete(metadata, "generation")
	for _, field := range []string{"labels", "annotations"} {
		have, ok := metadata[field].(map[string]any)
		if !ok {
			continue
		}
		have = maps.Clone(have)
		for _, key := range ownKeys() {
			delete(have, key)
		}
		metadata[field] = have
		if len(have) == 0 {
			delete(metadata, field)
		}
	}
	return &unstructured.Unstructured{Object: content}
}
