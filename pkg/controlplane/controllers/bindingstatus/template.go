package bindingstatus

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/conditions"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
)

// The events of the controllers.
const (
	reasonSucceed  = "AggregateStatusSucceed"
	reasonFailed   = "AggregateStatusFailed"
	messageSucceed = "Update Resource with AggregatedStatus successfully."
)

// templateState is what is remembered of a template.
type templateState struct {
	// status is what was written last, and version the version it made.
	status  any
	version string
	// news says that the template is complete since the user was last told.
	news bool
	// recheck is after how long the conditions change next; 0 means never.
	recheck time.Duration
	// excluded are the statuses that are left out of the template's, by cluster, and
	// saidExcluded is what was last published about them.
	excluded     map[string]exclusion
	saidExcluded string
}

// template writes the status of the template if there is a rule for its kind and
// it differs.
func (r *Reconciler) template(ctx context.Context, binding workv1alpha2.Binding, s *state, items []workv1alpha2.AggregatedStatusItem) error {
	ref := binding.GetSpec().Resource
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	nothing := len(items) == 0 && binding.GetStatus().AggregatedStatus == nil && s.written == nil
	if nothing || !r.aggregates(binding.GetNamespace(), &ref, gvk) {
		return nil
	}
	if err := r.templatesKnown(ctx); err != nil {
		return err
	}
	template, err := r.deps.Templates.Get(ctx, gvk, ref.Namespace, ref.Name)
	if apierrors.IsNotFound(err) || err == nil && ref.UID != "" && template.GetUID() != ref.UID {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the template: %w", err)
	}
	template = s.template.latest(template)
	before := s.template.version
	if err := r.aggregate(ctx, parties{binding, template, s}, items); err != nil {
		return err
	}
	if s.template.news || r.deps.Events.All() && s.template.version != before {
		s.template.news = false
		r.events.Event(template, corev1.EventTypeNormal, reasonSucceed, messageSucceed)
	}
	return nil
}

// aggregates reports whether the status of a template is written for a binding in a namespace: there must be a rule for
// its kind, and nothing outside of the namespace of a binding that a user created may change by it.
func (r *Reconciler) aggregates(namespace string, ref *workv1alpha2.ObjectReference, gvk schema.GroupVersionKind) bool {
	if namespace != "" && (ref.Namespace != namespace || delivery.Check(namespace, ref) != nil) {
		return false
	}
	return r.deps.Interpreter.HookEnabled(gvk, configv1alpha1.InterpreterOperationAggregateStatus)
}

// aggregate writes the status of the template, without the clusters that make it
// impossible.
func (r *Reconciler) aggregate(ctx context.Context, p parties, items []workv1alpha2.AggregatedStatusItem) error {
	items = p.state.template.withoutExcluded(items, r.deps.Clock.Now())
	after, err := r.statusFrom(p, items)
	if err != nil {
		items, err = r.aggregateWithout(ctx, p, items, err, func(items []workv1alpha2.AggregatedStatusItem) error {
			_, err := r.statusFrom(p, items)
			return err
		})
		if err == nil {
			after, err = r.statusFrom(p, items)
		}
	}
	if err != nil {
		return fmt.Errorf("adding up the status: %w", err)
	}
	err = r.writeTemplate(ctx, p.template, after, &p.state.template)
	if !refused(err) {
		return err
	}
	items, err = r.aggregateWithout(ctx, p, items, err, func(items []workv1alpha2.AggregatedStatusItem) error {
		status, err := r.statusFrom(p, items)
		if err == nil {
			err = r.tryTemplate(ctx, p.template, status)
		}
		return err
	})
	if err == nil {
		after, err = r.statusFrom(p, items)
	}
	if err != nil {
		return err
	}
	return r.writeTemplate(ctx, p.template, after, &p.state.template)
}

// statusFrom returns the status that the template gets from items.
func (r *Reconciler) statusFrom(p parties, items []workv1alpha2.AggregatedStatusItem) (any, error) {
	p.state.template.recheck = 0
	wanted, err := r.deps.Interpreter.AggregateStatus(p.template.DeepCopy(), items)
	if err != nil || !r.deps.TemplateConditions {
		return statusOf(wanted), err
	}
	result, err := conditions.Apply(conditions.Input{
		Template: p.template, Aggregated: wanted, Items: items, Targets: targets(p.binding.GetSpec()), Now: r.deps.Clock.Now(),
	})
	if err != nil {
		return nil, err
	}
	p.state.template.recheck = result.Recheck
	return statusOf(result.Template), nil
}

func statusOf(obj *unstructured.Unstructured) any {
	if obj == nil {
		return nil
	}
	return obj.Object["status"]
}

// templatesKnown waits until the templates have been listed, so that a start
// does not read them one by one.
func (r *Reconciler) templatesKnown(ctx context.Context) error {
	if waiter, ok := r.deps.Templates.(interface{ WaitForSync(context.Context) error }); ok {
		return waiter.WaitForSync(ctx)
	}
	return nil
}

// latest returns the template with the status that was written last, when it is
// older than that.
func (t *templateState) latest(template *unstructured.Unstructured) *unstructured.Unstructured {
	if t.version == "" || !newer(t.version, template.GetResourceVersion()) {
		t.version, t.status = "", nil
		return template
	}
	out := &unstructured.Unstructured{Object: make(map[string]any, len(template.Object)+1)}
	maps.Copy(out.Object, template.Object)
	out.Object["status"] = t.status
	return out
}

// sameStatus compares two values of JSON by meaning; no status equals an empty
// one.
func sameStatus(a, b any) bool {
	if equality.Semantic.DeepEqual(a, b) {
		return true
	}
	x, err1 := normal(a)
	y, err2 := normal(b)
	return err1 == nil && err2 == nil && equality.Semantic.DeepEqual(x, y)
}

// normal passes a value through JSON, so that numbers have one type.
func normal(value any) (any, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	if m, ok := out.(map[string]any); ok && len(m) == 0 {
		return nil, nil
	}
	return out, nil
}

// writeTemplate patches the status of the template if it differs. Nobody else
// writes it, so the patch holds for any version of the object.
func (r *Reconciler) writeTemplate(ctx context.Context, template *unstructured.Unstructured, after any, t *templateState) error {
	out, err := r.patchTemplate(ctx, template, after)
	if err == nil && out != nil {
		t.version, t.status = out.GetResourceVersion(), out.Object["status"]
	}
	return err
}

// tryTemplate returns the error of the API server if it refuses the status.
func (r *Reconciler) tryTemplate(ctx context.Context, template *unstructured.Unstructured, after any) error {
	_, err := r.patchTemplate(ctx, template, after, client.DryRunAll)
	return err
}

// patchTemplate returns nil when there is nothing to write.
func (r *Reconciler) patchTemplate(ctx context.Context, template *unstructured.Unstructured, after any, opts ...client.SubResourcePatchOption) (*unstructured.Unstructured, error) {
	before := template.Object["status"]
	if sameStatus(before, after) {
		return nil, nil
	}
	patch, err := statusPatch(template.GetUID(), before, after)
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(template.GroupVersionKind())
	out.SetNamespace(template.GetNamespace())
	out.SetName(template.GetName())
	err = r.client.Status().Patch(ctx, out, client.RawPatch(types.MergePatchType, patch), opts...)
	if apierrors.IsNotFound(err) {
		return nil, nil // gone, or of a kind without a status of its own
	}
	if err != nil {
		return nil, fmt.Errorf("writing the status of the template: %w", err)
	}
	return out, nil
}

func statusPatch(uid types.UID, before, after any) ([]byte, error) {
	from, err := json.Marshal(map[string]any{"status": orEmpty(before)})
	if err != nil {
		return nil, fmt.Errorf("encoding the status: %w", err)
	}
	to, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": orEmpty(after)})
	if err != nil {
		return nil, fmt.Errorf("encoding the status: %w", err)
	}
	patch, err := jsonpatch.CreateMergePatch(from, to)
	if err != nil {
		return nil, fmt.Errorf("comparing the status: %w", err)
	}
	return patch, nil
}

func orEmpty(status any) any {
	if status == nil {
		return map[string]any{}
	}
	return status
}

// aggregated records that the status of a binding was written, if every success
// is recorded.
func (r *Reconciler) aggregated(binding workv1alpha2.Binding, changed bool) {
	if !changed || !r.deps.Events.All() {
		return
	}
	kind, name := "ClusterResourceBinding", binding.GetName()
	if ns := binding.GetNamespace(); ns != "" {
		kind, name = "ResourceBinding", ns+"/"+name
	}
	r.events.Event(binding, corev1.EventTypeNormal, reasonSucceed, fmt.Sprintf("Update %s(%s) with AggregatedStatus successfully.", kind, name))
}

// told tells the user about a failure, on the binding and the template, once for
// each message.
func (r *Reconciler) told(ctx context.Context, binding workv1alpha2.Binding, s *state, err error) error {
	if err == nil {
		s.failure = ""
		return nil
	}
	if ctx.Err() != nil || s.failure == err.Error() {
		return err
	}
	s.failure = err.Error()
	r.events.Event(binding, corev1.EventTypeWarning, reasonFailed, s.failure)
	ref := binding.GetSpec().Resource
	r.events.Event(&corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID},
		corev1.EventTypeWarning, reasonFailed, s.failure)
	return err
}
