package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/patch"
	"github.com/karmada-toolkit/karmada/internal/wait"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

const (
	// forceLimit is how long a forced removal may take.
	forceLimit = 20 * time.Second
	// finalizations is the number of Works whose finalizer it removes at a time.
	finalizations = 16
)

// UnjoinRequest specifies the cluster to remove.
type UnjoinRequest struct {
	// Name of the cluster.
	Name string
	// Namespace of the credentials in the member.
	Namespace string
	// Wait is how long to wait until the cluster is deleted.
	Wait time.Duration
	// Force removes the cluster from the control plane even if what it runs cannot
	// be cleaned up.
	Force bool
	// Abandon forgets a cluster at once, in either mode: nothing waits for it, and a
	// tombstone has its agent clean up if it ever comes back.
	Abandon bool
	// At is when it is abandoned, for the record.
	At time.Time
	// DryRun checks and writes nothing.
	DryRun bool
}

// Unjoin makes a member leave. With access to the member it removes what joining
// made there. It returns what it had to leave behind, a line each.
func Unjoin(ctx context.Context, d Deps, r UnjoinRequest) ([]string, error) {
	cluster := &clusterv1alpha1.Cluster{}
	err := d.ControlPlane.Get(ctx, client.ObjectKey{Name: r.Name}, cluster)
	if apierrors.IsNotFound(err) {
		return unjoinRest(ctx, d, r, err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading cluster %q: %w", r.Name, err)
	}
	if cluster.Spec.SyncMode == clusterv1alpha1.Pull && !r.Abandon {
		return nil, fmt.Errorf("cluster %s is a Pull mode member cluster, please use command `unregister` if you want to continue unregistering the cluster; one that is lost for good is given up with %q", r.Name, d.Program+" unjoin "+r.Name+" --abandon")
	}
	if err := notAnother(ctx, d, cluster); err != nil {
		return nil, err
	}
	if r.DryRun {
		return nil, nil
	}
	left, err := release(ctx, d, r, cluster)
	if err != nil {
		return left, err
	}
	more, err := cleanMember(ctx, d, r)
	return append(left, more...), err
}

// release deletes a cluster from the control plane. It returns the objects that it
// knows to be left in the member.
func release(ctx context.Context, d Deps, r UnjoinRequest, cluster *clusterv1alpha1.Cluster) ([]string, error) {
	left, err := inventory(ctx, d.ControlPlane, r.Name)
	if err != nil {
		return nil, err
	}
	if r.Abandon {
		if err := recordAbandoned(ctx, d, r, cluster, left); err != nil {
			return nil, err
		}
	}
	if err := client.IgnoreNotFound(d.ControlPlane.Delete(ctx, cluster)); err != nil {
		return nil, fmt.Errorf("deleting cluster %q: %w", r.Name, err)
	}
	if r.Abandon {
		more, err := force(ctx, d, r.Name, forceLimit)
		return append(left.lines(), more...), err
	}
	limit, reserve, gone := r.Wait, time.Duration(0), awaitGone
	if r.Force {
		reserve, gone = min(r.Wait/2, forceLimit), awaitGoneOnce
		limit -= reserve
	}
	err = gone(ctx, d, r.Name, limit)
	switch {
	case err == nil && cluster.Ready():
		return nil, nil
	case err == nil:
		return left.lines(), nil // no client cleaned up the member
	case !errors.Is(err, wait.ErrTimeout):
		return nil, err
	}
	left, answers := remainder(ctx, d, cluster, left)
	if !r.Force {
		advice := "it goes on when the cluster answers again"
		if answers {
			advice = "it goes on in the background"
		}
		return left.lines(), fmt.Errorf("cluster %q is still being removed after %s: %s; %s, or give it up with %q: %w",
			r.Name, r.Wait, strings.Join(remaining(ctx, d, r.Name), ", "), advice, d.Program+" unjoin "+r.Name+" --force", context.DeadlineExceeded)
	}
	more, err := force(ctx, d, r.Name, reserve)
	return append(left.lines(), more...), err
}

// remainder returns what of the objects in the member is left when a removal takes
// too long, and whether the cluster answers. A cluster that answers has removed
// the objects of the Works that are gone.
func remainder(ctx context.Context, d Deps, before *clusterv1alpha1.Cluster, all leftovers) (left leftovers, answers bool) {
	now := &clusterv1alpha1.Cluster{}
	if err := d.ControlPlane.Get(ctx, client.ObjectKeyFromObject(before), now); err != nil || !before.Ready() || !now.Ready() {
		return all, false
	}
	left, err := inventory(ctx, d.ControlPlane, before.Name)
	if err != nil {
		return all, true
	}
	return left, true
}

// unjoinRest handles a cluster that the control plane does not have: an earlier
// run may have been interrupted before it came to the member.
func unjoinRest(ctx context.Context, d Deps, r UnjoinRequest, notFound error) ([]string, error) {
	if APIMissing(notFound) {
		return nil, notFederation(notFound)
	}
	missing := fmt.Errorf("no cluster object %s found in karmada control Plane; %q lists those that are", r.Name, d.Program+" get clusters")
	if d.Member == nil {
		return nil, missing
	}
	account := &corev1.ServiceAccount{}
	if err := d.Member.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: AccountName(r.Name)}, account); err != nil {
		return nil, missing
	}
	if r.DryRun {
		return nil, nil
	}
	return cleanMember(ctx, d, r)
}

// awaitGone waits until a cluster is gone, and begins anew after limit if fewer Works are left than before it.
func awaitGone(ctx context.Context, d Deps, name string, limit time.Duration) error {
	left := countWorks(ctx, d, name)
	for {
		err := awaitGoneOnce(ctx, d, name, limit)
		if !errors.Is(err, wait.ErrTimeout) {
			return err
		}
		now := countWorks(ctx, d, name)
		if now < 0 || now >= left {
			return err
		}
		left = now
	}
}

// countWorks returns the number of Works of a cluster, or -1 if it is not known.
func countWorks(ctx context.Context, d Deps, name string) int {
	ctx, cancel := context.WithTimeout(ctx, forceLimit)
	defer cancel()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(workv1alpha1.GroupVersion.WithKind("WorkList"))
	if err := d.ControlPlane.List(ctx, list, client.InNamespace(names.ExecutionNamespace(name)), client.Limit(1)); err != nil {
		return -1
	}
	return len(list.Items) + int(ptr.Deref(list.RemainingItemCount, 0))
}

func awaitGoneOnce(ctx context.Context, d Deps, name string, limit time.Duration) error {
	what := func() string {
		stateCtx, cancel := context.WithTimeout(ctx, wait.PublishInterval)
		defer cancel()
		return fmt.Sprintf("cluster %q to be removed: %s", name, strings.Join(remaining(stateCtx, d, name), ", "))
	}
	return await(ctx, limit, d.Report, what, func(ctx context.Context) (bool, error) {
		err := d.ControlPlane.Get(ctx, client.ObjectKey{Name: name}, &clusterv1alpha1.Cluster{})
		if absent(err) || apierrors.IsForbidden(err) {
			return true, nil // with the cluster, the rights of its agent go
		}
		if err != nil && !Unserved(err) {
			return false, fmt.Errorf("reading cluster %q: %w", name, err)
		}
		return false, nil
	})
}

// remaining returns what blocks the deletion of a cluster.
func remaining(ctx context.Context, d Deps, name string) []string {
	space := names.ExecutionNamespace(name)
	cluster := &clusterv1alpha1.Cluster{}
	known := d.ControlPlane.Get(ctx, client.ObjectKey{Name: name}, cluster) == nil
	works := &metav1.PartialObjectMetadataList{}
	works.SetGroupVersionKind(workv1alpha1.GroupVersion.WithKind("WorkList"))
	if err := d.ControlPlane.List(ctx, works, client.InNamespace(space)); err == nil && len(works.Items) > 0 {
		return []string{fmt.Sprintf("%d works in namespace %s are not cleaned up%s", len(works.Items), space, keeping(works.Items, cluster.DeletionTimestamp))}
	}
	ns := &corev1.Namespace{}
	if err := d.ControlPlane.Get(ctx, client.ObjectKey{Name: space}, ns); err == nil {
		out := []string{fmt.Sprintf("namespace %s is not gone", space)}
		for _, c := range ns.Status.Conditions {
			if c.Status == corev1.ConditionTrue {
				out = append(out, c.Message)
			}
		}
		return out
	}
	if held := targeting(ctx, d, name); held != "" {
		return []string{held}
	}
	if known && len(cluster.Finalizers) > 0 {
		return []string{"finalizers " + strings.Join(cluster.Finalizers, ", ")}
	}
	return []string{"the control plane has not let go of it"}
}

// CheckLeaving returns an error if a cluster is being deleted, which says what it waits for.
// A cluster that does not exist is none.
func CheckLeaving(ctx context.Context, d Deps, name string) error {
	cluster := &clusterv1alpha1.Cluster{}
	err := d.ControlPlane.Get(ctx, client.ObjectKey{Name: name}, cluster)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if cluster.DeletionTimestamp == nil {
		return nil
	}
	return fmt.Errorf("cluster %q is still being removed: %s; run this again when %q does not list it", name, strings.Join(remaining(ctx, d, name), ", "), d.Program+" get clusters")
}

// keeping describes what keeps the Works of a cluster that leaves since a time: their finalizers, or, for those that were
// made after that, who wrote them.
func keeping(works []metav1.PartialObjectMetadata, since *metav1.Time) string {
	by := map[string]int{}
	for i := range works {
		switch w := &works[i]; {
		case w.DeletionTimestamp == nil && since.Before(&w.CreationTimestamp) && writer(w) != "":
			by["written again by "+writer(w)]++
		case slices.Contains(w.Finalizers, workv1alpha2.ExecutionControllerFinalizer):
			by["held by the execution controller, which removes their objects from the member"]++
		}
	}
	var out []string
	for _, reason := range slices.Sorted(maps.Keys(by)) {
		out = append(out, fmt.Sprintf("%d %s", by[reason], reason))
	}
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, ", ") + ")"
}

// writer returns the name of the program that wrote the spec of a Work last, or the
// controller that it belongs to where that is known.
func writer(w *metav1.PartialObjectMetadata) string {
	switch {
	case w.Labels["multiclusterservice.karmada.io/name"] != "":
		return "the controller of MultiClusterServices"
	case w.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] != "" || w.Labels[workv1alpha2.ClusterResourceBindingPermanentIDLabel] != "":
		return "the binding controller"
	}
	var last *metav1.ManagedFieldsEntry
	for i := range w.ManagedFields {
		if f := &w.ManagedFields[i]; f.Subresource == "" && (last == nil || last.Time == nil || f.Time != nil && f.Time.After(last.Time.Time)) {
			last = f
		}
	}
	if last == nil {
		return ""
	}
	return last.Manager
}

// targeting describes the bindings that keep a cluster because they name it as a
// target. It is empty when none does.
func targeting(ctx context.Context, d Deps, cluster string) string {
	const most = 3
	count, schedulers := 0, map[string]bool{}
	var first []string
	for _, list := range []interface {
		workv1alpha2.BindingList
		client.ObjectList
	}{&workv1alpha2.ResourceBindingList{}, &workv1alpha2.ClusterResourceBindingList{}} {
		if err := d.ControlPlane.List(ctx, list); err != nil {
			continue
		}
		for _, b := range list.Bindings() {
			if !b.GetSpec().TargetContains(cluster) {
				continue
			}
			if count++; count <= most {
				first = append(first, key(b))
			}
			schedulers[cmp.Or(b.GetSpec().SchedulerName, policyv1alpha1.DefaultSchedulerName)] = true
		}
	}
	if count == 0 {
		return ""
	}
	more := ""
	if count > most {
		more = fmt.Sprintf(" and %d more", count-most)
	}
	return fmt.Sprintf("bindings name it as a target: %s%s; check that scheduler %s runs",
		strings.Join(first, ", "), more, strings.Join(slices.Sorted(maps.Keys(schedulers)), ", "))
}

// force removes the finalizers that keep the cluster in the control plane. The objects that
// its Works stand for stay in the member.
func force(ctx context.Context, d Deps, name string, limit time.Duration) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	space := names.ExecutionNamespace(name)
	errs := dropWorks(ctx, d, space)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}}
	if err := d.ControlPlane.Delete(ctx, ns); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		errs = append(errs, fmt.Errorf("deleting namespace %s: %w", space, err))
	}
	if err := finalizeNamespace(ctx, d, space, limit/3); err != nil {
		errs = append(errs, err)
	}
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := dropFinalizer(ctx, d.ControlPlane, cluster, clusterv1alpha1.ClusterControllerFinalizer); err != nil {
		errs = append(errs, err)
	}
	var left []string
	for _, err := range errs {
		left = append(left, err.Error())
	}
	if err := awaitGone(ctx, d, name, limit/3); err != nil {
		return left, fmt.Errorf("cluster %q could not be forced out: %w", name, err)
	}
	return left, nil
}

// dropWorks deletes the Works of a cluster without cleaning up their objects in the
// member.
func dropWorks(ctx context.Context, d Deps, space string) []error {
	// Deleted first: no controller adds a finalizer to an object that is being deleted.
	err := d.ControlPlane.DeleteAllOf(ctx, &workv1alpha1.Work{}, client.InNamespace(space))
	if client.IgnoreNotFound(err) != nil {
		return []error{fmt.Errorf("deleting the works in namespace %s: %w", space, err)}
	}
	works := &workv1alpha1.WorkList{}
	if err := d.ControlPlane.List(ctx, works, client.InNamespace(space)); err != nil {
		return []error{fmt.Errorf("listing the works in namespace %s: %w", space, err)}
	}
	errs := make([]error, len(works.Items))
	workqueue.ParallelizeUntil(ctx, finalizations, len(works.Items), func(i int) {
		errs[i] = dropFinalizer(ctx, d.ControlPlane, &works.Items[i], workv1alpha2.ExecutionControllerFinalizer)
	})
	return slices.DeleteFunc(append(errs, ctx.Err()), func(err error) bool { return err == nil })
}

// dropFinalizer removes one finalizer from an object, however often others write
// it meanwhile.
func dropFinalizer(ctx context.Context, c client.Client, obj client.Object, finalizer string) error {
	what := func() string { return fmt.Sprintf("%T %s to be written", obj, key(obj)) }
	return await(ctx, forceLimit, nil, what, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		}
		err := patch.RemoveFinalizer(ctx, c, obj, finalizer)
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// finalizeNamespace waits for a namespace to go and, where nothing removes it,
// removes it through its finalize subresource.
func finalizeNamespace(ctx context.Context, d Deps, name string, limit time.Duration) error {
	ns := &corev1.Namespace{}
	what := func() string { return fmt.Sprintf("namespace %s to be removed", name) }
	err := await(ctx, min(limit, 2*wait.PublishInterval), d.Report, what, func(ctx context.Context) (bool, error) {
		err := d.ControlPlane.Get(ctx, client.ObjectKey{Name: name}, ns)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err == nil || !errors.Is(err, wait.ErrTimeout) {
		return err
	}
	ns.Spec.Finalizers = nil
	if err := d.ControlPlane.SubResource("finalize").Update(ctx, ns); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("finalizing namespace %s: %w", name, err)
	}
	return nil
}

// cleanMember removes from the member what joining made there. With Force it goes
// on past errors and returns them as what is left.
func cleanMember(ctx context.Context, d Deps, r UnjoinRequest) ([]string, error) {
	if d.Member == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, forceLimit)
	defer cancel()
	var left []string
	err := forEach(memberObjects(r), func(obj client.Object) error {
		err := client.IgnoreNotFound(d.Member.Delete(ctx, obj))
		if err == nil {
			return nil
		}
		err = fmt.Errorf("removing %T %s from cluster %q: %w", obj, key(obj), r.Name, err)
		if r.Force && ctx.Err() == nil {
			left = append(left, err.Error())
			return nil
		}
		return err
	})
	if err == nil {
		err = cleanNamespace(ctx, d, r)
	}
	if err != nil && r.Force {
		return append(left, err.Error()), nil
	}
	return left, err
}

func memberObjects(r UnjoinRequest) []client.Object {
	cluster := metav1.ObjectMeta{Name: RoleName(r.Name)}
	account := metav1.ObjectMeta{Namespace: r.Namespace, Name: AccountName(r.Name)}
	return []client.Object{
		&rbacv1.ClusterRoleBinding{ObjectMeta: cluster},
		&rbacv1.ClusterRole{ObjectMeta: cluster},
		&corev1.ServiceAccount{ObjectMeta: account},
		&corev1.Secret{ObjectMeta: account},
	}
}

// cleanNamespace removes what control planes share in a member, if this was the
// last one, and the namespace if joining made it.
func cleanNamespace(ctx context.Context, d Deps, r UnjoinRequest) error {
	accounts := &corev1.ServiceAccountList{}
	if err := d.Member.List(ctx, accounts, client.InNamespace(r.Namespace), client.MatchingLabels(systemLabels())); err != nil {
		return fmt.Errorf("listing service accounts of cluster %q: %w", r.Name, err)
	}
	for i := range accounts.Items {
		if name := accounts.Items[i].Name; name != ImpersonatorName && name != AccountName(r.Name) {
			return nil
		}
	}
	meta := metav1.ObjectMeta{Namespace: r.Namespace, Name: ImpersonatorName}
	shared := []client.Object{&corev1.ServiceAccount{ObjectMeta: meta}, &corev1.Secret{ObjectMeta: meta}}
	ns := &corev1.Namespace{}
	err := d.Member.Get(ctx, client.ObjectKey{Name: r.Namespace}, ns)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading namespace %s of cluster %q: %w", r.Namespace, r.Name, err)
	case ns.Labels[workv1alpha2.SystemLabel] == workv1alpha2.SystemLabelValue:
		shared = append(shared, ns)
	}
	return forEach(shared, func(obj client.Object) error {
		if err := d.Member.Delete(ctx, obj); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("removing %T %s from cluster %q: %w", obj, key(obj), r.Name, err)
		}
		return nil
	})
}
