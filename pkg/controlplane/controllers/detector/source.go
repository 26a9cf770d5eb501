package detector

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpretation/notify"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
)

// templateSource enqueues templates that changed, and those whose rules of
// interpretation changed.
type templateSource struct {
	client      client.Reader
	store       *templates.Store
	interpreter env.Interpreter
	queue       *queue
	waiting     *waiting
	bindings    *bindings
}

// Start implements source.TypedSource.
func (s *templateSource) Start(ctx context.Context, q workQueue) error {
	s.queue.start(q)
	notify.Subscribe(s.interpreter, func(affects func(schema.GroupVersionKind) bool) { s.requeueAffected(ctx, affects) })
	return s.store.Subscribe(s.onTemplate)
}

// WaitForSync waits for the first list of all templates.
func (s *templateSource) WaitForSync(ctx context.Context) error { return s.store.WaitForSync(ctx) }

// requeueAffected enqueues the propagated templates of the kinds whose rules changed.
// No user changed them, so lazy policies are not applied.
func (s *templateSource) requeueAffected(ctx context.Context, affects func(schema.GroupVersionKind) bool) {
	if ctx.Err() != nil {
		return
	}
	for _, obj := range s.store.CachedAll(affects) {
		if _, claimed := policy.Of(obj); claimed {
			s.queue.addLowPriority(templateKey{objectKey: keyOf(obj), byPolicy: true})
		}
	}
}

// onTemplate enqueues a template that changed, or forgets one that was deleted.
func (s *templateSource) onTemplate(e templates.Event) {
	key := keyOf(e.Object())
	if e.New == nil {
		s.waiting.remove(key)
		s.bindings.forget(key)
		return
	}
	request := templateKey{objectKey: key, byPolicy: s.byPolicy(e)}
	if !e.Initial {
		s.queue.inner.Add(request)
		return
	}
	if _, claimed := policy.Of(e.New); !claimed {
		s.waiting.update(key, func(t *waitingTemplate) { *t = waitingTemplate{waits: t.waits, listed: true} })
	}
	s.queue.addLowPriority(request)
}

// byPolicy reports whether a change does not activate a lazy policy: the control plane
// made it, or it is the first list after a restart.
func (s *templateSource) byPolicy(e templates.Event) bool {
	if e.Old == nil && !e.Initial {
		return false
	}
	claim, ok := policy.Of(e.New)
	if !ok {
		return released(e)
	}
	p := claim.Scope().New()
	key := client.ObjectKey{Namespace: claim.Namespace, Name: claim.Name}
	if err := s.client.Get(context.Background(), key, p, client.UnsafeDisableDeepCopy); err != nil || !policy.IsLazy(p) {
		return false
	}
	return e.Old == nil || !userEdited(e.Old, e.New)
}

// released reports whether a template lost its claim and nothing else changed. The next
// policy did not select it by an edit of a user.
func released(e templates.Event) bool {
	if e.Old == nil {
		return false
	}
	_, claimed := policy.Of(e.Old)
	return claimed && !userEdited(e.Old, e.New)
}

// ownKeys returns the labels and annotations that the control plane writes on
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

// userEdited reports whether anything differs that the control plane does not write.
func userEdited(before, after *unstructured.Unstructured) bool {
	return !templates.SameContent(withoutOwn(before), withoutOwn(after))
}

func withoutOwn(obj *unstructured.Unstructured) *unstructured.Unstructured {
	if _, inert := obj.GetAnnotations()[workv1alpha2.InertAnnotation]; inert {
		obj = obj.DeepCopy()
		manifest.Reactivate(obj)
	}
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
