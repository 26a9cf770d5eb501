package member

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

func presentRequest(id string) PresentRequest {
	return PresentRequest{
		Name: "m3", ID: id, Namespace: "karmada-cluster", APIEndpoint: "https://10.0.0.3:6443", Region: "r",
		Config:      &rest.Config{Host: "https://127.0.0.1:6443", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("CA")}},
		Credentials: true, Impersonator: true,
	}
}

// enrolled is the Cluster as registration leaves it.
func enrolled(id string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m3", UID: "uid of m3"},
		Spec: clusterv1alpha1.ClusterSpec{
			ID: id, SyncMode: clusterv1alpha1.Pull, Provider: "kept",
			Taints: []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}},
		},
	}
}

func TestPresent_WritesTheDescriptionAndKeepsOtherFields(t *testing.T) {
	plane, m := newServer(t, enrolled("id-3")), memberServer(t, "id-3")
	got, err := Present(t.Context(), Deps{ControlPlane: plane, Member: m}, presentRequest("id-3"))
	if err != nil {
		t.Fatal(err)
	}
	want := enrolled("id-3").Spec
	want.APIEndpoint, want.Region = "https://10.0.0.3:6443", "r"
	want.SecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "m3"}
	want.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "m3-impersonator"}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	secret := &corev1.Secret{}
	if err := plane.Get(t.Context(), client.ObjectKey{Namespace: "karmada-cluster", Name: "m3"}, secret); err != nil {
		t.Fatal(err)
	}
	if string(secret.Data["token"]) != "token of karmada-m3" || !metav1.IsControlledBy(secret, got) {
		t.Errorf("the Secret holds %q and is owned by %v", secret.Data, secret.OwnerReferences)
	}

	// A restart finds everything as it should be.
	plane.writes, m.writes = nil, nil
	if _, err := Present(t.Context(), Deps{ControlPlane: plane, Member: m}, presentRequest("id-3")); err != nil {
		t.Fatal(err)
	}
	if len(plane.writes)+len(m.writes) != 0 {
		t.Errorf("a second time it writes %v and %v", plane.writes, m.writes)
	}
}

func TestPresent_NameOfAnotherCluster(t *testing.T) {
	plane, m := newServer(t, enrolled("id-other")), memberServer(t, "id-3")
	_, err := Present(t.Context(), Deps{ControlPlane: plane, Member: m}, presentRequest("id-3"))
	if !errors.Is(err, ErrTaken) || !strings.Contains(err.Error(), "id-other") {
		t.Errorf("got %v", err)
	}
	if len(plane.writes)+len(m.writes) != 0 {
		t.Errorf("the other cluster is touched: %v, %v", plane.writes, m.writes)
	}
}

func TestPresent_NothingIsReportedThatIsNotToBe(t *testing.T) {
	plane, m := newServer(t, enrolled("id-3")), memberServer(t, "id-3")
	r := presentRequest("id-3")
	r.Credentials, r.Impersonator = false, false
	got, err := Present(t.Context(), Deps{ControlPlane: plane, Member: m}, r)
	if err != nil {
		t.Fatal(err)
	}
	if got.Spec.SecretRef != nil || got.Spec.ImpersonatorSecretRef != nil || len(m.writes) != 0 {
		t.Errorf("refers to %v and %v, wrote %v", got.Spec.SecretRef, got.Spec.ImpersonatorSecretRef, m.writes)
	}
}

func TestPresent_SecretWithADeadTokenIsReplaced(t *testing.T) {
	stale := opaque("karmada-cluster", "m3", map[string][]byte{"token": []byte("dead"), "caBundle": []byte("CA")})
	plane, m := newServer(t, enrolled("id-3"), stale), memberServer(t, "id-3")
	if _, err := Present(t.Context(), Deps{ControlPlane: plane, Member: m}, presentRequest("id-3")); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(plane.writes, "patch Secret karmada-cluster/m3") {
		t.Errorf("wrote %v", plane.writes)
	}
}

func TestPresent_ForbiddenCreateIsReported(t *testing.T) {
	plane, m := newServer(t), memberServer(t, "id-3")
	plane.refuse = func(verb string, obj client.Object) error {
		if _, ok := obj.(*clusterv1alpha1.Cluster); ok && verb == "create" {
			return apierrors.NewForbidden(clusters, obj.GetName(), errors.New("use register"))
		}
		return nil
	}
	_, err := Present(t.Context(), Deps{ControlPlane: plane, Member: m}, presentRequest("id-3"))
	if !apierrors.IsForbidden(err) || errors.Is(err, ErrTaken) {
		t.Errorf("got %v", err)
	}
}

func TestPresent_FixedFieldsStayAndAreReported(t *testing.T) {
	registered := enrolled("id-3")
	registered.Spec.Region, registered.Spec.APIEndpoint = "there", "https://10.0.0.9:6443"
	plane, m := newServer(t, registered), memberServer(t, "id-3")
	plane.refuse = func(verb string, obj client.Object) error {
		cluster, ok := obj.(*clusterv1alpha1.Cluster)
		if ok && verb == "update" && (cluster.Spec.Region != "there" || cluster.Spec.APIEndpoint != "https://10.0.0.9:6443") {
			return apierrors.NewForbidden(clusters, obj.GetName(), errors.New("an agent may not change that"))
		}
		return nil
	}
	var said []string
	got, err := Present(t.Context(), Deps{ControlPlane: plane, Member: m, Report: func(line string) { said = append(said, line) }}, presentRequest("id-3"))
	if err != nil {
		t.Fatal(err)
	}
	if got.Spec.Region != "there" || got.Spec.APIEndpoint != "https://10.0.0.9:6443" || got.Spec.SecretRef == nil {
		t.Errorf("got %+v", got.Spec)
	}
	want := `ignored, for cluster "m3" is registered otherwise and only an administrator of the control plane changes it: spec.region "r" instead of "there", spec.apiEndpoint "https://10.0.0.3:6443" instead of "https://10.0.0.9:6443"`
	if !slices.Contains(said, want) {
		t.Errorf("reported %q", said)
	}
}

func TestPresent_RefusedAddressIsLeftOutAndReported(t *testing.T) {
	plane, m := newServer(t, enrolled("id-3")), memberServer(t, "id-3")
	plane.refuse = func(verb string, obj client.Object) error {
		cluster, ok := obj.(*clusterv1alpha1.Cluster)
		if ok && verb == "update" && cluster.Spec.APIEndpoint == "https://127.0.0.1:6443" {
			return apierrors.NewForbidden(clusters, obj.GetName(), errors.New("a loopback address"))
		}
		return nil
	}
	var reasons []error
	r := presentRequest("id-3")
	r.APIEndpoint, r.Provider, r.Region = "https://127.0.0.1:6443", "kept", ""
	r.Refused = func(reason error) { reasons = append(reasons, reason) }
	got, err := Present(t.Context(), Deps{ControlPlane: plane, Member: m}, r)
	if err != nil {
		t.Fatal(err)
	}
	if got.Spec.APIEndpoint != "" || got.Spec.SecretRef == nil || got.Spec.ImpersonatorSecretRef == nil {
		t.Errorf("got %+v", got.Spec)
	}
	if len(reasons) != 1 || !strings.Contains(reasons[0].Error(), "a loopback address") {
		t.Errorf("reported %v", reasons)
	}

	// An administrator sets another address: the agent keeps it, and reports nothing.
	got.Spec.APIEndpoint = "https://10.0.0.3:6443"
	if err := plane.Client.Update(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	if got, err = Present(t.Context(), Deps{ControlPlane: plane, Member: m}, r); err != nil || got.Spec.APIEndpoint != "https://10.0.0.3:6443" || len(reasons) != 1 {
		t.Errorf("got %+v, %v, reported %v", got.Spec, err, reasons)
	}
}

func TestOffer(t *testing.T) {
	const own, other = "https://10.0.0.3:6443", "https://10.0.0.9:6443"
	for name, tt := range map[string]struct {
		has, want string
		refuses   bool
	}{
		"a lost address":    {want: own},
		"a corrected one":   {has: other, want: other},
		"a refused address": {refuses: true},
	} {
		t.Run(name, func(t *testing.T) {
			registered := enrolled("id-3")
			registered.Spec.APIEndpoint = tt.has
			plane := newServer(t, registered)
			plane.refuse = func(string, client.Object) error {
				if !tt.refuses {
					return nil
				}
				return apierrors.NewForbidden(clusters, "m3", errors.New("a loopback address"))
			}
			refusals := 0
			r := presentRequest("id-3")
			r.Refused = func(error) { refusals++ }
			if err := Offer(t.Context(), Deps{ControlPlane: plane, Report: func(string) {}}, r); err != nil {
				t.Fatal(err)
			}
			got := &clusterv1alpha1.Cluster{}
			if err := plane.Get(t.Context(), client.ObjectKey{Name: "m3"}, got); err != nil {
				t.Fatal(err)
			}
			want := enrolled("id-3").Spec
			want.APIEndpoint = tt.want
			if diff := cmp.Diff(want, got.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			if reported := refusals > 0; reported != tt.refuses {
				t.Errorf("a refusal is reported: %t", reported)
			}
		})
	}
}
