package member

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

func deps(control, member *fakeServer) Deps {
	d := Deps{Program: "karmadactl", ControlPlane: control}
	if member != nil {
		d.Member = member
	}
	return d
}

func get[T client.Object](t *testing.T, s *fakeServer, namespace, name string, obj T) T {
	t.Helper()
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj); err != nil {
		t.Fatalf("%T %s/%s: %v", obj, namespace, name, err)
	}
	return obj
}

func TestJoin_MakesAccountsSecretsAndCluster(t *testing.T) {
	control, member := newServer(t), memberServer(t, "id-1")
	if _, err := Join(t.Context(), deps(control, member), joinRequest("m1")); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"create Namespace karmada-cluster",
		"create ClusterRole karmada-controller-manager:karmada-m1",
		"create ClusterRoleBinding karmada-controller-manager:karmada-m1",
		"create ServiceAccount karmada-cluster/karmada-impersonator", "create Secret karmada-cluster/karmada-impersonator",
		"create ServiceAccount karmada-cluster/karmada-m1", "create Secret karmada-cluster/karmada-m1",
	}
	if diff := cmp.Diff(want, member.writes); diff != "" {
		t.Errorf("member: %s", diff)
	}
	want = []string{
		"create Namespace karmada-cluster", "create Secret karmada-cluster/m1-impersonator", "create Secret karmada-cluster/m1",
		"create Cluster m1", "patch Secret karmada-cluster/m1-impersonator", "patch Secret karmada-cluster/m1",
	}
	if diff := cmp.Diff(want, control.writes); diff != "" {
		t.Errorf("control plane: %s", diff)
	}
	spec := clusterv1alpha1.ClusterSpec{
		ID: "id-1", SyncMode: clusterv1alpha1.Push, APIEndpoint: "https://127.0.0.1:6443", Provider: "p", Region: "r", Zones: []string{"z"},
		SecretRef:             &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "m1"},
		ImpersonatorSecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "m1-impersonator"},
	}
	cluster := get(t, control, "", "m1", &clusterv1alpha1.Cluster{})
	if diff := cmp.Diff(spec, cluster.Spec); diff != "" {
		t.Error(diff)
	}
	secret := get(t, control, "karmada-cluster", "m1", &corev1.Secret{})
	if diff := cmp.Diff(map[string][]byte{"token": []byte("token of karmada-m1"), "caBundle": []byte("CA")}, secret.Data); diff != "" {
		t.Error(diff)
	}
	if owner := metav1.GetControllerOf(secret); owner == nil || owner.Kind != "Cluster" || owner.Name != "m1" || owner.UID != cluster.UID || !*owner.BlockOwnerDeletion {
		t.Errorf("owner: %v", owner)
	}
	impersonator := get(t, control, "karmada-cluster", "m1-impersonator", &corev1.Secret{})
	if diff := cmp.Diff(map[string][]byte{"token": []byte("token of karmada-impersonator")}, impersonator.Data); diff != "" {
		t.Error(diff)
	}
	role := get(t, member, "", "karmada-controller-manager:karmada-m1", &rbacv1.ClusterRole{})
	if role.Labels["karmada.io/system"] != "true" || len(role.Rules) != 2 {
		t.Errorf("role: %v", role)
	}
}

func TestJoin_DryRunWritesNothing(t *testing.T) {
	control, member := newServer(t), memberServer(t, "id-1")
	r := joinRequest("m1")
	r.DryRun = true
	cluster, err := Join(t.Context(), deps(control, member), r)
	if err != nil || cluster.Spec.ID != "id-1" {
		t.Errorf("%v, %v", cluster, err)
	}
	if len(control.writes)+len(member.writes) > 0 {
		t.Errorf("wrote %v %v", control.writes, member.writes)
	}
}

func TestJoin_FailureLeavesNothing(t *testing.T) {
	refused := errors.New("refused")
	for _, kind := range []client.Object{&corev1.Secret{}, &clusterv1alpha1.Cluster{}} {
		control, member := newServer(t), memberServer(t, "id-1")
		control.refuse = func(verb string, obj client.Object) error {
			if verb == "create" && obj.GetName() == "m1" && reflect.TypeOf(obj) == reflect.TypeOf(kind) {
				return refused
			}
			return nil
		}
		_, err := Join(t.Context(), deps(control, member), joinRequest("m1"))
		if !errors.Is(err, refused) {
			t.Fatalf("got %v", err)
		}
		for _, s := range []*fakeServer{control, member} {
			made := map[string]bool{}
			for _, w := range s.writes {
				verb, obj, _ := strings.Cut(w, " ")
				made[obj] = verb == "create"
			}
			for obj, there := range made {
				if there {
					t.Errorf("%s was left", obj)
				}
			}
		}
		control.refuse = nil
		if _, err := Join(t.Context(), deps(control, member), joinRequest("m1")); err != nil {
			t.Errorf("second run: %v", err)
		}
	}
}

func TestJoin_FailureKeepsWhatWasThere(t *testing.T) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-cluster"}}
	control, member := newServer(t, ns.DeepCopy()), memberServer(t, "id-1", ns)
	control.refuse = func(verb string, obj client.Object) error {
		if _, ok := obj.(*clusterv1alpha1.Cluster); ok && verb == "create" {
			return errors.New("refused")
		}
		return nil
	}
	if _, err := Join(t.Context(), deps(control, member), joinRequest("m1")); err == nil {
		t.Fatal("no error")
	}
	get(t, control, "", "karmada-cluster", &corev1.Namespace{})
	get(t, member, "", "karmada-cluster", &corev1.Namespace{})
}

func TestJoin_UpdatesStaleSecrets(t *testing.T) {
	stale := opaque("karmada-cluster", "m1", map[string][]byte{"token": []byte("old"), "caBundle": []byte("old")})
	control, member := newServer(t, stale), memberServer(t, "id-1")
	if _, err := Join(t.Context(), deps(control, member), joinRequest("m1")); err != nil {
		t.Fatal(err)
	}
	secret := get(t, control, "karmada-cluster", "m1", &corev1.Secret{})
	if got := string(secret.Data["token"]); got != "token of karmada-m1" {
		t.Errorf("token %q", got)
	}
}

func TestJoin_ReplacesTokenOfAnAccountThatIsGone(t *testing.T) {
	old := tokenSecret("karmada-cluster", "karmada-m1")
	old.Annotations[corev1.ServiceAccountUIDKey] = "another"
	old.Data = map[string][]byte{"token": []byte("dead")}
	control, member := newServer(t), memberServer(t, "id-1", old)
	if _, err := Join(t.Context(), deps(control, member), joinRequest("m1")); err != nil {
		t.Fatal(err)
	}
	secret := get(t, control, "karmada-cluster", "m1", &corev1.Secret{})
	if got := string(secret.Data["token"]); got != "token of karmada-m1" {
		t.Errorf("token %q", got)
	}
}

// Secrets of a member that were deleted are written again, and nothing else of it.
func TestJoin_RestoresDeletedSecrets(t *testing.T) {
	for _, name := range []string{"m1", "m1-impersonator"} {
		control, member := newServer(t), memberServer(t, "id-1")
		if _, err := Join(t.Context(), deps(control, member), joinRequest("m1")); err != nil {
			t.Fatal(err)
		}
		if LacksCredentials(t.Context(), deps(control, member), "m1") {
			t.Error("nothing is missing yet")
		}
		secret := get(t, control, "karmada-cluster", name, &corev1.Secret{})
		if err := control.Delete(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		if !LacksCredentials(t.Context(), deps(control, member), "m1") {
			t.Errorf("%s is missing", name)
		}
		other := memberServer(t, "id-2")
		if _, err := Join(t.Context(), deps(control, other), joinRequest("m1")); err == nil || !strings.Contains(err.Error(), "another cluster is joined") {
			t.Errorf("another cluster of the name: %v", err)
		}
		control.writes = nil
		r := joinRequest("m1")
		r.Namespace = "elsewhere" // the Cluster names the namespace
		if _, err := Join(t.Context(), deps(control, member), r); err != nil {
			t.Fatal(err)
		}
		restored := get(t, control, "karmada-cluster", name, &corev1.Secret{})
		if !bytes.Equal(restored.Data["token"], secret.Data["token"]) || !bytes.HasPrefix(restored.Data["caBundle"], secret.Data["caBundle"]) || len(restored.OwnerReferences) != 1 {
			t.Errorf("%s: %v", name, restored)
		}
		for _, write := range control.writes {
			if strings.Contains(write, "Cluster") {
				t.Errorf("%s", write)
			}
		}
	}
}

// A member gets new credentials where it does not accept those that it has, and the endpoint of the request. All else stays.
func TestJoin_RenewsCredentials(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(t *testing.T, member *fakeServer, r *JoinRequest)
		token   string
		changed []string // in the control plane
	}{
		"nothing changed": {func(*testing.T, *fakeServer, *JoinRequest) {}, "token of karmada-m1", nil},
		"the token was revoked": {func(t *testing.T, member *fakeServer, _ *JoinRequest) {
			secret := get(t, member, "karmada-cluster", "karmada-m1", &corev1.Secret{})
			secret.Data["token"] = []byte("dead")
			if err := member.Client.Update(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
		}, "token of karmada-m1", nil},
		"its Secret is gone and the new one has another token": {func(t *testing.T, member *fakeServer, _ *JoinRequest) {
			secret := get(t, member, "karmada-cluster", "karmada-m1", &corev1.Secret{})
			secret.Data["token"] = []byte("another")
			if err := member.Client.Update(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
		}, "another", []string{"Secret karmada-cluster/m1"}},
		"another authority": {func(_ *testing.T, _ *fakeServer, r *JoinRequest) { r.Config.CAData = []byte("a new CA") }, "token of karmada-m1", []string{"Secret karmada-cluster/m1"}},
		"another address":   {func(_ *testing.T, _ *fakeServer, r *JoinRequest) { r.Endpoint = "https://192.0.2.1:6443" }, "token of karmada-m1", []string{"Cluster m1"}},
		"a dry run": {func(_ *testing.T, _ *fakeServer, r *JoinRequest) {
			r.Endpoint, r.DryRun = "https://192.0.2.1:6443", true
		}, "token of karmada-m1", nil},
	} {
		t.Run(name, func(t *testing.T) {
			control, member := newServer(t), memberServer(t, "id-1")
			r := joinRequest("m1")
			r.Config.CAData = []byte("CA")
			before, err := Join(t.Context(), deps(control, member), r)
			if err != nil {
				t.Fatal(err)
			}
			spec := before.Spec
			control.writes = nil
			r.Provider, r.Region, r.Namespace = "another", "another", "elsewhere"
			tc.change(t, member, &r)
			var said []string
			d := deps(control, member)
			d.Report = func(line string) { said = append(said, line) }
			if _, err := Join(t.Context(), d, r); err != nil {
				t.Fatal(err)
			}
			if len(said) != 1+len(tc.changed) || !strings.Contains(said[0], `cluster "m1" is a member already`) {
				t.Errorf("said %q", said)
			}
			var changed []string
			for _, write := range control.writes {
				if object, patched := strings.CutPrefix(write, "patch "); patched {
					changed = append(changed, object)
				} else {
					t.Errorf("%s", write)
				}
			}
			slices.Sort(changed)
			if diff := cmp.Diff(tc.changed, slices.Compact(changed)); diff != "" {
				t.Error(diff)
			}
			if r.Endpoint != "" && !r.DryRun {
				spec.APIEndpoint = r.Endpoint
			}
			if diff := cmp.Diff(spec, get(t, control, "", "m1", &clusterv1alpha1.Cluster{}).Spec); diff != "" {
				t.Error(diff)
			}
			if got := get(t, control, "karmada-cluster", "m1", &corev1.Secret{}).Data; string(got["token"]) != tc.token || !strings.HasPrefix(string(got["caBundle"]), "CA") {
				t.Errorf("credentials %q", got)
			}
			if got := string(get(t, member, "karmada-cluster", "karmada-m1", &corev1.Secret{}).Data["token"]); got != tc.token {
				t.Errorf("the token in the member is %q", got)
			}
			if _, err := Join(t.Context(), deps(control, memberServer(t, "id-2")), r); err == nil || !strings.Contains(err.Error(), "another cluster is joined") {
				t.Errorf("another cluster of the name: %v", err)
			}
		})
	}
}

func TestJoin_RequestsTokensWhereNoneAreFilled(t *testing.T) {
	control, member := newServer(t), memberServer(t, "id-1")
	member.fillsTokens = false
	synctest.Test(t, func(t *testing.T) {
		var said []string
		d := deps(control, member)
		d.Report = func(line string) { said = append(said, line) }
		start := time.Now()
		if _, err := Join(t.Context(), d, joinRequest("m1")); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > tokenControllerTimeout+time.Second {
			t.Errorf("took %s", took)
		}
		if len(said) != 3 || !strings.HasPrefix(said[0], "waiting for the member's token controller to fill 2 secrets") {
			t.Errorf("said %q", said)
		}
	})
	secret := get(t, control, "karmada-cluster", "m1", &corev1.Secret{})
	want := map[string][]byte{"token": []byte("requested for karmada-m1"), "caBundle": []byte("CA of the kubeconfig")}
	if diff := cmp.Diff(want, secret.Data); diff != "" {
		t.Error(diff)
	}
}

func TestJoin_Refuses(t *testing.T) {
	leaving := clusterObject("m1", "id-1")
	now := metav1.Now()
	leaving.DeletionTimestamp, leaving.Finalizers = &now, []string{"karmada.io/cluster-controller"}
	const prefix = "the cluster ID id-1 or the cluster name m1 has been registered: "
	for name, tt := range map[string]struct {
		name string
		have *clusterv1alpha1.Cluster
		want string
	}{
		"the same again":     {"m1", clusterObject("m1", "id-1"), prefix + `cluster "m1" is already joined; run "karmadactl unjoin m1" first`},
		"under another name": {"m1", clusterObject("other", "id-1"), prefix + `it is a member as "other"; run "karmadactl unjoin other" first`},
		"a name in use":      {"m1", clusterObject("m1", "id-2"), prefix + `another cluster is joined as "m1"; choose another name`},
		"while it leaves":    {"m1", leaving, prefix + `cluster "m1" is being removed; wait until it is gone, or run "karmadactl unjoin m1 --force"`},
		"a dot":              {"m.1", nil, "invalid cluster name(m.1): must not contain dots"},
		"an empty name":      {"", nil, "invalid cluster name(): must be not empty"},
	} {
		t.Run(name, func(t *testing.T) {
			control := newServer(t)
			if tt.have != nil {
				control = newServer(t, tt.have)
			}
			member := memberServer(t, "id-1")
			_, err := Join(t.Context(), deps(control, member), joinRequest(tt.name))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if len(control.writes)+len(member.writes) > 0 {
				t.Errorf("wrote %v %v", control.writes, member.writes)
			}
		})
	}
}

func TestJoin_RefusesTheControlPlaneItself(t *testing.T) {
	server := memberServer(t, "id-1")
	_, err := Join(t.Context(), deps(server, server), joinRequest("m1"))
	if err == nil || !strings.Contains(err.Error(), "is the control plane itself") || len(server.writes) > 0 {
		t.Errorf("got %v, wrote %v", err, server.writes)
	}
}

func TestJoin_InterruptedLeavesNothing(t *testing.T) {
	control, member := newServer(t), memberServer(t, "id-1")
	ctx, cancel := context.WithCancel(t.Context())
	control.refuse = func(verb string, obj client.Object) error {
		if _, ok := obj.(*clusterv1alpha1.Cluster); ok && verb == "create" {
			cancel()
			return ctx.Err()
		}
		return nil
	}
	if _, err := Join(ctx, deps(control, member), joinRequest("m1")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for _, s := range []*fakeServer{control, member} {
		gone(t, s, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-cluster"}})
	}
}

func TestJoin_UnreachableClusterIsNamed(t *testing.T) {
	member := memberServer(t, "id-1")
	if err := member.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}); err != nil {
		t.Fatal(err)
	}
	_, err := Join(t.Context(), deps(newServer(t), member), joinRequest("m1"))
	for _, part := range []string{`cluster "m1"`, "https://127.0.0.1:6443", "--cluster-kubeconfig"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %s", err, part)
		}
	}
}

func TestDesiredCluster_TakesProxyAndInsecureFromTheKubeconfig(t *testing.T) {
	r := joinRequest("m1")
	r.Config.Host = "127.0.0.1:6443"
	r.Config.Insecure, r.Config.CAData = true, nil
	r.Config.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse("socks5://proxy:1080") }
	c, err := desiredCluster(r, "id")
	if err != nil {
		t.Fatal(err)
	}
	if c.Spec.APIEndpoint != "https://127.0.0.1:6443" || c.Spec.ProxyURL != "socks5://proxy:1080" || !c.Spec.InsecureSkipTLSVerification {
		t.Errorf("got %+v", c.Spec)
	}
}

func TestWaitReady(t *testing.T) {
	control := newServer(t, clusterObject("m1", "id-1"))
	set := func(status metav1.ConditionStatus, reason, message string) {
		c := get(t, control, "", "m1", &clusterv1alpha1.Cluster{})
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: "Ready", Status: status, Reason: reason, Message: message})
		if err := control.Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		var said []string
		d := deps(control, nil)
		d.Report = func(line string) { said = append(said, line) }
		state, err := WaitReady(t.Context(), d, "m1", 5*time.Second)
		if err != nil || state != "it has no Ready condition yet" {
			t.Errorf("%q, %v", state, err)
		}
		if diff := cmp.Diff([]string{`waiting for cluster "m1" to be Ready (it has no Ready condition yet)`}, said); diff != "" {
			t.Error(diff)
		}
		set(metav1.ConditionFalse, "ClusterNotReachable", "no")
		if state, err := WaitReady(t.Context(), d, "m1", time.Second); err != nil || state != "ClusterNotReachable: no" {
			t.Errorf("%q, %v", state, err)
		}
		time.AfterFunc(time.Second, func() { set(metav1.ConditionTrue, "ClusterReady", "yes") })
		start := time.Now()
		if state, err := WaitReady(t.Context(), d, "m1", 5*time.Second); err != nil || state != "" || time.Since(start) > 1500*time.Millisecond {
			t.Errorf("%q, %v after %s", state, err, time.Since(start))
		}
	})
}

func TestUpdateTaints_TriesAgainOnConflict(t *testing.T) {
	control := newServer(t, clusterObject("m1", "id-1"))
	conflicts := 2
	control.refuse = func(verb string, _ client.Object) error {
		if verb == "patch" && conflicts > 0 {
			conflicts--
			return apierrors.NewConflict(clusters, "m1", errors.New("changed"))
		}
		return nil
	}
	taint := corev1.Taint{Key: "a", Effect: corev1.TaintEffectNoSchedule}
	add := func(old []corev1.Taint) ([]corev1.Taint, bool, error) { return append(old, taint), true, nil }
	if err := UpdateTaints(t.Context(), control, "m1", true, add); err != nil || len(control.writes) > 0 {
		t.Errorf("dry run: %v %v", err, control.writes)
	}
	if err := UpdateTaints(t.Context(), control, "m1", false, add); err != nil {
		t.Fatal(err)
	}
	if got := get(t, control, "", "m1", &clusterv1alpha1.Cluster{}).Spec.Taints; len(got) != 1 || got[0] != taint {
		t.Errorf("taints %v", got)
	}
	err := UpdateTaints(t.Context(), control, "nope", false, add)
	if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `clusters.cluster.karmada.io "nope" not found`) {
		t.Errorf("got %v", err)
	}
}
