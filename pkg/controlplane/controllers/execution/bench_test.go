package execution

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karmada-toolkit/karmada/internal/kube"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
)

const (
	configMapPath  = "/api/v1/namespaces/default/configmaps/a"
	deploymentPath = "/apis/apps/v1/namespaces/default/deployments/a"
	configMap      = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"a"},"data":{"k":"v"}}`
	deployment     = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"default","name":"a"},"spec":{"replicas":1}}`
)

// bench is one Work and its member. Nothing runs in the background but informers.
type bench struct {
	t        *testing.T
	plane    client.Client
	member   *accesstest.Server
	clock    *clocktesting.FakeClock
	recorder *record.FakeRecorder
	c        *Controller
	runner   *runner
	writes   atomic.Int64 // of the status of the Work
	opened   error
	wentBack atomic.Int64 // notices that the member was restored
	// patch and patchStatus, if set, replace the requests of the controller.
	patch, patchStatus func() error
}

// one opens the same member for every cluster.
type one struct {
	member *access.Member
	err    *error
}

func (o one) Member(context.Context, *clusterv1alpha1.Cluster) (*access.Member, error) {
	return o.member, *o.err
}

func newBench(t *testing.T, text string, change ...func(*workv1alpha1.Work)) *bench {
	t.Helper()
	b := &bench{t: t, member: accesstest.New(t), clock: clocktesting.NewFakeClock(time.Unix(10000, 0)), recorder: record.NewFakeRecorder(100)}
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m1"},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push},
		Status:     clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}},
	}
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-m1", Name: "w", UID: "work", Generation: 1,
		Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer},
	}}
	b.fill(work, text, "abort")
	for _, c := range change {
		c(work)
	}
	b.plane = fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(cluster, work).
		WithStatusSubresource(&workv1alpha1.Work{}).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			b.writes.Add(1)
			if b.patchStatus != nil {
				return b.patchStatus()
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if b.patch != nil {
				return b.patch()
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	m, err := access.NewMember("m1", b.member.Config(), mapper)
	if err != nil {
		t.Fatal(err)
	}
	c := New(b.plane, b.plane, b.recorder, b.recorder, Deps{
		Members: one{m, &b.opened}, Interpreter: interpreter.New(), Clock: b.clock, Metrics: prometheus.NewRegistry(),
		WentBack: func(string, string, string) { b.wentBack.Add(1) },
	})
	b.c, b.runner = c, c.runners.getOrAdd("m1", func() *runner { return newRunner(t.Context(), c, "m1") })
	b.runner.leaving.Do(func() {}) // only the test reconciles
	t.Cleanup(c.runners.stop)
	return b
}

func (b *bench) fill(work *workv1alpha1.Work, text, conflict string) {
	b.t.Helper()
	obj := decode(b.t, text)
	if err := manifest.Prepare(obj, manifest.Origin{UID: "template", Generation: 1, WorkNamespace: work.Namespace, WorkName: work.Name, ConflictResolution: conflict}); err != nil {
		b.t.Fatal(err)
	}
	raw, err := json.Marshal(obj)
	if err != nil {
		b.t.Fatal(err)
	}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{}}
	work.Spec.Workload.Manifests[0].Raw = raw
}

// sync reconciles the Work.
func (b *bench) sync() (time.Duration, error) {
	return b.runner.reconcile(b.t.Context(), "w")
}

func (b *bench) mustSync() time.Duration {
	b.t.Helper()
	wait, err := b.sync()
	if err != nil {
		b.t.Fatal(err)
	}
	return wait
}

func (b *bench) work() *workv1alpha1.Work {
	b.t.Helper()
	work := &workv1alpha1.Work{}
	if err := b.plane.Get(b.t.Context(), client.ObjectKey{Namespace: "karmada-es-m1", Name: "w"}, work); err != nil {
		b.t.Fatal(err)
	}
	return work
}

// edit changes the spec of the Work as users of the API do.
func (b *bench) edit(change func(*workv1alpha1.Work)) {
	b.t.Helper()
	work := b.work()
	change(work)
	work.Generation++
	if err := b.plane.Update(b.t.Context(), work); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) cluster(change func(*clusterv1alpha1.Cluster)) {
	b.t.Helper()
	cluster := &clusterv1alpha1.Cluster{}
	if err := b.plane.Get(b.t.Context(), client.ObjectKey{Name: "m1"}, cluster); err != nil {
		b.t.Fatal(err)
	}
	change(cluster)
	if err := b.plane.Update(b.t.Context(), cluster); err != nil {
		b.t.Fatal(err)
	}
}

// state returns the state of the Work.
func (b *bench) state() *workState {
	b.runner.works.mu.Lock()
	defer b.runner.works.mu.Unlock()
	return b.runner.works.byName["w"]
}

// observed waits until the informer has observed the object as the member has it.
func (b *bench) observed(path string) {
	b.t.Helper()
	accesstest.Eventually(b.t, func() error {
		want := b.member.Get(path)
		for _, o := range b.state().objects {
			view := o.informer.Get(o.key)
			switch {
			case want == nil && view.Snapshot == nil && view.Synced:
				return nil
			case want != nil && view.Snapshot != nil && view.Snapshot.Version == want.GetResourceVersion():
				return nil
			}
		}
		return errors.New("not observed")
	})
}

func (b *bench) events() []string {
	var out []string
	for {
		select {
		case e := <-b.recorder.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

func applied(work *workv1alpha1.Work) string {
	c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied)
	if c == nil {
		return "absent"
	}
	return string(c.Status) + " " + c.Message
}

const appliedOK = "True Manifest has been successfully applied"
