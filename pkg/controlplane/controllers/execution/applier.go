package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/apply"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/member"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/workstatus"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// applier applies and deletes the objects of the Works of one cluster.
type applier struct {
	config   apply.Config
	works    *works
	retainer apply.Retainer
	// revision returns the revision of the rules of a kind.
	revision func(schema.GroupVersionKind) uint64
	// cached reads Works, live what the cache may not have yet.
	cached, live client.Reader
	// kept is called with a namespace that stays in the member, and why.
	kept func(namespace, occupant string)
}

// observe starts the informers for the objects of a suspended Work, if they were applied.
func (a *applier) observe(m mapper, work *workv1alpha1.Work, s *workState) error {
	if !workstatus.Applied(&work.Status) {
		return nil
	}
	if err := a.works.load(work, s); err != nil {
		return err
	}
	for _, o := range s.objects {
		if err := a.works.resolve(m, work.Name, o); err != nil {
			return err
		}
		o.applied = o.applied.Observed(o.informer.Get(o.key).Snapshot)
	}
	return nil
}

// immutableRetry is the time until fields are written again that a member did not change. A change of an object that belongs to
// the Work, or of the template, writes them before.
const immutableRetry = time.Minute

// result is how the objects of a Work were applied.
type result struct {
	workstatus.Result
	failed []failedObject
	// wait is when to apply them again if nothing happens until then.
	wait time.Duration
}

// problem returns why objects were not applied, beginning with one of them; empty if they were.
func (r *result) problem() string {
	if r.Err == nil {
		return ""
	}
	if len(r.failed) > 0 {
		return r.failed[0].name + ": " + r.failed[0].message
	}
	return member.Text(r.Err.Error())
}

// apply applies the objects of a Work to the member.
func (a *applier) apply(ctx context.Context, m *access.Member, work *workv1alpha1.Work, s *workState) result {
	res := result{Result: workstatus.Result{Total: len(work.Spec.Workload.Manifests)}}
	if err := a.works.load(work, s); err != nil {
		res.Err = err
		return res
	}
	errs := a.clearRemoved(ctx, m, work, s)
	for i := range s.objects {
		wait, complete, err := a.applyObject(ctx, m, work, s, i)
		switch {
		case err != nil:
			errs = append(errs, err)
			res.failed = append(res.failed, failure(work.Spec.Workload.Manifests[i].Raw, err))
			continue
		case !complete:
			res.Incomplete = true
		default:
			res.Succeeded++
		}
		res.wait = controllers.Earliest(res.wait, wait)
	}
	if res.Err = utilerrors.NewAggregate(errs); apply.OnlyImmutable(res.Err) {
		res.Immutable, res.wait = true, immutableRetry
	}
	return res
}

// applyObject applies one object to the member. It returns when to do so again if
// nothing happens until then, and whether the object is as desired.
func (a *applier) applyObject(ctx context.Context, m *access.Member, work *workv1alpha1.Work, s *workState, i int) (wait time.Duration, complete bool, err error) {
	o := s.objects[i]
	if err := a.works.resolve(m, work.Name, o); err != nil {
		return 0, false, err
	}
	o.applied = o.applied.WithRevision(a.revision(o.gvk))
	view := o.informer.Get(o.key)
	uid := o.applied.UID()
	_, deleted := s.deleted.Load(uid)
	action, wait := apply.Decide(apply.Facts{
		Applied: o.applied, View: view, Deleted: deleted, Now: a.config.Clock.Now(),
		Preexisting: meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied) != nil,
	})
	switch action {
	case apply.ActionWait:
		return wait, false, nil
	case apply.ActionNone:
		o.applied = o.applied.Confirmed(view.Snapshot)
		return wait, true, nil
	}
	w := a.writer(m, work, o)
	if w.StatusIsField, err = m.StatusIsField(o.gvr); err != nil {
		return 0, false, err
	}
	o.applied, err = w.Apply(ctx, o.applied, work.Spec.Workload.Manifests[i].Raw, action, view.Snapshot)
	if err != nil {
		return 0, false, err
	}
	if uid != "" && uid != o.applied.UID() {
		s.deleted.Delete(uid)
	}
	if !view.Synced {
		o.informer.Retry()
	}
	return wait, true, nil
}

func (a *applier) writer(m *access.Member, work *workv1alpha1.Work, o *object) *apply.Writer {
	w := &apply.Writer{
		Config: a.config, Retainer: a.retainer, Member: m, GVK: o.gvk, Key: o.key,
		Work:    types.NamespacedName{Namespace: work.Namespace, Name: work.Name},
		Current: func(ctx context.Context) error { return a.current(ctx, work) },
	}
	if w.Resource = m.Dynamic().Resource(o.gvr); o.key.Namespace != "" {
		w.Resource = m.Dynamic().Resource(o.gvr).Namespace(o.key.Namespace)
	}
	return w
}

// current returns an error if the control plane has another Work than the cache.
func (a *applier) current(ctx context.Context, work *workv1alpha1.Work) error {
	stored := &workv1alpha1.Work{}
	if err := a.live.Get(ctx, client.ObjectKeyFromObject(work), stored); err != nil {
		return fmt.Errorf("reading work %s/%s after a conflict: %w", work.Namespace, work.Name, err)
	}
	if stored.UID != work.UID || !sameManifests(stored.Spec.Workload.Manifests, work.Spec.Workload.Manifests) {
		return fmt.Errorf("work %s/%s has changed since it was read, trying again with the current one", work.Namespace, work.Name)
	}
	return nil
}

// clear deletes or releases the objects of a Work. It returns what those wait for that are being deleted.
func (a *applier) clear(ctx context.Context, m *access.Member, work *workv1alpha1.Work, s *workState) (waits []string, err error) {
	if err := a.works.load(work, s); err != nil {
		ctrllog.FromContext(ctx).Info("Leaving the objects of a Work whose manifests are invalid", "Work", work.Name, "err", err)
		return nil, nil
	}
	errs := a.clearRemoved(ctx, m, work, s)
	for _, o := range s.objects {
		more, err := a.clearObject(ctx, m, work, o)
		errs = append(errs, err)
		if len(more) > 0 {
			waits = append(waits, fmt.Sprintf("%s %s waits for %s", o.gvk.Kind, strings.TrimPrefix(o.key.String(), "/"), strings.Join(more, ", ")))
		}
	}
	return waits, errors.Join(errs...)
}

// clearRemoved deletes or releases the objects of manifests that a Work had, and keeps those in mind that fail.
func (a *applier) clearRemoved(ctx context.Context, m *access.Member, work *workv1alpha1.Work, s *workState) (errs []error) {
	s.removed = slices.DeleteFunc(s.removed, func(o *object) bool {
		_, err := a.clearObject(ctx, m, work, o)
		if err != nil {
			errs = append(errs, err)
		}
		return err == nil
	})
	return errs
}

// clearObject deletes or releases an object of a Work. It returns what the object waits for if it is being deleted.
func (a *applier) clearObject(ctx context.Context, m *access.Member, work *workv1alpha1.Work, o *object) ([]string, error) {
	mapping, err := m.Mapping(o.gvk)
	if meta.IsNoMatchError(err) {
		return nil, nil // it was deleted with its type
	}
	if err != nil {
		return nil, fmt.Errorf("finding the resource of %s: %w", o.gvk, err)
	}
	o.gvr = mapping.Resource
	w := a.writer(m, work, o)
	kept := ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false)
	if namespace := corev1.SchemeGroupVersion.WithKind("Namespace"); !kept && o.gvk == namespace {
		occupant, err := a.occupant(ctx, m, work, o.key.Name)
		if err != nil {
			return nil, err
		}
		if kept = occupant != ""; kept {
			a.kept(o.key.Name, occupant)
		}
	}
	if kept {
		return nil, w.Release(ctx)
	}
	var known *member.Snapshot
	if o.informer != nil {
		known = o.informer.Get(o.key).Snapshot
	}
	return w.Delete(ctx, known)
}
