//go:build integration

package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/testenv"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// members simulates the execution of Works in all members.
type members struct {
	client client.Client

	mu     sync.Mutex
	online map[string]bool
	// sick are the applications that are not healthy, by cluster and name.
	sick map[[2]string]bool
	// states are the values of the label "wanted" that applications got, by cluster and name.
	states map[[2]string]string
}

func startMembers(t *testing.T, c client.Client) *members {
	t.Helper()
	m := &members{client: c, online: map[string]bool{}, sick: map[[2]string]bool{}, states: map[[2]string]string{}}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			if err := m.sync(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				t.Errorf("members: %v", err)
			}
		}, 20*time.Millisecond)
	}()
	t.Cleanup(func() { stop(); <-done })
	return m
}

func (m *members) set(name string, online bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.online[name] = online
}

func (m *members) isOnline(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.online[name]
}

// flipHealth changes the health of an application in a cluster, and returns whether it is healthy.
func (m *members) flipHealth(cluster, app string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := [2]string{cluster, app}
	m.sick[key] = !m.sick[key]
	return !m.sick[key]
}

func (m *members) isSick(cluster, app string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sick[[2]string{cluster, app}]
}

// sync applies the Works of the members that are online, and finishes those that are being deleted.
func (m *members) sync(ctx context.Context) error {
	list := &workv1alpha1.WorkList{}
	if err := m.client.List(ctx, list); err != nil {
		return err
	}
	for i := range list.Items {
		work := &list.Items[i]
		cluster, err := names.ClusterOfExecutionNamespace(work.Namespace)
		if err != nil || !m.isOnline(cluster) {
			continue
		}
		if err := m.syncOne(ctx, cluster, work); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

func (m *members) syncOne(ctx context.Context, cluster string, work *workv1alpha1.Work) error {
	if work.DeletionTimestamp != nil {
		return m.client.Patch(ctx, work, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	}
	d := &appsv1.Deployment{}
	if err := json.Unmarshal(work.Spec.Workload.Manifests[0].Raw, d); err != nil {
		return err
	}
	m.keepState(cluster, d)
	before := work.DeepCopy()
	ready, health := *d.Spec.Replicas, workv1alpha1.ResourceHealthy
	if m.isSick(cluster, d.Name) {
		ready, health = 0, workv1alpha1.ResourceUnhealthy
	}
	meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, Reason: "AppliedSuccessful"})
	work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{
		Identifier: workv1alpha1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespace: d.Namespace, Name: d.Name},
		Status:     &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"readyReplicas":%d,"replicas":%d}`, ready, *d.Spec.Replicas)}, Health: health,
	}}
	if same(before, work) {
		return nil
	}
	return m.client.Status().Update(ctx, work)
}

// keepState records the state that an application got from another cluster. It loses the label when its task ends.
func (m *members) keepState(cluster string, d *appsv1.Deployment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if value, ok := d.Labels["wanted"]; ok {
		m.states[[2]string{cluster, d.Name}] = value
	}
}

func (m *members) state(cluster, app string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.states[[2]string{cluster, app}]
}

// same reports whether the status of a Work is the same, however its JSON is written.
func same(a, b *workv1alpha1.Work) bool {
	text := func(w *workv1alpha1.Work) string {
		var out any
		data, _ := json.Marshal(w.Status)
		_ = json.Unmarshal(data, &out)
		sorted, _ := json.Marshal(out)
		return string(sorted)
	}
	return text(a) == text(b)
}

// watched is what all versions of the bindings and Works show that the API server reports.
type watched struct {
	mu sync.Mutex
	// wrong are versions that must not be.
	wrong []string
	// evictions counts how often a task was opened, by binding and cluster.
	evictions map[[2]string]int
	open      map[[2]string]bool
	// tasks are the clusters that a binding had tasks for since the last take, deleted the Works that were deleted since
	// then, by application and cluster.
	tasks, deleted map[[2]string]bool
	// cancelled are the applications that returned to a cluster since the last take.
	cancelled map[string]bool
	// deleting are the Works whose deletion is known: that of a member that is offline lasts.
	deleting map[types.UID]bool
	// versions are the last ones of the objects that exist.
	versions map[types.UID]string
	// targets are the last targets and tasks of each application.
	targets map[string][]string
}

func startWatching(t *testing.T, c client.WithWatch) *watched {
	t.Helper()
	w := &watched{
		evictions: map[[2]string]int{}, open: map[[2]string]bool{}, tasks: map[[2]string]bool{}, deleted: map[[2]string]bool{},
		deleting: map[types.UID]bool{}, versions: map[types.UID]string{}, targets: map[string][]string{},
		cancelled: map[string]bool{},
	}
	for _, list := range []client.ObjectList{&workv1alpha2.ResourceBindingList{}, &workv1alpha1.WorkList{}} {
		events, err := c.Watch(t.Context(), list)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(events.Stop)
		go func() {
			for e := range events.ResultChan() {
				w.observe(e)
			}
		}()
	}
	return w
}

func (w *watched) observe(e watch.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if obj, err := meta.Accessor(e.Object); err == nil {
		w.versions[obj.GetUID()] = obj.GetResourceVersion()
		if e.Type == watch.Deleted {
			delete(w.versions, obj.GetUID())
		}
	}
	switch obj := e.Object.(type) {
	case *workv1alpha2.ResourceBinding:
		w.binding(obj)
	case *workv1alpha1.Work:
		cluster, err := names.ClusterOfExecutionNamespace(obj.Namespace)
		d := &appsv1.Deployment{}
		gone := obj.DeletionTimestamp != nil || e.Type == watch.Deleted
		if err == nil && gone && !w.deleting[obj.UID] && json.Unmarshal(obj.Spec.Workload.Manifests[0].Raw, d) == nil {
			w.deleted[[2]string{d.Name, cluster}], w.deleting[obj.UID] = true, true
		}
	}
}

func (w *watched) binding(b *workv1alpha2.ResourceBinding) {
	w.remember(b)
	open := map[string]bool{}
	for _, task := range b.Spec.GracefulEvictionTasks {
		key := [2]string{b.Spec.Resource.Name, task.FromCluster}
		if !w.open[key] {
			w.evictions[key]++
		}
		w.open[key], w.tasks[key], open[task.FromCluster] = true, true, true
		if slices.ContainsFunc(b.Spec.Clusters, func(c workv1alpha2.TargetCluster) bool { return c.Name == task.FromCluster }) {
			w.wrong = append(w.wrong, fmt.Sprintf("version %s of %s: %s is a target and has a task", b.ResourceVersion, b.Name, task.FromCluster))
		}
	}
	for key := range w.open {
		if key[0] == b.Spec.Resource.Name && !open[key[1]] {
			delete(w.open, key)
			if slices.ContainsFunc(b.Spec.Clusters, func(c workv1alpha2.TargetCluster) bool { return c.Name == key[1] }) {
				w.cancelled[key[0]] = true
			}
		}
	}
}

// remember adds the targets and tasks of a binding to those that a failure prints.
func (w *watched) remember(b *workv1alpha2.ResourceBinding) {
	app, line := b.Spec.Resource.Name, ""
	for _, c := range b.Spec.Clusters {
		line += fmt.Sprintf(" %s:%d", c.Name, c.Replicas)
	}
	for _, task := range b.Spec.GracefulEvictionTasks {
		line += fmt.Sprintf(" task %s by %s", task.FromCluster, task.Producer)
	}
	if known := w.targets[app]; len(known) == 0 || known[len(known)-1] != line {
		w.targets[app] = append(known[max(0, len(known)-20):], line)
	}
}

// of returns the last targets and tasks of an application.
func (w *watched) of(app string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.targets[app])
}

// observeAll waits until all changes were observed that the API server has made.
func (p *plane) observeAll() {
	p.Helper()
	testenv.Eventually(p.T, limit, func(ctx context.Context) error {
		stored := map[types.UID]string{}
		for _, list := range []client.ObjectList{&workv1alpha2.ResourceBindingList{}, &workv1alpha1.WorkList{}} {
			if err := p.client.List(ctx, list); err != nil {
				return err
			}
			err := meta.EachListItem(list, func(obj runtime.Object) error {
				m, err := meta.Accessor(obj)
				if err == nil {
					stored[m.GetUID()] = m.GetResourceVersion()
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		p.watched.mu.Lock()
		defer p.watched.mu.Unlock()
		if !maps.Equal(stored, p.watched.versions) {
			return errors.New("the watches lag behind")
		}
		return nil
	})
}

// wantEvicted fails if an application was not evicted from m1 exactly once.
func (p *plane) wantEvicted(app string) {
	p.Helper()
	p.observeAll()
	if n := p.watched.evicted(app, "m1"); n != 1 {
		p.Errorf("%s was evicted %d times", app, n)
	}
}

// observed is what happened since the last take.
type observed struct {
	wrong          []string
	tasks, deleted map[[2]string]bool
	cancelled      map[string]bool
}

func (w *watched) take() observed {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := observed{wrong: w.wrong, tasks: w.tasks, deleted: w.deleted, cancelled: w.cancelled}
	w.wrong, w.tasks, w.deleted, w.cancelled = nil, map[[2]string]bool{}, map[[2]string]bool{}, map[string]bool{}
	for key := range w.open {
		w.tasks[key] = true
	}
	return out
}

func (w *watched) evicted(app, cluster string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.evictions[[2]string{app, cluster}]
}
