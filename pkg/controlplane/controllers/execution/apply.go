package execution

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/dynamic"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/manifest"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

const (
	// confirmAfter is when an object that was written but never observed is looked
	// for in the member.
	confirmAfter = 5 * time.Second
	// listWithin is how long objects are waited for that a member may have since
	// before the start.
	listWithin = 10 * time.Second
	// attempts bounds the tries to write an object that changes meanwhile.
	attempts = 4
)

// need is what an object needs.
type need int

const (
	nothing   need = iota // it is as wanted, as far as can be seen
	listing               // it may be there: wait until the member's objects are known
	reading               // it may be there: look in the member
	making                // it is not there
	comparing             // it is there, and may differ from what is wanted
)

// decide says what an object needs: seen is how the mirror shows it, listed
// whether the mirror has seen everything, before whether an earlier process may
// have made it.
func (s *state) decide(o *object, seen *copied, listed, before bool, now time.Time) need {
	if seen == nil {
		return s.decideUnseen(o, listed, before, now)
	}
	behind := o.uid != "" && !newer(seen.version, o.version)
	switch {
	case o.applied && (behind || seen.uid == o.uid && seen.hash == o.hash):
		return nothing
	case behind && seen.version != o.version:
		return reading
	}
	return comparing
}

// decideUnseen is decide for an object that the mirror does not show.
func (s *state) decideUnseen(o *object, listed, before bool, now time.Time) need {
	switch {
	case o.uid == "" && before && !listed:
		return listing
	case s.wasGone(o.uid) || o.uid == "" && !o.exists:
		return making
	case !o.applied:
		return reading
	case !listed || now.Sub(o.appliedAt) < confirmAfter:
		return nothing
	}
	return reading
}

// result is how the objects of a Work got into the member.
type result struct {
	ok, total int
	err       error
	failed    []failedObject
	// incomplete says that some objects are yet to be looked at, after wait at the
	// latest.
	incomplete bool
	wait       time.Duration
}

// apply brings the objects of a Work into the member.
func (r *runner) apply(ctx context.Context, member *access.Member, work *workv1alpha1.Work, s *state) result {
	res := result{total: len(work.Spec.Workload.Manifests)}
	if err := r.load(work, s); err != nil {
		res.err = err
		return res
	}
	var errs []error
	for i := range s.objects {
		wait, complete, err := r.applyObject(ctx, member, work, s, i)
		switch {
		case err != nil:
			errs = append(errs, err)
			res.failed = append(res.failed, failure(work.Spec.Workload.Manifests[i].Raw, err))
			continue
		case !complete:
			res.incomplete = true
		default:
			res.ok++
		}
		if wait > 0 && (res.wait == 0 || wait < res.wait) {
			res.wait = wait
		}
	}
	res.err = utilerrors.NewAggregate(errs)
	return res
}

// applyObject brings one object into the member. It returns when to look again,
// and whether the object is as wanted.
func (r *runner) applyObject(ctx context.Context, member *access.Member, work *workv1alpha1.Work, s *state, i int) (wait time.Duration, complete bool, err error) {
	o := s.objects[i]
	if err := r.resolve(member, work.Name, o); err != nil {
		return 0, false, err
	}
	if edition := r.c.editions.of(o.gvk); o.taught != edition {
		o.taught, o.applied = edition, false
	}
	now := r.c.deps.Clock.Now()
	seen, listed := o.kind.mirror.Get(o.key), o.kind.mirror.HasSynced()
	want := s.decide(o, seen, listed, meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied) != nil, now)
	if want == listing {
		if left := listWithin - now.Sub(o.kind.since); left > 0 {
			return left, false, nil
		}
		want = reading
	}
	if want == nothing {
		if seen == nil && listed {
			wait = confirmAfter - now.Sub(o.appliedAt)
		}
		if seen != nil && newer(seen.version, o.version) {
			o.version = seen.version
		}
		return wait, true, nil
	}
	if err := r.bring(ctx, r.writer(member, work, s, o), work.Spec.Workload.Manifests[i].Raw, want, seen); err != nil {
		return 0, false, err
	}
	if !listed {
		o.kind.mirror.Retry()
	}
	return confirmAfter, true, nil
}

// bring does what an object needs.
func (r *runner) bring(ctx context.Context, w *writer, raw []byte, want need, seen *copied) error {
	desired := &unstructured.Unstructured{}
	if err := desired.UnmarshalJSON(raw); err != nil {
		return fmt.Errorf("decoding the manifest: %w", err)
	}
	var observed *unstructured.Unstructured
	if want == comparing {
		obj, err := seen.object()
		if err != nil {
			return err
		}
		observed = obj
	}
	var err error
	for range attempts {
		if want == reading {
			if observed, err = w.get(ctx); err != nil {
				return err
			}
		}
		if observed == nil {
			err = w.create(ctx, desired)
		} else {
			err = w.update(ctx, desired, observed)
		}
		if !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) && (observed == nil || !apierrors.IsNotFound(err)) {
			return err
		}
		want = reading
	}
	return err
}

// writer writes one object of a member.
type writer struct {
	r        *runner
	work     *workv1alpha1.Work
	state    *state
	object   *object
	resource dynamic.ResourceInterface
}

func (r *runner) writer(member *access.Member, work *workv1alpha1.Work, s *state, o *object) *writer {
	w := &writer{r: r, work: work, state: s, object: o}
	if w.resource = member.Dynamic().Resource(o.gvr); o.key.Namespace != "" {
		w.resource = member.Dynamic().Resource(o.gvr).Namespace(o.key.Namespace)
	}
	return w
}

// get reads the object from the member; nil when it is not there.
func (w *writer) get(ctx context.Context) (*unstructured.Unstructured, error) {
	ctx, cancel := w.r.bounded(ctx)
	defer cancel()
	obj, err := w.resource.Get(ctx, w.object.key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return obj, err
}

func (w *writer) create(ctx context.Context, desired *unstructured.Unstructured) error {
	ctx, cancel := w.r.bounded(ctx)
	defer cancel()
	made, err := w.resource.Create(ctx, desired, metav1.CreateOptions{})
	if w.object.exists = apierrors.IsAlreadyExists(err); !w.object.exists {
		w.r.c.metrics.created(w.object.gvk, w.r.cluster, err)
	}
	if err != nil {
		return err
	}
	return w.wrote(desired, made)
}

// update makes the observed object what is desired, if it may be touched and
// differs.
func (w *writer) update(ctx context.Context, manifested, observed *unstructured.Unstructured) error {
	o := w.object
	if observed.GetDeletionTimestamp() != nil {
		return fmt.Errorf("resource(kind=%s, %s) in the cluster %s is being deleted, it is created again when it is gone", o.gvk.Kind, o.key, w.r.cluster)
	}
	overwrite := manifested.GetAnnotations()[workv1alpha2.ResourceConflictResolutionAnnotation] == workv1alpha2.ResourceConflictResolutionOverwrite
	if !overwrite && !w.owned(observed) {
		return fmt.Errorf("resource(kind=%s, %s) already exists in the cluster %s and the %s strategy value is %s, Karmada will not manage this resource; "+
			"to take it over, set \"conflictResolution: Overwrite\" in the policy",
			o.gvk.Kind, o.key, w.r.cluster, workv1alpha2.ResourceConflictResolutionAnnotation, workv1alpha2.ResourceConflictResolutionAbort)
	}
	desired, err := w.retain(manifested, observed)
	if err != nil {
		return err
	}
	if manifest.Equal(desired, observed) {
		w.r.c.metrics.updated(o.gvk, w.r.cluster, operationNone, nil)
		return w.record(observed)
	}
	ctx, cancel := w.r.bounded(ctx)
	defer cancel()
	made, err := w.resource.Update(ctx, desired, metav1.UpdateOptions{})
	if !apierrors.IsConflict(err) {
		w.r.c.metrics.updated(o.gvk, w.r.cluster, operationOf(observed, made), err)
	}
	if err != nil {
		return err
	}
	if made.GetResourceVersion() == observed.GetResourceVersion() {
		return w.record(made)
	}
	return w.wrote(desired, made)
}

// retain returns the manifest as an update of the observed object.
func (w *writer) retain(manifested, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	desired := manifested.DeepCopy()
	manifest.RetainMetadata(desired, observed)
	in := w.r.interpreter()
	if !in.HookEnabled(w.object.gvk, configv1alpha1.InterpreterOperationRetain) {
		return desired, nil
	}
	desired, err := in.Retain(desired, observed)
	if err != nil {
		return nil, fmt.Errorf("retaining fields: %w", err)
	}
	return desired, nil
}

// owned says whether an object belongs to the Work: it carries the mark, and
// does not name another Work.
func (w *writer) owned(obj *unstructured.Unstructured) bool {
	if !manifest.Owned(obj) {
		return false
	}
	annotations := obj.GetAnnotations()
	namespace, name := annotations[workv1alpha2.WorkNamespaceAnnotation], annotations[workv1alpha2.WorkNameAnnotation]
	return namespace == "" && name == "" || namespace == w.work.Namespace && name == w.work.Name
}

// wrote records an object that was created or changed, and tells the user.
func (w *writer) wrote(desired, made *unstructured.Unstructured) error {
	w.r.c.events.objectApplied(desired, w.r.cluster)
	return w.record(made)
}

// record remembers the object as the one that is wanted.
func (w *writer) record(obj *unstructured.Unstructured) error {
	c, err := w.r.c.copy(obj)
	if err != nil {
		return err
	}
	o := w.object
	if o.uid != "" && o.uid != c.uid {
		w.state.buried(o.uid)
	}
	o.applied, o.exists, o.uid, o.version, o.hash = true, false, c.uid, c.version, c.hash
	o.appliedAt, o.response = w.r.c.deps.Clock.Now(), &c
	return nil
}

// put writes an object as it is.
func (w *writer) put(ctx context.Context, obj *unstructured.Unstructured) error {
	ctx, cancel := w.r.bounded(ctx)
	defer cancel()
	_, err := w.resource.Update(ctx, obj, metav1.UpdateOptions{})
	return err
}
