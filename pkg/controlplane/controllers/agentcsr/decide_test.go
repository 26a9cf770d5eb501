package agentcsr

import (
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/member"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
	"github.com/karmada-toolkit/karmada/pkg/member/registration/agentcert"
)

// asked is a request with a token by a cluster that knows its id.
func asked(name, id string) facts {
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{agentcert.ProofAnnotation: agentcert.Proof(id, []byte("request"))}},
		Spec:       certificatesv1.CertificateSigningRequestSpec{Username: "system:bootstrap:abcdef", Request: []byte("request")},
	}
	return facts{name: name, csr: csr, token: &corev1.Secret{}}
}

func registered(id string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull, ID: id}}
}

func grave(id, cleaned string) *corev1.ConfigMap {
	return &corev1.ConfigMap{Data: map[string]string{member.TombstoneID: id, member.TombstoneCleaned: cleaned}}
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		name   string
		change func(*facts)
		want   string
	}{
		"a free name":                 {"m1", nil, ""},
		"a name that is none":         {"M1", nil, "InvalidName"},
		"a name that is too long":     {strings.Repeat("a", 49), nil, "InvalidName"},
		"the shared user":             {"rbac-generator", nil, "ReservedName"},
		"a name that shares a Secret": {"m1-impersonator", nil, "ReservedName"},
		"a token that is gone":        {"m1", func(f *facts) { f.token = nil }, "TokenGone"},
		"a token reserved for the name": {"m1", func(f *facts) {
			f.token.Annotations = map[string]string{registration.TokenClusterAnnotation: "m1", registration.TokenRequestAnnotation: "m1-x"}
		}, ""},
		"a token reserved for another name": {"m1", func(f *facts) {
			f.token.Annotations = map[string]string{registration.TokenClusterAnnotation: "m2", registration.TokenRequestAnnotation: "m2-x"}
		}, "TokenUsed"},
		"a token used for the same cluster": {"m1", func(f *facts) {
			f.cluster = registered("id")
			f.cluster.UID = "uid"
			f.token.Annotations = map[string]string{registration.TokenClusterAnnotation: "m1", registration.TokenClusterUIDAnnotation: "uid"}
		}, ""},
		"a token used for the same cluster, by an earlier version": {"m1", func(f *facts) {
			f.cluster = registered("id")
			f.token.Annotations = map[string]string{registration.TokenClusterAnnotation: "m1"}
		}, ""},
		"a token of a cluster that is gone": {"m1", func(f *facts) {
			f.token.Annotations = map[string]string{registration.TokenClusterAnnotation: "m1", registration.TokenClusterUIDAnnotation: "uid"}
		}, "TokenUsed"},
		"a token of a cluster that is gone, by an earlier version": {"m1", func(f *facts) {
			f.token.Annotations = map[string]string{registration.TokenClusterAnnotation: "m1"}
		}, "TokenUsed"},
		"a token of an earlier cluster of the name": {"m1", func(f *facts) {
			f.cluster = registered("id")
			f.cluster.UID = "next"
			f.token.Annotations = map[string]string{registration.TokenClusterAnnotation: "m1", registration.TokenClusterUIDAnnotation: "uid"}
		}, "TokenUsed"},
		"a token used for another name": {"m1", func(f *facts) {
			f.token.Annotations = map[string]string{registration.TokenClusterAnnotation: "m2"}
		}, "TokenUsed"},
		"a reusable token used for another name": {"m1", func(f *facts) {
			f.token.Annotations = map[string]string{registration.TokenClusterAnnotation: "m2", registration.ReusableTokenAnnotation: "true"}
		}, ""},
		"the same cluster, again":                     {"m1", func(f *facts) { f.cluster = registered("id") }, ""},
		"a member, under another name":                {"m1", func(f *facts) { f.member = registered("id") }, "MemberAlready"},
		"a member that is pushed to":                  {"m1", func(f *facts) { f.member = registered("id"); f.member.Spec.SyncMode = clusterv1alpha1.Push }, "MemberAlready"},
		"a member on its way out, under another name": {"m1", func(f *facts) { f.member = registered("id"); f.member.DeletionTimestamp = &metav1.Time{} }, "BeingRemoved"},
		"another cluster's name":                      {"m1", func(f *facts) { f.cluster = registered("other") }, "NameTaken"},
		"another cluster's proof":                     {"m1", func(f *facts) { f.cluster = registered("id"); f.csr.Spec.Request = []byte("copied") }, "NameTaken"},
		"no proof":                                    {"m1", func(f *facts) { f.cluster = registered("id"); f.csr.Annotations = nil }, "NameTaken"},
		"no proof of no id":                           {"m1", func(f *facts) { f.cluster = registered(""); f.csr.Annotations = nil }, "NameTaken"},
		"an attempt that broke off": {"m1", func(f *facts) {
			f.cluster = registered("")
			f.cluster.Annotations = map[string]string{agentcert.TokenAnnotation: "abcdef"}
		}, ""},
		"an attempt of another": {"m1", func(f *facts) {
			f.cluster = registered("")
			f.cluster.Annotations = map[string]string{agentcert.TokenAnnotation: "fedcba"}
		}, "NameTaken"},
		"a cluster that is pushed to": {"m1", func(f *facts) { f.cluster = registered("id"); f.cluster.Spec.SyncMode = clusterv1alpha1.Push }, "NameTaken"},
		"a cluster on its way out":    {"m1", func(f *facts) { f.cluster = registered("id"); f.cluster.DeletionTimestamp = &metav1.Time{} }, "BeingRemoved"},
		"an administrator, for an existing cluster": {"m1", func(f *facts) {
			f.cluster = registered("other")
			f.csr.Spec.Username, f.token = "system:admin", nil
		}, ""},
		"abandoned, the same cluster":        {"m1", func(f *facts) { f.tombstone = grave("id", "") }, ""},
		"abandoned, another cluster":         {"m1", func(f *facts) { f.tombstone = grave("other", "") }, "NameAbandoned"},
		"abandoned and cleaned, another":     {"m1", func(f *facts) { f.tombstone = grave("other", "2026-05-01T12:00:00Z") }, ""},
		"a namespace of Kubernetes":          {"m1", inNamespace("kube-system", true), "ReservedNamespace"},
		"the namespace of the control plane": {"m1", inNamespace("karmada-system", true), "ReservedNamespace"},
		"another's execution namespace":      {"m1", inNamespace("karmada-es-m2", true), "ReservedNamespace"},
		"a namespace of a user":              {"m1", inNamespace("shop", false), "ForeignNamespace"},
		"a namespace for credentials":        {"m1", inNamespace("credentials", true), ""},
		"renewal":                            {"m1", func(f *facts) { f.csr.Spec.Username = "system:karmada:agent:m1"; f.cluster = registered("id") }, ""},
		"renewal of a cluster that is gone":  {"m1", func(f *facts) { f.csr.Spec.Username = "system:karmada:agent:m1" }, "ClusterGone"},
		"renewal of a cluster that is pushed to": {"m1", func(f *facts) {
			f.csr.Spec.Username, f.cluster = "system:karmada:agent:m1", registered("id")
			f.cluster.Spec.SyncMode = clusterv1alpha1.Push
		}, "PushMode"},
	} {
		t.Run(name, func(t *testing.T) {
			f := asked(tc.name, "id")
			if tc.change != nil {
				tc.change(&f)
			}
			if got := decide(f); got.reason != tc.want || (got.message == "") != (tc.want == "") {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

func inNamespace(name string, ours bool) func(*facts) {
	return func(f *facts) {
		f.csr.Annotations[agentcert.NamespaceAnnotation] = name
		f.namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if ours {
			f.namespace.Labels = names.SystemLabels()
		}
	}
}

func TestDecide_NoMessageContainsTheIDOfAnotherCluster(t *testing.T) {
	f := asked("m1", "id")
	f.cluster = registered("secret-id")
	if v := decide(f); v.reason == "" || strings.Contains(v.message, "secret-id") {
		t.Errorf("got %+v", v)
	}
}
