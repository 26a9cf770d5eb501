package orphans

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/metadata"
	fakemetadata "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// preferred is a fake discovery that serves preferred resources.
type preferred struct{ *fakediscovery.FakeDiscovery }

// ServerPreferredResources implements discovery.DiscoveryInterface.
func (p preferred) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	return p.Resources, nil
}

// member is a cluster with objects.
type member struct {
	discovery preferred
	*fakemetadata.FakeMetadataClient
	closed      func() // called by close
	incarnation access.Incarnation
}

// restored returns the member after it was restored from an older copy of its store.
func (m *member) restored(from, to string) *member {
	out := *m
	out.incarnation = access.Incarnation{Number: m.incarnation.Number + 1, From: from, To: to}
	return &out
}

// OnClose implements API.
func (m *member) OnClose(fn func()) func() bool {
	m.closed = fn
	return nil
}

// Incarnation implements API.
func (m *member) Incarnation() access.Incarnation { return m.incarnation }

// Discovery implements API.
func (m *member) Discovery() discovery.DiscoveryInterface { return m.discovery }

// Metadata implements API.
func (m *member) Metadata() metadata.Interface { return m.FakeMetadataClient }

func newMember(t *testing.T, objects ...runtime.Object) *member {
	t.Helper()
	scheme := fakemetadata.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	verbs := metav1.Verbs{"create", "list", "delete"}
	return (&member{
		discovery: preferred{&fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{
			{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: verbs}}},
			{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment", Namespaced: true, Verbs: verbs}}},
		}}}},
		FakeMetadataClient: fakemetadata.NewSimpleMetadataClient(scheme, objects...),
	}).restored("", "")
}

func object(apiVersion, kind, name, namespace, work string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID("uid of " + name),
			Labels:      map[string]string{workv1alpha2.ManagedByKarmadaLabel: workv1alpha2.ManagedByKarmadaLabelValue},
			Annotations: map[string]string{workv1alpha2.WorkNamespaceAnnotation: namespace, workv1alpha2.WorkNameAnnotation: work},
		},
	}
}

// bench is a control plane with one cluster.
type bench struct {
	*memory.Env
	*Controller
	member *member
}

func newBench(t *testing.T, m *member, objects ...client.Object) *bench {
	t.Helper()
	cluster := build.Cluster("m1", build.Ready(metav1.ConditionTrue))
	cluster.Spec.SyncMode, cluster.Spec.SecretRef = clusterv1alpha1.Push, &clusterv1alpha1.LocalSecretReference{}
	e := memory.New(t, append(objects, cluster)...)
	b := &bench{Env: e, member: m}
	b.Controller = New(e.Client, e.Recorder, Deps{Clock: e.Clock, Member: func(context.Context, *clusterv1alpha1.Cluster) (API, error) { return b.member, nil }})
	return b
}

func (b *bench) cluster() *clusterv1alpha1.Cluster {
	b.Helper()
	return memory.Get[*clusterv1alpha1.Cluster](b.Env, memory.Key("", "m1"))
}

func (b *bench) reconcile(want time.Duration) {
	b.Helper()
	if got := b.MustReconcile(b, memory.Key("", "m1")); got != want {
		b.Fatalf("the next search is after %s, want %s", got, want)
	}
}

// deleted returns the objects that were deleted from the member.
func (b *bench) deleted() []string {
	var out []string
	for _, a := range b.member.Actions() {
		if d, ok := a.(clienttesting.DeleteAction); ok {
			out = append(out, d.GetResource().Resource+" "+d.GetName())
		}
	}
	slices.Sort(out)
	return out
}

func TestController_ObjectsOfAnEarlierMembership(t *testing.T) {
	m := newMember(t,
		object("apps/v1", "Deployment", "old", "karmada-es-m1", "old-work"),
		object("v1", "ConfigMap", "old", "karmada-es-m1", "old-config"),
		object("v1", "ConfigMap", "kept", "karmada-es-m1", "work"),
		object("v1", "ConfigMap", "of-another-control-plane", "karmada-es-other", "x"),
	)
	b := newBench(t, m, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "work"}})
	b.reconcile(Grace)
	if got := b.Conditions(b.cluster()); got != nil || len(b.Events()) > 0 {
		t.Fatalf("reported at first sight: %v", got)
	}
	b.Clock.Step(Grace)
	b.reconcile(searchInterval)
	got := b.Conditions(b.cluster())
	if len(got) != 1 || got[0].Status != metav1.ConditionTrue || got[0].Reason != "WorksMissing" ||
		!strings.HasPrefix(got[0].Message, "2 objects in the cluster belong to works that the control plane does not have, and stay: ConfigMap default/old, Deployment default/old. To delete exactly these: kubectl annotate cluster m1 cluster.karmada.io/delete-orphans=") {
		t.Fatalf("got %v", got)
	}
	if events := b.Events(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning OrphanedObjects 2 objects") {
		t.Errorf("events %v", events)
	}
	confirm := func(token string) {
		t.Helper()
		memory.Change(b.Env, memory.Key("", "m1"), func(c *clusterv1alpha1.Cluster) {
			c.Annotations = map[string]string{clusterv1alpha1.DeleteOrphansAnnotation: token}
		})
	}
	confirm("another")
	b.reconcile(searchInterval)
	if got := b.deleted(); len(got) > 0 {
		t.Fatalf("deleted without confirmation: %v", got)
	}
	_, token, _ := strings.Cut(strings.TrimSuffix(got[0].Message, " --overwrite"), "delete-orphans=")
	confirm(token)
	b.reconcile(Grace)
	if diff := cmp.Diff([]string{"configmaps old", "deployments old"}, b.deleted()); diff != "" {
		t.Error(diff)
	}
	b.reconcile(0)
	cluster := b.cluster()
	cluster.Status.Conditions = append(cluster.Status.Conditions, got...)
	if got := b.Conditions(cluster); len(got) != 1 || got[0].Status != metav1.ConditionFalse {
		t.Errorf("after the deletion: %v", got)
	}
}

func TestController_ConditionIsKeptUntilASearchEnded(t *testing.T) {
	b := newBench(t, newMember(t))
	cluster := b.cluster()
	before := metav1.Condition{Type: clusterv1alpha1.ClusterConditionOrphanedObjects, Status: metav1.ConditionTrue, Reason: reasonFound, Message: "x"}
	cluster.Status.Conditions = append(cluster.Status.Conditions, before)
	if diff := cmp.Diff([]metav1.Condition{before}, b.Conditions(cluster)); diff != "" {
		t.Error(diff)
	}
	b.reconcile(0)
	if got := b.Conditions(cluster); len(got) != 1 || got[0].Status != metav1.ConditionFalse {
		t.Errorf("got %v", got)
	}
}

func TestController_IgnoresOtherClusters(t *testing.T) {
	for name, change := range map[string]func(*clusterv1alpha1.Cluster){
		"Pull mode": func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Pull },
		"not Ready": func(c *clusterv1alpha1.Cluster) { c.Status.Conditions = nil },
	} {
		m := newMember(t, object("v1", "ConfigMap", "old", "karmada-es-m1", "w"))
		b := newBench(t, m)
		memory.Change(b.Env, memory.Key("", "m1"), change)
		b.reconcile(0)
		if len(m.Actions()) > 0 {
			t.Errorf("%s: searched", name)
		}
	}
}

// listed returns the types that were listed since the last call.
func (b *bench) listed() []string {
	var out []string
	for _, a := range b.member.Actions() {
		if a.GetVerb() == "list" {
			out = append(out, a.GetResource().Resource)
		}
	}
	b.member.ClearActions()
	slices.Sort(out)
	return out
}

func TestController_ListsOnlyTheTypesOfWorksAfterACompleteSearch(t *testing.T) {
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "work"}}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"apps/v1","kind":"Deployment"}`)}}}
	b := newBench(t, newMember(t), work)
	expect := func(when string, wait time.Duration, want ...string) {
		t.Helper()
		b.reconcile(wait)
		if diff := cmp.Diff(want, b.listed()); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
	}
	expect("first", 0, "configmaps", "deployments")
	expect("Ready again", 0, "deployments")
	lost := work.DeepCopy()
	lost.Name = "lost"
	if got := b.lostBy(lost).Name; got != "m1" {
		t.Fatalf("a lost work is of cluster %q", got)
	}
	expect("lost a work", 0, "configmaps", "deployments")
	b.member.closed()
	if got := <-b.search; got.Object.Name != "m1" {
		t.Errorf("cluster %q is searched after its member was closed", got.Object.Name)
	}
	b.member = b.member.restored("20", "10")
	expect("restored", 0, "configmaps", "deployments")
	expect("afterwards", 0, "deployments")

	b.complete.AllowN(b.Clock.Now(), completeBurst-3) // those of other clusters
	b.lostBy(lost)
	expect("while others wait", time.Second, "deployments")
	b.Clock.Step(time.Second)
	expect("in its turn", 0, "configmaps", "deployments")
}

func TestController_TypesOfObjectsThatWereFoundAreSearchedAgain(t *testing.T) {
	b := newBench(t, newMember(t, object("v1", "ConfigMap", "old", "karmada-es-m1", "gone")))
	b.reconcile(Grace)
	b.Clock.Step(Grace)
	b.reconcile(searchInterval)
	b.listed()
	b.reconcile(searchInterval)
	if diff := cmp.Diff([]string{"configmaps"}, b.listed()); diff != "" {
		t.Error(diff)
	}
}

func TestController_AFailedCompleteSearchIsRepeated(t *testing.T) {
	b := newBench(t, newMember(t))
	fail := true
	b.member.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return fail, nil, context.DeadlineExceeded
	})
	b.reconcile(searchInterval)
	if diff := cmp.Diff([]string{"configmaps"}, b.listed()); diff != "" {
		t.Errorf("a search goes on after a member did not answer: %s", diff)
	}
	fail = false
	b.reconcile(0)
	if diff := cmp.Diff([]string{"configmaps", "deployments"}, b.listed()); diff != "" {
		t.Error(diff)
	}
}
