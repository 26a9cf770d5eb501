package member

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

func workWith(name string, preserve bool, manifests ...string) *workv1alpha1.Work {
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m3", Name: name, Finalizers: []string{"karmada.io/execution-controller"}}}
	for _, m := range manifests {
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(m)}})
	}
	if preserve {
		work.Spec.PreserveResourcesOnDeletion = new(true)
	}
	return work
}

const (
	confManifest = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"conf"}}`
	keptManifest = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"kept"}}`
	roleManifest = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"r"}}`
)

// came is an object in a member that came with a Work.
func came(work, space, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "u", Annotations: map[string]string{
		"work.karmada.io/name": work, "work.karmada.io/namespace": space,
	}}}
}

// abandoned returns a control plane that gave cluster m3 up, and what was said.
func abandoned(t *testing.T, cluster *clusterv1alpha1.Cluster) (*fakeServer, []string) {
	t.Helper()
	cluster.Finalizers = []string{"karmada.io/cluster-controller"}
	cp := newServer(t, cluster, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-m3"}},
		workWith("conf", false, confManifest), workWith("kept", true, keptManifest), workWith("role", false, roleManifest))
	left, err := Unjoin(t.Context(), Deps{ControlPlane: cp, Program: "karmadactl"}, UnjoinRequest{
		Name: "m3", Namespace: "karmada-cluster", Wait: time.Minute, Abandon: true, At: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC),
	})
	if err != nil {
		t.Fatal(err)
	}
	return cp, left
}

func TestUnjoin_Abandon(t *testing.T) {
	cp, left := abandoned(t, pulled("m3", "id"))
	if diff := cmp.Diff([]string{"in the member: ClusterRole r", "in the member: ConfigMap shop/conf"}, left); diff != "" {
		t.Errorf("left (-want +got)\n%s", diff)
	}
	gone(t, cp, clusterObject("m3", ""))
	works := &workv1alpha1.WorkList{}
	if err := cp.List(t.Context(), works); err != nil || len(works.Items) > 0 {
		t.Errorf("%d works, %v", len(works.Items), err)
	}
	cm := &corev1.ConfigMap{}
	get(t, cp, "karmada-cluster", "m3-abandoned", cm)
	want := map[string]string{"clusterID": "id", "abandonedAt": "2026-05-01T12:00:00Z", "objectCount": "2"}
	if diff := cmp.Diff(want, cm.Data); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	role := &rbacv1.Role{}
	get(t, cp, "karmada-cluster", "m3-abandoned", role)
	if len(role.Rules) != 1 || !slices.Equal(role.Rules[0].ResourceNames, []string{"m3-abandoned"}) {
		t.Errorf("its agent may %+v", role.Rules)
	}
}

func TestUnjoin_AbandonInPushModeGivesNoRights(t *testing.T) {
	cp, _ := abandoned(t, clusterObject("m3", "id"))
	gone(t, cp, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "m3-abandoned"}})
}

func vacant(context.Context, string) (string, error) { return "", nil }

func TestCleanAbandoned_NamespacesThatAreInUseStay(t *testing.T) {
	for in, deleted := range map[string]bool{"": true, "configmaps mine": false} {
		cluster := pulled("m3", "id")
		cluster.Finalizers = []string{"karmada.io/cluster-controller"}
		cp := newServer(t, cluster, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-m3"}},
			workWith("conf", false, confManifest), workWith("shop", false, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`))
		if _, err := Unjoin(t.Context(), Deps{ControlPlane: cp, Program: "karmadactl"}, UnjoinRequest{Name: "m3", Namespace: "karmada-cluster", Wait: time.Minute, Abandon: true}); err != nil {
			t.Fatal(err)
		}
		conf := came("conf", "karmada-es-m3", "conf")
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "u", Annotations: came("shop", "karmada-es-m3", "shop").Annotations}}
		m := memberServer(t, "id", conf, ns)
		occupant := func(ctx context.Context, namespace string) (string, error) {
			if err := m.Get(ctx, client.ObjectKeyFromObject(conf), &corev1.ConfigMap{}); namespace != "shop" || !apierrors.IsNotFound(err) {
				t.Errorf("asked for %s before its objects were deleted: %v", namespace, err)
			}
			return in, nil
		}
		if _, err := CleanAbandoned(t.Context(), cp, m, "m3", "id", time.Unix(1000, 0), occupant); err != nil {
			t.Fatal(err)
		}
		if err := m.Get(t.Context(), client.ObjectKeyFromObject(ns), &corev1.Namespace{}); apierrors.IsNotFound(err) != deleted {
			t.Errorf("with %q in it: %v", in, err)
		}
	}
}

func TestCleanAbandoned(t *testing.T) {
	at := time.Date(2026, 5, 2, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		id      string
		have    *corev1.ConfigMap
		found   bool
		deleted bool
	}{
		"what it came to have goes":                       {"id", came("conf", "karmada-es-m3", "conf"), true, true},
		"what others made in its place stays":             {"id", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "conf"}}, true, false},
		"what another work made stays":                    {"id", came("other", "karmada-es-m3", "conf"), true, false},
		"what another control plane's cluster made stays": {"id", came("conf", "karmada-es-m4", "conf"), true, false},
		"what was to be kept stays":                       {"id", came("kept", "karmada-es-m3", "kept"), true, false},
		"another cluster cleans nothing":                  {"other", came("conf", "karmada-es-m3", "conf"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			cp, _ := abandoned(t, pulled("m3", "id"))
			m := memberServer(t, tc.id, tc.have)
			found, err := CleanAbandoned(t.Context(), cp, m, "m3", tc.id, at, vacant)
			if err != nil || found != tc.found {
				t.Fatalf("found %v, %v", found, err)
			}
			err = m.Get(t.Context(), client.ObjectKeyFromObject(tc.have), &corev1.ConfigMap{})
			if apierrors.IsNotFound(err) != tc.deleted {
				t.Errorf("deleted %v, want %v", !tc.deleted, tc.deleted)
			}
			cm := &corev1.ConfigMap{}
			get(t, cp, "karmada-cluster", "m3-abandoned", cm)
			if got := cm.Data["cleanedAt"]; (got != "") != tc.found {
				t.Errorf("cleanedAt is %q", got)
			}
			if again, err := CleanAbandoned(t.Context(), cp, m, "m3", tc.id, at, vacant); again || err != nil {
				t.Errorf("again: found %v, %v", again, err)
			}
		})
	}
	t.Run("a cluster that was not abandoned has nothing to clean", func(t *testing.T) {
		found, err := CleanAbandoned(t.Context(), newServer(t), memberServer(t, "id"), "m3", "id", at, vacant)
		if found || err != nil {
			t.Errorf("found %v, %v", found, err)
		}
	})
}

func TestLeftovers_Lines(t *testing.T) {
	var many leftovers
	for name := range strings.SplitSeq("abcdefghijkl", "") {
		many = append(many, Left{Kind: "Job", Namespace: "ns", Name: name})
	}
	want := []string{"in the member: Job ns/a, ns/b, ns/c, ns/d, ns/e, ns/f, ns/g, ns/h, ns/i, ns/j and 2 more"}
	if diff := cmp.Diff(want, many.lines()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestJoin_RemovesTheRecordOfItsOwnAbandonment(t *testing.T) {
	for name, tc := range map[string]struct {
		id   string
		stay bool
	}{"of this cluster": {"id-1", false}, "of another cluster of the name": {"id-2", true}} {
		t.Run(name, func(t *testing.T) {
			tombstone := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "m1-abandoned"},
				Data:       map[string]string{TombstoneID: tc.id, TombstoneCount: "3"},
			}
			control, member := newServer(t, tombstone), memberServer(t, "id-1")
			var said []string
			d := deps(control, member)
			d.Report = func(line string) { said = append(said, line) }
			if _, err := Join(t.Context(), d, joinRequest("m1")); err != nil {
				t.Fatal(err)
			}
			err := control.Get(t.Context(), client.ObjectKeyFromObject(tombstone), tombstone)
			if (err == nil) != tc.stay || (len(said) == 0) != tc.stay {
				t.Errorf("%v, said %v", err, said)
			}
		})
	}
}
