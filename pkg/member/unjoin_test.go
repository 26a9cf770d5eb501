package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

func unjoinRequest(name string) UnjoinRequest {
	return UnjoinRequest{Name: name, Namespace: "karmada-cluster", Wait: time.Minute}
}

// joined returns a control plane and a member that was joined to it.
func joined(t *testing.T, memberObjects ...client.Object) (control, member *fakeServer) {
	t.Helper()
	control, member = newServer(t), memberServer(t, "id-1", memberObjects...)
	if _, err := Join(t.Context(), deps(control, member), joinRequest("m1")); err != nil {
		t.Fatal(err)
	}
	control.writes, member.writes = nil, nil
	return control, member
}

func gone(t *testing.T, s *fakeServer, obj client.Object) {
	t.Helper()
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
		t.Errorf("%T %s is there: %v", obj, key(obj), err)
	}
}

func TestUnjoin_RemovesWhatJoinMade(t *testing.T) {
	control, member := joined(t)
	left, err := Unjoin(t.Context(), deps(control, member), unjoinRequest("m1"))
	if err != nil || len(left) > 0 {
		t.Fatalf("%v, left %v", err, left)
	}
	gone(t, control, clusterObject("m1", ""))
	want := []string{
		"delete ClusterRoleBinding karmada-controller-manager:karmada-m1", "delete ClusterRole karmada-controller-manager:karmada-m1",
		"delete ServiceAccount karmada-cluster/karmada-m1", "delete Secret karmada-cluster/karmada-m1",
		"delete ServiceAccount karmada-cluster/karmada-impersonator", "delete Secret karmada-cluster/karmada-impersonator",
		"delete Namespace karmada-cluster",
	}
	if diff := cmp.Diff(want, member.writes); diff != "" {
		t.Error(diff)
	}
}

func TestUnjoin_KeepsWhatOthersUse(t *testing.T) {
	other := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "karmada-other", Labels: systemLabels()}}
	control, member := joined(t, other)
	if _, err := Unjoin(t.Context(), deps(control, member), unjoinRequest("m1")); err != nil {
		t.Fatal(err)
	}
	get(t, member, "karmada-cluster", "karmada-impersonator", &corev1.ServiceAccount{})
	get(t, member, "", "karmada-cluster", &corev1.Namespace{})
}

func TestUnjoin_KeepsANamespaceThatJoinDidNotMake(t *testing.T) {
	control, member := joined(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-cluster"}})
	if _, err := Unjoin(t.Context(), deps(control, member), unjoinRequest("m1")); err != nil {
		t.Fatal(err)
	}
	get(t, member, "", "karmada-cluster", &corev1.Namespace{})
	gone(t, member, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "karmada-impersonator"}})
}

func TestUnjoin_GoesOnWhereAnEarlierRunStopped(t *testing.T) {
	control, member := joined(t)
	if _, err := Unjoin(t.Context(), deps(control, nil), unjoinRequest("m1")); err != nil {
		t.Fatal(err)
	}
	if _, err := Unjoin(t.Context(), deps(control, member), unjoinRequest("m1")); err != nil {
		t.Fatal(err)
	}
	gone(t, member, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-cluster"}})
	_, err := Unjoin(t.Context(), deps(control, member), unjoinRequest("m1"))
	if err == nil || !strings.HasPrefix(err.Error(), "no cluster object m1 found in karmada control Plane") {
		t.Errorf("third run: %v", err)
	}
}

func TestUnjoin_Refuses(t *testing.T) {
	pull := clusterObject("pull", "id-1")
	pull.Spec.SyncMode = clusterv1alpha1.Pull
	control := newServer(t, pull)
	for name, want := range map[string]string{
		"pull": "cluster pull is a Pull mode member cluster, please use command `unregister` if you want to continue unregistering the cluster; one that is lost for good is given up with \"karmadactl unjoin pull --abandon\"",
		"nope": `no cluster object nope found in karmada control Plane; "karmadactl get clusters" lists those that are`,
	} {
		if _, err := Unjoin(t.Context(), deps(control, nil), unjoinRequest(name)); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestUnjoin_DryRunWritesNothing(t *testing.T) {
	control, member := joined(t)
	r := unjoinRequest("m1")
	r.DryRun = true
	if _, err := Unjoin(t.Context(), deps(control, member), r); err != nil {
		t.Fatal(err)
	}
	if len(control.writes)+len(member.writes) > 0 {
		t.Errorf("wrote %v %v", control.writes, member.writes)
	}
}

// stuck returns a control plane that does not get rid of a cluster.
func stuck(t *testing.T) *fakeServer {
	t.Helper()
	cluster := clusterObject("m1", "id-1")
	cluster.Finalizers = []string{clusterv1alpha1.ClusterControllerFinalizer, "other"}
	cluster.Finalizers = cluster.Finalizers[:1]
	manifest, err := json.Marshal(map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "default", "name": "nginx"}})
	if err != nil {
		t.Fatal(err)
	}
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "w", Finalizers: []string{"karmada.io/execution-controller"}}}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: manifest}}}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-m1", Finalizers: []string{"test/keeps-it"}}}
	return newServer(t, cluster, work, space)
}

func TestUnjoin_UnreachableMemberEndsInTimeAndListsTheObjectsLeft(t *testing.T) {
	control := stuck(t)
	synctest.Test(t, func(t *testing.T) {
		var said []string
		d := deps(control, nil)
		d.Report = func(line string) { said = append(said, line) }
		r := unjoinRequest("m1")
		r.Wait = 5 * time.Second
		start := time.Now()
		_, err := Unjoin(t.Context(), d, r)
		if took := time.Since(start); took > 6*time.Second {
			t.Errorf("took %s", took)
		}
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 works in namespace karmada-es-m1 are not cleaned up (1 held by the execution controller, which removes their objects from the member)") ||
			!strings.Contains(err.Error(), `"karmadactl unjoin m1 --force"`) {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff([]string{`waiting for cluster "m1" to be removed: 1 works in namespace karmada-es-m1 are not cleaned up (1 held by the execution controller, which removes their objects from the member)`}, said); diff != "" {
			t.Error(diff)
		}
	})
}

// bound returns a control plane whose cluster answers and is kept by a binding
// whose policy is gone. Of two Works, that of the Deployment is gone already.
func bound(t *testing.T) *fakeServer {
	t.Helper()
	cluster := clusterObject("m1", "id-1")
	cluster.Finalizers = []string{clusterv1alpha1.ClusterControllerFinalizer}
	cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}
	binding := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app-configmap"}}
	binding.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}}
	other := binding.DeepCopy()
	other.Name, other.Spec.Clusters[0].Name = "other", "m2"
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "w"}}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"app"}}`)}}}
	s := newServer(t, cluster, binding, other, work)
	s.deleted = func(client.Object) {
		if err := s.Client.Delete(t.Context(), work); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	}
	return s
}

func TestUnjoin_NamesTheBindingsThatKeepACluster(t *testing.T) {
	control := bound(t)
	synctest.Test(t, func(t *testing.T) {
		var said []string
		d := deps(control, nil)
		d.Report = func(line string) { said = append(said, line) }
		r := unjoinRequest("m1")
		r.Wait = 5 * time.Second
		left, err := Unjoin(t.Context(), d, r)
		want := `cluster "m1" is still being removed after 5s: bindings name it as a target: default/app-configmap; check that scheduler default-scheduler runs; ` +
			`it goes on in the background, or give it up with "karmadactl unjoin m1 --force": context deadline exceeded`
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if len(left) > 0 {
			t.Errorf("the objects are gone, still left: %v", left)
		}
		want = `waiting for cluster "m1" to be removed: bindings name it as a target: default/app-configmap; check that scheduler default-scheduler runs`
		if diff := cmp.Diff([]string{want}, said); diff != "" {
			t.Error(diff)
		}
	})
}

func TestUnjoin_ForceListsOnlyWhatIsStillThere(t *testing.T) {
	control := bound(t)
	synctest.Test(t, func(t *testing.T) {
		r := unjoinRequest("m1")
		r.Wait, r.Force = time.Second, true
		left, err := Unjoin(t.Context(), deps(control, nil), r)
		if err != nil || len(left) > 0 {
			t.Errorf("%v, left %v", err, left)
		}
	})
}

func TestUnjoin_ForceTakesAwayWhatHoldsIt(t *testing.T) {
	control := stuck(t)
	synctest.Test(t, func(t *testing.T) {
		r := unjoinRequest("m1")
		r.Wait, r.Force = time.Second, true
		left, err := Unjoin(t.Context(), deps(control, nil), r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"in the member: Deployment default/nginx"}, left); diff != "" {
			t.Error(diff)
		}
	})
	gone(t, control, clusterObject("m1", ""))
	gone(t, control, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "w"}})
	if diff := cmp.Diff([]string{"karmada-es-m1"}, control.finalized); diff != "" {
		t.Error(diff)
	}
}

func TestUnjoin_ForceGoesOnPastAMemberThatRefuses(t *testing.T) {
	control, member := joined(t)
	member.refuse = func(string, client.Object) error { return errors.New("dead") }
	r := unjoinRequest("m1")
	if _, err := Unjoin(t.Context(), deps(control, member), r); err == nil || !strings.Contains(err.Error(), `from cluster "m1": dead`) {
		t.Errorf("without force: %v", err)
	}
	control, member = joined(t)
	member.refuse = func(string, client.Object) error { return errors.New("dead") }
	r.Force = true
	left, err := Unjoin(t.Context(), deps(control, member), r)
	if err != nil || len(left) != 5 {
		t.Errorf("%v, left %v", err, left)
	}
}

func TestUnjoin_WaitsWhileThereIsProgress(t *testing.T) {
	cluster := clusterObject("m1", "")
	cluster.Finalizers = []string{"karmada.io/cluster-controller"}
	control := newServer(t, cluster)
	var works []*workv1alpha1.Work
	for i := range 3 {
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: fmt.Sprintf("w%d", i), Finalizers: []string{"test/keeps-it"}}}
		if err := control.Create(t.Context(), work); err != nil {
			t.Fatal(err)
		}
		works = append(works, work)
	}
	synctest.Test(t, func(t *testing.T) {
		r := unjoinRequest("m1")
		r.Wait = 5 * time.Second
		start := time.Now()
		go func() {
			for _, work := range works {
				time.Sleep(4 * time.Second)
				work.Finalizers = nil
				_ = control.Update(t.Context(), work)
				_ = control.Delete(t.Context(), work)
			}
			time.Sleep(4 * time.Second)
			cluster := clusterObject("m1", "")
			_ = control.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster)
			cluster.Finalizers = nil
			_ = control.Update(t.Context(), cluster)
		}()
		if _, err := Unjoin(t.Context(), deps(control, nil), r); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took < 16*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestUnjoin_RefusesTheKubeconfigOfAnotherCluster(t *testing.T) {
	control, _ := joined(t)
	other := memberServer(t, "id-2")
	_, err := Unjoin(t.Context(), deps(control, other), unjoinRequest("m1"))
	if err == nil || !strings.Contains(err.Error(), "choose its context with --cluster-context") || len(control.writes)+len(other.writes) > 0 {
		t.Errorf("got %v; wrote %v %v", err, control.writes, other.writes)
	}
}
