package execution

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
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
	*memory.Env
	member  *accesstest.Server
	c       *Controller
	runner  *runner
	members *access.Single
	written int // see writes
	opened  error
}

// restores returns how often the member was found to be restored.
func (b *bench) restores() uint64 {
	b.Helper()
	m, err := b.members.Member(b.Context(), nil)
	b.Must(err)
	return m.Incarnation().Number - 1
}

// one opens the same member for every cluster.
type one struct {
	*access.Single
	err *error
}

func (o one) Member(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*access.Member, error) {
	if *o.err != nil {
		return nil, *o.err
	}
	return o.Single.Member(ctx, cluster)
}

func newBench(t *testing.T, text string, change ...func(*workv1alpha1.Work)) *bench {
	t.Helper()
	cluster := build.Cluster("m1", build.Ready(metav1.ConditionTrue))
	cluster.Spec.SyncMode = clusterv1alpha1.Push
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-m1", Name: "w", UID: "work", Generation: 1,
		Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer},
	}}
	fill(t, work, text, "abort")
	for _, c := range change {
		c(work)
	}
	b := &bench{Env: memory.New(t, cluster, work), member: accesstest.New(t)}
	b.Clock.SetTime(time.Unix(10000, 0))
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	m, err := access.NewSingle("m1", b.member.Config(), mapper)
	if err != nil {
		t.Fatal(err)
	}
	b.members = m
	c := New(b.Client, b.Client, b.Recorder, b.Recorder, Deps{
		Members: one{m, &b.opened}, Interpreter: interpreter.New(), Clock: b.Clock, Metrics: prometheus.NewRegistry(),
	})
	b.c, b.runner = c, newRunner(t.Context(), c, "m1")
	b.runner.leaving = true // only the test reconciles
	t.Cleanup(b.runner.stop)
	return b
}

func fill(t *testing.T, work *workv1alpha1.Work, text, conflict string) {
	t.Helper()
	obj := decode(t, text)
	if err := manifest.Prepare(obj, manifest.Origin{UID: "template", Generation: 1, WorkNamespace: work.Namespace, WorkName: work.Name, ConflictResolution: conflict}); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{}}
	work.Spec.Workload.Manifests[0].Raw = raw
}

// sync reconciles the Work.
func (b *bench) sync() (time.Duration, error) {
	return b.runner.reconcile(b.Context(), "w")
}

func (b *bench) mustSync() time.Duration {
	b.Helper()
	wait, err := b.sync()
	b.Must(err)
	return wait
}

// writes returns the number of requests that wrote the status of the Work.
func (b *bench) writes() int {
	for _, write := range b.Writes() {
		if strings.HasPrefix(write, "status ") {
			b.written++
		}
	}
	return b.written
}

func (b *bench) work() *workv1alpha1.Work {
	b.Helper()
	return memory.Get[*workv1alpha1.Work](b.Env, memory.Key("karmada-es-m1", "w"))
}

// edit changes the spec of the Work as users of the API do.
func (b *bench) edit(change func(*workv1alpha1.Work)) {
	b.Helper()
	memory.Change(b.Env, memory.Key("karmada-es-m1", "w"), func(work *workv1alpha1.Work) {
		change(work)
		work.Generation++
	})
}

func (b *bench) cluster(change func(*clusterv1alpha1.Cluster)) {
	b.Helper()
	memory.Change(b.Env, memory.Key("", "m1"), change)
}

// state returns the state of the Work.
func (b *bench) state() *workState {
	b.runner.mu.Lock()
	defer b.runner.mu.Unlock()
	return b.runner.works["w"]
}

// observed waits until the informer has observed the object as the member has it.
func (b *bench) observed(path string) {
	b.Helper()
	accesstest.Eventually(b.T, func() error {
		want := b.member.Get(path)
		for _, o := range b.state().objects {
			view, _ := b.runner.view(o.kind, o.key)
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

func applied(work *workv1alpha1.Work) string {
	c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied)
	if c == nil {
		return "absent"
	}
	return string(c.Status) + " " + c.Message
}

const appliedOK = "True Manifest has been successfully applied"
