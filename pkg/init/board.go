package installer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

const (
	// lookEvery is how often the workloads are looked at.
	lookEvery = 250 * time.Millisecond
	// sayEvery is how long a wait stays silent.
	sayEvery = 2 * time.Second
	// explainAfter is when a wait begins to tell the pods' own reasons.
	explainAfter = 10 * time.Second
	// hopelessAfter is how long a pod may be in a state that does not pass by itself.
	hopelessAfter = 8 * time.Second
)

// board knows the state of all workloads of a control plane. It looks at them once
// for all who wait.
type board struct {
	host      client.Client
	api       kubernetes.Interface
	namespace string
	now       func() time.Time

	mu    sync.Mutex
	view  *view
	fresh chan struct{}
	err   error
}

// view is the workloads and their pods at one moment.
type view struct {
	deployments map[string]*appsv1.Deployment
	sets        map[string]*appsv1.StatefulSet
	pods        map[string][]corev1.Pod
}

func newBoard(host client.Client, api kubernetes.Interface, namespace string, now func() time.Time) *board {
	return &board{host: host, api: api, namespace: namespace, now: now, fresh: make(chan struct{})}
}

// watch keeps the view fresh while somebody may wait.
func (b *board) watch(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		view, err := b.look(ctx)
		b.mu.Lock()
		if b.err = err; err == nil {
			b.view = view
		}
		close(b.fresh)
		b.fresh = make(chan struct{})
		b.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (b *board) look(ctx context.Context) (*view, error) {
	v := &view{deployments: map[string]*appsv1.Deployment{}, sets: map[string]*appsv1.StatefulSet{}, pods: map[string][]corev1.Pod{}}
	list := metav1.ListOptions{}
	deployments, err := b.api.AppsV1().Deployments(b.namespace).List(ctx, list)
	if err != nil {
		return nil, err
	}
	for i := range deployments.Items {
		v.deployments[deployments.Items[i].Name] = &deployments.Items[i]
	}
	sets, err := b.api.AppsV1().StatefulSets(b.namespace).List(ctx, list)
	if err != nil {
		return nil, err
	}
	for i := range sets.Items {
		v.sets[sets.Items[i].Name] = &sets.Items[i]
	}
	pods, err := b.api.CoreV1().Pods(b.namespace).List(ctx, list)
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		app := pods.Items[i].Labels["app"]
		v.pods[app] = append(v.pods[app], pods.Items[i])
	}
	return v, nil
}

// current returns the view and a channel that closes when there is a newer one.
func (b *board) current() (*view, <-chan struct{}, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.view, b.fresh, b.err
}

// next waits for a view that was begun after now.
func (b *board) next(ctx context.Context) error {
	for range 2 { // the look that is under way may have begun before
		_, fresh, _ := b.current()
		select {
		case <-fresh:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// wait returns when a workload is rolled out. It says every two seconds what it
// waits for. A pod that cannot start, and will not by waiting, is an error.
func (b *board) wait(ctx context.Context, workload string, say func(string)) error {
	if err := b.next(ctx); err != nil {
		return err
	}
	w := &waiting{board: b, workload: workload, say: say, begun: b.now(), said: b.now()}
	for {
		v, fresh, err := b.current()
		if err == nil && v != nil {
			if done, err := w.judge(ctx, v); done || err != nil {
				return err
			}
		}
		select {
		case <-fresh:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// waiting is one wait for a workload.
type waiting struct {
	*board
	workload string
	say      func(string)
	// begun is when the wait began, said when it was last told of, stuck since when
	// a pod is in a state that does not pass.
	begun, said, stuck time.Time
}

// judge says whether a workload is rolled out, and fails when it will not be.
func (w *waiting) judge(ctx context.Context, v *view) (done bool, err error) {
	left := v.missing(w.workload)
	if left == "" {
		return true, nil
	}
	now := w.now()
	reason, hopeless := v.reason(w.workload)
	switch {
	case !hopeless:
		w.stuck = time.Time{}
	case w.stuck.IsZero():
		w.stuck = now
	case now.Sub(w.stuck) > hopelessAfter:
		return false, fmt.Errorf("%s: %s", left, w.explain(ctx, reason, true))
	}
	if now.Sub(w.said) < sayEvery {
		return false, nil
	}
	if waited := now.Sub(w.begun); waited >= explainAfter {
		left += ": " + w.explain(ctx, reason, waited >= 2*explainAfter)
	}
	if (reason.pending || reason.crashed) && permanent(left) {
		return false, errors.New(left)
	}
	w.said = now
	w.say(left)
	return false, nil
}

// report names everything that is not ready with its reason, one a line.
func (b *board) report() string {
	v, _, err := b.current()
	if err != nil {
		return "\n  the host cluster does not answer: " + err.Error()
	}
	if v == nil {
		return ""
	}
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	var out strings.Builder
	for _, name := range []string{
		components.Etcd, components.APIServer, components.AggregatedAPIServer, components.KubeControllerManager,
		components.Webhook, components.Scheduler, components.ControllerManager,
	} {
		if v.deployments[name] == nil && v.sets[name] == nil {
			continue
		}
		left := v.missing(name)
		if left == "" {
			continue
		}
		reason, _ := v.reason(name)
		fmt.Fprintf(&out, "\n  %s: %s: %s", name, left, b.explain(ctx, reason, true))
	}
	return out.String()
}

// missing says how far the first of some workloads is that is not rolled out, or
// nothing when all are, as far as is known.
func (b *board) missing(workloads []string) string {
	v, _, err := b.current()
	if err != nil || v == nil {
		return ""
	}
	for _, name := range workloads {
		if left := v.missing(name); left != "" {
			return name + ": " + left
		}
	}
	return ""
}

// missing says how far a workload is, or nothing when it is rolled out.
func (v *view) missing(name string) string {
	if d := v.deployments[name]; d != nil {
		want := *d.Spec.Replicas
		switch {
		case d.Status.ObservedGeneration < d.Generation:
			return "its pods to be made"
		case d.Status.UpdatedReplicas < want || d.Status.AvailableReplicas < want:
			return fmt.Sprintf("%d of %d pods ready", min(d.Status.AvailableReplicas, d.Status.UpdatedReplicas), want)
		case d.Status.Replicas > d.Status.UpdatedReplicas:
			return fmt.Sprintf("%d old pods to end", d.Status.Replicas-d.Status.UpdatedReplicas)
		}
		return ""
	}
	s := v.sets[name]
	if s == nil {
		return "it to be there"
	}
	want := *s.Spec.Replicas
	switch {
	case s.Status.ObservedGeneration < s.Generation:
		return "its pods to be made"
	case s.Status.UpdatedReplicas < want || s.Status.AvailableReplicas < want:
		return fmt.Sprintf("%d of %d pods ready", min(s.Status.AvailableReplicas, s.Status.UpdatedReplicas), want)
	}
	return ""
}
