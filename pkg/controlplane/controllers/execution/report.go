package execution

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

// report is what there is to say about a Work.
type report struct {
	suspended bool
	// reachable says that the member can be looked at.
	reachable bool
	// applied is how the objects got into the member; nil when it was not tried.
	applied *result
}

// report writes the status of a Work if it differs from what is there and it is
// time to. It returns when to try again.
func (r *runner) report(ctx context.Context, work *workv1alpha1.Work, s *state, rep report) (time.Duration, error) {
	now := r.c.deps.Clock.Now()
	before := s.current(work, now)
	after := before.DeepCopy()
	r.conditions(work, after, rep, now)
	var err error
	what := settled
	if rep.reachable && appliedTrue(after) && len(s.objects) > 0 {
		var healthy bool
		healthy, err = r.observeAll(work, s, rep.suspended)
		after.ManifestStatuses = manifestStatuses(s.objects, after.ManifestStatuses)
		setInterpreted(after, s.objects, now)
		if !healthy {
			what = unsettled
		}
	}
	if equality.Semantic.DeepEqual(before, after) {
		s.dirtySince = time.Time{}
		if what == settled {
			r.waiting.Done(work.Name, now)
		}
		return 0, err
	}
	if s.dirtySince.IsZero() {
		s.dirtySince = now
	}
	if rep.applied != nil && rep.applied.err != nil {
		what = failed
	}
	if flipped(before, after, workv1alpha1.WorkDispatching) {
		what = settled
	}
	if wait := r.c.deps.Pace.wait(what, now, s.dirtySince, s.writtenAt, r.patience(work.Name, what, now)); wait > 0 {
		return wait, err
	}
	writeErr := r.write(ctx, work, s, after)
	if apierrors.IsNotFound(writeErr) {
		return 0, err // the event of its deletion enqueues it
	}
	if writeErr != nil {
		return 0, errors.Join(err, writeErr)
	}
	s.dirtySince, s.writtenAt = time.Time{}, now
	r.waiting.Publish(work.Name)
	r.tell(work, before, after, rep)
	return trust, err // to see that it is stored
}

// patience returns how long the objects of a Work may take to become healthy.
func (r *runner) patience(work string, what change, now time.Time) time.Duration {
	switch what {
	case unsettled:
		return r.waiting.Wait(work, now, r.c.deps.Pace.Settle)
	case settled:
		r.waiting.Done(work, now)
	case failed:
		r.waiting.Forget(work)
	}
	return 0
}

// trust is how long a written status is taken for the one that is stored when the
// cache does not show it. A control plane that was restored from a backup has lost
// it, and versions that went back never catch up.
const trust = 30 * time.Second

// current returns the status as it is in the control plane: as the cache shows
// it, or as it was written if the cache is behind.
func (s *state) current(work *workv1alpha1.Work, now time.Time) *workv1alpha1.WorkStatus {
	if s.written != nil && newer(s.writtenVersion, work.ResourceVersion) && now.Sub(s.writtenAt) < trust {
		return s.written
	}
	s.written = nil
	return &work.Status
}

// conditions sets Dispatching and Applied.
func (r *runner) conditions(work *workv1alpha1.Work, status *workv1alpha1.WorkStatus, rep report, now time.Time) {
	dispatching := metav1.Condition{
		Type: workv1alpha1.WorkDispatching, Status: metav1.ConditionTrue,
		Reason: workv1alpha1.WorkDispatchingReason, Message: workv1alpha1.WorkDispatchingMessage,
	}
	if rep.suspended {
		dispatching.Status = metav1.ConditionFalse
		dispatching.Reason, dispatching.Message = workv1alpha1.WorkSuspendDispatchReason, workv1alpha1.WorkSuspendDispatchMessage
	}
	dispatching.LastTransitionTime = metav1.NewTime(now)
	meta.SetStatusCondition(&status.Conditions, dispatching)

	res := rep.applied
	if res == nil || res.err == nil && res.incomplete {
		return
	}
	applied := metav1.Condition{
		Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
		Reason: workv1alpha1.WorkAppliedSuccessReason, Message: workv1alpha1.WorkAppliedSuccessMessage,
		ObservedGeneration: work.Generation, LastTransitionTime: metav1.NewTime(now),
	}
	if res.err != nil {
		applied.Status, applied.Reason = metav1.ConditionFalse, workv1alpha1.WorkAppliedFailedReason
		applied.Message = res.message()
	}
	meta.SetStatusCondition(&status.Conditions, applied)
}

// maxErrors is how long the errors of all objects of a Work may be, in bytes: the API
// has a limit of 32 KiB for messages of conditions.
const maxErrors = 8 << 10

// message says what failed.
func (res *result) message() string {
	return fmt.Sprintf("Failed to apply all manifests (%d/%d): %s", res.ok, res.total, plaintext.Line(res.err.Error(), maxErrors))
}

// observeAll brings status and health of the objects up to date and says whether
// all are healthy.
func (r *runner) observeAll(work *workv1alpha1.Work, s *state, suspended bool) (healthy bool, err error) {
	healthy = true
	var errs []error
	for _, o := range s.objects {
		if err := r.observe(work, s, o, suspended); err != nil {
			errs = append(errs, err)
		}
		healthy = healthy && o.health == workv1alpha1.ResourceHealthy
	}
	return healthy, errors.Join(errs...)
}

// observe brings status and health of an object up to date. An object that is
// not there keeps what it had, since it is about to come back; while dispatching
// is suspended nobody brings it back, so its health is unknown.
func (r *runner) observe(work *workv1alpha1.Work, s *state, o *object, suspended bool) error {
	if o.kind == nil {
		return nil
	}
	seen := o.kind.mirror.Get(o.key)
	switch {
	case o.response == nil:
	case seen == nil || newer(o.response.version, seen.version):
		seen = o.response
	default:
		o.response = nil
	}
	if seen == nil {
		if suspended && o.kind.mirror.HasSynced() && o.seen != "" {
			o.health = workv1alpha1.ResourceUnknown
			o.seen = "gone"
		}
		return nil
	}
	edition := r.c.editions.of(o.gvk)
	if seen.version == o.seen && o.learned == edition {
		return nil
	}
	if err := r.interpret(work, s, o, seen); err != nil {
		return err
	}
	o.learned = edition
	return nil
}

// maxStatus is how large the status of an object may be that is kept in its Work, in
// bytes: the control plane stores the status of every object of every cluster.
const maxStatus = 512 << 10

// interpret asks what an object's status and health are.
func (r *runner) interpret(work *workv1alpha1.Work, s *state, o *object, seen *copied) error {
	obj, err := seen.object()
	if err != nil {
		return err
	}
	in := r.interpreter()
	status, err := in.ReflectStatus(obj)
	o.trouble = trouble{}
	if err != nil {
		o.trouble = trouble{reasonReflectStatusFailed, fmt.Sprintf("Reflect status for object(%s/%s) failed, err: %s.", o.gvk.Kind, o.key, memberText(err.Error()))}
		s.report(r.c.events, work, o, o.trouble.reason, o.trouble.message)
		return fmt.Errorf("reflecting the status of %s %s: %w", o.gvk.Kind, o.key, err)
	}
	if status != nil && len(status.Raw) > maxStatus {
		o.trouble = trouble{reasonReflectStatusFailed, fmt.Sprintf("Status of object(%s/%s) is left out: it has %d bytes, more than %d.", o.gvk.Kind, o.key, len(status.Raw), maxStatus)}
		s.report(r.c.events, work, o, o.trouble.reason, o.trouble.message)
		status = nil
	}
	health := workv1alpha1.ResourceHealthy
	if in.HookEnabled(o.gvk, configv1alpha1.InterpreterOperationInterpretHealth) {
		ok, err := in.InterpretHealth(obj)
		switch {
		case err != nil:
			health = workv1alpha1.ResourceUnknown
			o.trouble = trouble{reasonInterpretHealthFailed, fmt.Sprintf("Interpret health of object(%s/%s) failed, err: %s.", o.gvk.Kind, o.key, memberText(err.Error()))}
			s.report(r.c.events, work, o, o.trouble.reason, o.trouble.message)
		case !ok:
			health = workv1alpha1.ResourceUnhealthy
		}
		if err == nil && (o.seen == "" || o.health != health) {
			r.c.events.healthInterpreted(work, o, health)
		}
	}
	if o.seen == "" || !sameRaw(o.status, status) {
		o.status = status
		r.c.events.statusReflected(work, o)
	}
	o.seen, o.health = seen.version, health
	return nil
}

// report tells the user once for each message.
func (s *state) report(e events, work *workv1alpha1.Work, o *object, reason, message string) {
	key := reason + o.key.String()
	if s.reported[key] == message {
		return
	}
	if s.reported == nil {
		s.reported = map[string]string{}
	}
	s.reported[key] = message
	e.statusFailed(work, reason, message)
}

// manifestStatuses returns the status of each object that was observed. An
// object that was not keeps the status it has in before.
func manifestStatuses(objects []*object, before []workv1alpha1.ManifestStatus) []workv1alpha1.ManifestStatus {
	var out []workv1alpha1.ManifestStatus
	for i, o := range objects {
		id := workv1alpha1.ResourceIdentifier{
			Ordinal: i, Group: o.gvk.Group, Version: o.gvk.Version, Kind: o.gvk.Kind,
			Namespace: o.key.Namespace, Name: o.key.Name,
		}
		old := statusOf(before, id)
		switch {
		case o.seen == "" && old != nil:
			kept := *old
			kept.Identifier = id
			out = append(out, kept)
		case o.seen != "":
			status := o.status
			if old != nil && sameRaw(old.Status, status) {
				status = old.Status
			}
			out = append(out, workv1alpha1.ManifestStatus{Identifier: id, Status: status, Health: o.health})
		}
	}
	return out
}

func statusOf(statuses []workv1alpha1.ManifestStatus, id workv1alpha1.ResourceIdentifier) *workv1alpha1.ManifestStatus {
	for i := range statuses {
		have := statuses[i].Identifier
		if have.Group == id.Group && have.Version == id.Version && have.Kind == id.Kind && have.Namespace == id.Namespace && have.Name == id.Name {
			return &statuses[i]
		}
	}
	return nil
}

// sameRaw compares JSON by meaning; null is nothing.
func sameRaw(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil || len(a.Raw) == 0 || len(b.Raw) == 0 {
		return (a == nil || len(a.Raw) == 0) == (b == nil || len(b.Raw) == 0)
	}
	if bytes.Equal(a.Raw, b.Raw) {
		return true
	}
	var x, y any
	return unmarshal(a.Raw, &x) == nil && unmarshal(b.Raw, &y) == nil && equality.Semantic.DeepEqual(withoutNulls(x), withoutNulls(y))
}

// withoutNulls takes the fields out that are null: the API server does not store
// them.
func withoutNulls(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			if field == nil {
				delete(v, key)
				continue
			}
			withoutNulls(field)
		}
	case []any:
		for _, element := range v {
			withoutNulls(element)
		}
	}
	return value
}

// write patches the status. The UID makes the patch miss another Work with the
// same name.
func (r *runner) write(ctx context.Context, work *workv1alpha1.Work, s *state, status *workv1alpha1.WorkStatus) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": work.UID},
		"status":   map[string]any{"conditions": status.Conditions, "manifestStatuses": status.ManifestStatuses},
	})
	if err != nil {
		return fmt.Errorf("encoding the status of work %s/%s: %w", work.Namespace, work.Name, err)
	}
	out := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}}
	err = r.c.client.Status().Patch(ctx, out, client.RawPatch(types.MergePatchType, patch))
	if err != nil {
		return fmt.Errorf("writing the status of work %s/%s: %w", work.Namespace, work.Name, err)
	}
	s.written, s.writtenVersion = &out.Status, out.ResourceVersion
	return nil
}

// tell publishes what a written status is news of.
func (r *runner) tell(work *workv1alpha1.Work, before, after *workv1alpha1.WorkStatus, rep report) {
	if flipped(before, after, workv1alpha1.WorkDispatching) {
		r.c.events.dispatching(work, meta.FindStatusCondition(after.Conditions, workv1alpha1.WorkDispatching).Message)
	}
	if r.c.events.all && meta.FindStatusCondition(before.Conditions, workv1alpha1.WorkDispatching) == nil && !rep.suspended {
		r.c.events.dispatching(work, workv1alpha1.WorkDispatchingMessage)
	}
	if rep.applied == nil {
		return
	}
	old := meta.FindStatusCondition(before.Conditions, workv1alpha1.WorkApplied)
	if rep.applied.err == nil {
		if now := meta.FindStatusCondition(after.Conditions, workv1alpha1.WorkApplied); now != nil && !rep.applied.incomplete &&
			(old == nil || old.Status != now.Status || old.ObservedGeneration != now.ObservedGeneration) {
			r.c.events.workApplied(work, r.cluster)
		}
		return
	}
	if old == nil || old.Status != metav1.ConditionFalse || old.Message != rep.applied.message() {
		r.c.events.failed(work, rep.applied.failed, r.cluster, memberText(rep.applied.err.Error()))
	}
}

// flipped says whether a condition changed its status; one that starts as True
// did not.
func flipped(before, after *workv1alpha1.WorkStatus, kind string) bool {
	now := meta.FindStatusCondition(after.Conditions, kind)
	old := meta.FindStatusCondition(before.Conditions, kind)
	if now == nil {
		return false
	}
	if old == nil {
		return now.Status != metav1.ConditionTrue
	}
	return old.Status != now.Status
}

func appliedTrue(status *workv1alpha1.WorkStatus) bool {
	return meta.IsStatusConditionTrue(status.Conditions, workv1alpha1.WorkApplied)
}
