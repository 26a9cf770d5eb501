package agent

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	orphanreport "github.com/karmada-toolkit/karmada/pkg/member/orphan"
)

const (
	// orphanGrace is how long an object may be without a Work before it counts as one
	// that the control plane lost: both change at about the same time.
	orphanGrace = 10 * time.Second
	// orphanInterval is the time between searches while there is none, and
	// orphanAgain while there are some.
	orphanInterval, orphanAgain = 10 * time.Minute, 30 * time.Second
	// orphanPage is how many objects are listed at a time.
	orphanPage = 200

	reasonOrphaned  = "WorksMissing"
	reasonNoOrphans = "NoOrphans"
	reasonDeleted   = "OrphansDeleted"
)

// orphan is an object in the member that a Work made which the control plane does
// not have, and of whose deletion nothing is known.
type orphan struct {
	gvr  schema.GroupVersionResource
	kind string
	key  types.NamespacedName
	uid  types.UID
	work string
}

func (o orphan) String() string {
	if o.key.Namespace == "" {
		return o.kind + " " + o.key.Name
	}
	return o.kind + " " + o.key.String()
}

// weight puts in front what takes other objects along.
func (o orphan) weight() int {
	if o.kind == "Namespace" || o.kind == "CustomResourceDefinition" {
		return 0
	}
	return 1
}

// orphans finds the objects that lost their Work, as after a control plane was
// restored from a backup, tells users of them, and deletes them when a user
// confirms it: nothing in the member is deleted because something is missing.
type orphans struct {
	agent     *agent
	namespace string
	wake      chan struct{}
	mu        sync.Mutex
	found     []orphan
	// sure is set once a search since the start has told what there is: until then
	// what was told before the start stays.
	sure bool
	// since is when an object was first seen without its Work.
	since map[types.UID]time.Time
	// told is what users were told last.
	told string
}

func newOrphans(a *agent) *orphans {
	return &orphans{
		agent: a, namespace: names.ExecutionNamespace(a.options.ClusterName),
		wake: make(chan struct{}, 1), since: map[types.UID]time.Time{},
	}
}

// run searches at the start, when a Work is gone, when a user confirms, and from
// time to time.
func (o *orphans) run(ctx context.Context) error {
	if err := o.watch(ctx); err != nil {
		return ended(ctx, err)
	}
	for {
		wait, err := o.look(ctx)
		if err != nil && ctx.Err() == nil {
			o.agent.log.Info("Looking for objects without a work failed, trying again", "err", err.Error(), "after", wait.String())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-o.wake:
		case <-o.agent.clock.After(wait):
		}
	}
}

// watch has a search started by what may make orphans, or by the word of a user.
func (o *orphans) watch(ctx context.Context) error {
	works, err := o.agent.mgr.GetCache().GetInformer(ctx, &workv1alpha1.Work{})
	if err != nil {
		return fmt.Errorf("watching works: %w", err)
	}
	_, err = works.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		if work, ok := obj.(*workv1alpha1.Work); !ok || work.DeletionTimestamp.IsZero() {
			o.hurry()
		}
	}})
	if err != nil {
		return fmt.Errorf("watching works: %w", err)
	}
	clusters, err := o.agent.mgr.GetCache().GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return fmt.Errorf("watching the cluster: %w", err)
	}
	_, err = clusters.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(old, now any) {
		before, ok1 := old.(*clusterv1alpha1.Cluster)
		after, ok2 := now.(*clusterv1alpha1.Cluster)
		if ok1 && ok2 && before.Annotations[clusterv1alpha1.DeleteOrphansAnnotation] != after.Annotations[clusterv1alpha1.DeleteOrphansAnnotation] {
			o.hurry()
		}
	}})
	if err != nil {
		return fmt.Errorf("watching the cluster: %w", err)
	}
	return nil
}

func (o *orphans) hurry() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// look searches once, tells, deletes what a user confirmed, and returns when to
// look again.
func (o *orphans) look(ctx context.Context) (time.Duration, error) {
	cluster := &clusterv1alpha1.Cluster{}
	err := o.agent.mgr.GetClient().Get(ctx, client.ObjectKey{Name: o.agent.options.ClusterName}, cluster)
	if apierrors.IsNotFound(err) {
		return orphanAgain, nil // there is nobody to tell
	}
	if err != nil {
		return orphanAgain, fmt.Errorf("reading the cluster: %w", err)
	}
	if !cluster.DeletionTimestamp.IsZero() || !o.agent.serves(cluster) {
		return orphanAgain, nil
	}
	candidates, err := o.search(ctx)
	if err != nil {
		return orphanAgain, err
	}
	found, fresh := o.ripe(candidates)
	if len(found) > 0 && cluster.Annotations[clusterv1alpha1.DeleteOrphansAnnotation] == token(found) {
		err := o.remove(ctx, cluster, found)
		return orphanGrace, err
	}
	o.publish(cluster, found, fresh)
	switch {
	case fresh:
		return orphanGrace, nil
	case len(found) > 0:
		return orphanAgain, nil
	}
	return orphanInterval, nil
}

// ripe returns the orphans that have been some for a while, and whether there are
// others.
func (o *orphans) ripe(candidates []orphan) (found []orphan, fresh bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.agent.clock.Now()
	since := make(map[types.UID]time.Time, len(candidates))
	for _, c := range candidates {
		first, ok := o.since[c.uid]
		if !ok {
			first = now
		}
		since[c.uid] = first
		if now.Sub(first) < orphanGrace {
			fresh = true
			continue
		}
		found = append(found, c)
	}
	o.since = since
	return found, fresh
}

// search returns the objects in the member that name a Work which is not there.
func (o *orphans) search(ctx context.Context) ([]orphan, error) {
	works := &workv1alpha1.WorkList{}
	if err := o.agent.mgr.GetClient().List(ctx, works, client.InNamespace(o.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing works: %w", err)
	}
	known := make(map[string]bool, len(works.Items))
	for i := range works.Items {
		known[works.Items[i].Name] = true
	}
	lists, err := o.agent.member.Discovery().ServerPreferredResources()
	if len(lists) == 0 && err != nil {
		return nil, fmt.Errorf("asking the member what it serves: %w", err)
	}
	var out []orphan
	var errs []error
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			found, err := o.searchKind(ctx, gv.WithResource(r.Name), r.Kind, known)
			errs = append(errs, err)
			out = append(out, found...)
		}
	}
	slices.SortFunc(out, func(a, b orphan) int {
		return cmp.Or(cmp.Compare(a.weight(), b.weight()), cmp.Compare(a.String(), b.String()), cmp.Compare(a.gvr.String(), b.gvr.String()))
	})
	return out, errors.Join(errs...)
}

func (o *orphans) searchKind(ctx context.Context, gvr schema.GroupVersionResource, kind string, known map[string]bool) ([]orphan, error) {
	var out []orphan
	resource := o.agent.member.Metadata().Resource(gvr)
	options := metav1.ListOptions{LabelSelector: workv1alpha2.ManagedByKarmadaLabel + "=" + workv1alpha2.ManagedByKarmadaLabelValue, Limit: orphanPage}
	for {
		list, err := resource.List(ctx, options)
		switch {
		case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err), apierrors.IsForbidden(err), apierrors.IsServiceUnavailable(err):
			return out, nil // not everything that is announced can be listed
		case err != nil:
			return out, fmt.Errorf("listing %s of the member: %w", gvr.GroupResource(), err)
		}
		for i := range list.Items {
			m := &list.Items[i]
			work := m.Annotations[workv1alpha2.WorkNameAnnotation]
			if m.Annotations[workv1alpha2.WorkNamespaceAnnotation] != o.namespace || work == "" || known[work] || m.DeletionTimestamp != nil {
				continue
			}
			if len(m.OwnerReferences) > 0 {
				continue // it goes with its owner, from whose template it has the marks
			}
			out = append(out, orphan{gvr: gvr, kind: kind, key: types.NamespacedName{Namespace: m.Namespace, Name: m.Name}, uid: m.UID, work: work})
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return out, nil
		}
	}
}

// publish tells users when the orphans are others than before. fresh says that there
// may be more.
func (o *orphans) publish(cluster *clusterv1alpha1.Cluster, found []orphan, fresh bool) {
	o.mu.Lock()
	o.found = found
	o.sure = o.sure || len(found) > 0 || !fresh
	text := message(cluster.Name, found)
	news := text != o.told
	o.told = text
	o.mu.Unlock()
	if !news || len(found) == 0 {
		return
	}
	o.agent.log.Info("The cluster has objects whose works the control plane lost; they stay until a user confirms that they are to go",
		"count", len(found), "objects", some(found), "token", token(found))
	o.agent.recorder.Event(cluster, corev1.EventTypeWarning, clusterv1alpha1.ClusterConditionOrphanedObjects,
		fmt.Sprintf("%d objects in the cluster belong to works that the control plane does not have, and stay: %s. The condition of the cluster says how to delete them", len(found), some(found)))
}

// conditions are what the status of the cluster says about orphans: nothing until
// there were some.
func (o *orphans) conditions(cluster *clusterv1alpha1.Cluster) []metav1.Condition {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := metav1.Condition{Type: clusterv1alpha1.ClusterConditionOrphanedObjects, Status: metav1.ConditionFalse, Reason: reasonNoOrphans, Message: "every object has its work"}
	before := meta.FindStatusCondition(cluster.Status.Conditions, c.Type)
	switch {
	case len(o.found) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reasonOrphaned, o.told
	case before == nil:
		return nil
	case !o.sure:
		c = *before
	}
	return []metav1.Condition{c}
}

// message says what is there and what a user can do about it. The control plane
// takes no other form, see orphan.Parse.
func message(cluster string, found []orphan) string {
	if len(found) == 0 {
		return ""
	}
	r := orphanreport.Report{Count: len(found), Token: token(found)}
	for _, f := range found[:min(len(found), orphanreport.MaxNames)] {
		r.Names = append(r.Names, f.String())
	}
	return r.Message(cluster)
}

// some names the first orphans.
func some(found []orphan) string {
	var out []string
	for _, f := range found[:min(len(found), orphanreport.MaxNames)] {
		out = append(out, f.String())
	}
	if more := len(found) - orphanreport.MaxNames; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}

// token stands for exactly these orphans: a user who confirms what was shown does
// not confirm what came later.
func token(found []orphan) string {
	h := fnv.New32a()
	for _, f := range found {
		_, _ = h.Write([]byte(f.uid))
		_, _ = h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// remove deletes what a user confirmed.
func (o *orphans) remove(ctx context.Context, cluster *clusterv1alpha1.Cluster, found []orphan) error {
	o.agent.log.Info("Deleting the objects without a work, as a user confirmed", "count", len(found), "objects", some(found))
	var errs []error
	for _, f := range found {
		errs = append(errs, o.agent.deleteObject(ctx, f))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	o.agent.recorder.Event(cluster, corev1.EventTypeNormal, reasonDeleted, fmt.Sprintf("%d objects without a work were deleted from the cluster: %s", len(found), some(found)))
	return nil
}

// deleteObject deletes an object that is still the one that was found.
func (a *agent) deleteObject(ctx context.Context, f orphan) error {
	err := a.member.Metadata().Resource(f.gvr).Namespace(f.key.Namespace).Delete(ctx, f.key.Name, metav1.DeleteOptions{
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground), Preconditions: &metav1.Preconditions{UID: &f.uid},
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting %s: %w", f, err)
	}
	return nil
}
