package agentrbac

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/kube"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

func TestExcess(t *testing.T) {
	created := func(kind string, from, count int) []*certificatesv1.CertificateSigningRequest {
		var out []*certificatesv1.CertificateSigningRequest
		for i := from; i < from+count; i++ {
			csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s%d", kind, i), CreationTimestamp: metav1.NewTime(time.Unix(int64(i), 0)),
			}}
			switch kind {
			case "signed":
				csr.Status.Certificate = []byte("certificate")
			case "denied":
				csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied}}
			case "approved":
				csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}
			}
			out = append(out, csr)
		}
		return out
	}
	for name, tc := range map[string]struct {
		have []*certificatesv1.CertificateSigningRequest
		want string
	}{
		"none":                                        {nil, ""},
		"five of each":                                {slices.Concat(created("open", 0, 5), created("signed", 5, 5)), ""},
		"the newest pending ones are deleted":         {created("open", 0, 7), "open5 open6"},
		"approved ones are pending":                   {slices.Concat(created("approved", 0, 3), created("open", 3, 3)), "open5"},
		"the oldest completed ones are deleted":       {slices.Concat(created("signed", 3, 4), created("denied", 0, 3)), "denied0 denied1"},
		"in any order":                                {slices.Concat(created("open", 4, 3), created("open", 0, 4)), "open5 open6"},
		"completed ones do not displace pending ones": {slices.Concat(created("denied", 0, 9), created("open", 9, 1)), "denied0 denied1 denied2 denied3"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, csr := range excess(tc.have) {
				got = append(got, csr.Name)
			}
			if text := strings.Join(got, " "); text != tc.want {
				t.Errorf("got %q, want %q", text, tc.want)
			}
		})
	}
}

func TestGranter_ForgetsTheRequestsOfAClusterThatLeaves(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request := func(name, user, subject string, issued bool) client.Object {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: subject}}, key)
		if err != nil {
			t.Fatal(err)
		}
		csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: certificatesv1.CertificateSigningRequestSpec{
			Username: user, SignerName: certificatesv1.KubeAPIServerClientSignerName, Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		}}
		if issued {
			csr.Status.Certificate = []byte("certificate")
		}
		return csr
	}
	c := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(
		request("of-the-agent", names.AgentUser("m1"), names.AgentUser("m1"), true), request("of-register", "system:bootstrap:abcdef", names.AgentUser("m1"), true),
		request("pending", "system:bootstrap:abcdef", names.AgentUser("m1"), false), request("of-another-agent", names.AgentUser("m2"), names.AgentUser("m2"), true),
		request("of-a-user", "jane", "jane", true),
	).Build()
	if err := (&Granter{client: c}).forget(t.Context(), "m1"); err != nil {
		t.Fatal(err)
	}
	list := &certificatesv1.CertificateSigningRequestList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var left []string
	for i := range list.Items {
		left = append(left, list.Items[i].Name)
	}
	if want := []string{"of-a-user", "of-another-agent", "pending"}; !slices.Equal(left, want) {
		t.Errorf("left %v, want %v", left, want)
	}
}

func TestLimitSlices(t *testing.T) {
	slice := func(i, size int) workv1alpha1.Work {
		w := workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: "karmada-es-m1", Name: fmt.Sprintf("w%04d", i), CreationTimestamp: metav1.NewTime(time.Unix(int64(i), 0)), Finalizers: []string{"karmada.io/endpointslice-controller"},
		}}
		w.Spec.SuspendDispatching = new(true)
		w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"kind":"EndpointSlice","x":"` + strings.Repeat("x", size) + `"}`)}}}
		return w
	}
	var few, many, large []workv1alpha1.Work
	for i := range maxCollected + 3 {
		if i < maxCollected {
			few = append(few, slice(i, 10))
		}
		many = append(many, slice(i, 10))
		large = append(large, slice(i, 200<<10))
	}
	dispatched := slice(9999, 10)
	dispatched.Spec.SuspendDispatching = nil
	many = append([]workv1alpha1.Work{dispatched}, many...)
	if got := excessSlices(few); len(got) != 0 {
		t.Errorf("%d of %d are too many", len(got), len(few))
	}
	if got := excessSlices(large); len(got) < 600 || got[0].Name != fmt.Sprintf("w%04d", len(large)-len(got)) {
		t.Errorf("%d of %d large ones are too many", len(got), len(large))
	}
	for mode, want := range map[clusterv1alpha1.ClusterSyncMode]int{clusterv1alpha1.Pull: maxCollected + 1, clusterv1alpha1.Push: len(many)} {
		objects := []client.Object{&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode}}}
		for i := range many {
			objects = append(objects, many[i].DeepCopy())
		}
		c := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(objects...).Build()
		for range 2 { // the second time there is nothing to do
			if _, err := (&Granter{client: c}).limitSlices(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "m1"}}); err != nil {
				t.Fatal(err)
			}
			var left workv1alpha1.WorkList
			if err := c.List(t.Context(), &left); err != nil || len(left.Items) != want {
				t.Errorf("%s: %d works are left, want %d: %v", mode, len(left.Items), want, err)
			}
		}
	}
}
