package delivery

import (
	"testing"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// The Service of the API server, its Endpoints and its slice are those of each cluster.
func TestCheck_TheAPIServerOfACluster(t *testing.T) {
	for _, tc := range []struct {
		apiVersion, kind, namespace, name string
		refused                           bool
	}{
		{"v1", "Service", "default", "kubernetes", true},
		{"v1", "Endpoints", "default", "kubernetes", true},
		{"discovery.k8s.io/v1", "EndpointSlice", "default", "kubernetes", true},
		{"v1", "Service", "default", "web", false},
		{"v1", "Service", "team", "kubernetes", false},
		{"v1", "ConfigMap", "default", "kubernetes", false},
		{"serving.knative.dev/v1", "Service", "default", "kubernetes", false},
	} {
		ref := &workv1alpha2.ObjectReference{APIVersion: tc.apiVersion, Kind: tc.kind, Namespace: tc.namespace, Name: tc.name}
		if got := Check(tc.namespace, ref); (got != nil && got.Reason == ReasonReservedObject) != tc.refused {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		name, binding, apiVersion, kind, namespace, want string
	}{
		{"its own namespace", "team", "v1", "Secret", "team", ""},
		{"another namespace", "team", "v1", "Secret", "other", ReasonForeignNamespace},
		{"the credentials of members", "team", "v1", "Secret", "karmada-cluster", ReasonForeignNamespace},
		{"the credentials of members, from among them", "karmada-cluster", "v1", "Secret", "karmada-cluster", ReasonReservedNamespace},
		{"the system's namespace", "karmada-system", "v1", "ConfigMap", "karmada-system", ReasonReservedNamespace},
		{"an execution namespace", "karmada-es-m1", "v1", "ConfigMap", "karmada-es-m1", ReasonReservedNamespace},
		{"a policy", "team", "policy.karmada.io/v1alpha1", "PropagationPolicy", "team", ReasonReservedAPI},
		{"a policy in a version that does not exist", "team", "policy.karmada.io/v9", "PropagationPolicy", "team", ReasonReservedAPI},
		{"a binding", "team", "work.karmada.io/v1alpha2", "ResourceBinding", "team", ReasonReservedAPI},
		{"an event", "team", "v1", "Event", "team", ReasonReservedAPI},
		{"a lease", "team", "coordination.k8s.io/v1", "Lease", "team", ReasonReservedAPI},
		{"a cluster", "team", "cluster.karmada.io/v1alpha1", "Cluster", "", ReasonReservedAPI},
		{"no namespace is for the caller", "team", "v1", "Secret", "", ""},
		{"nothing at all is for the caller", "team", "", "", "", ""},
		{"cluster-scoped", "", "v1", "Namespace", "", ""},
		{"a namespaced object of a cluster-scoped binding", "", "v1", "Secret", "team", ReasonWrongScope},
		{"a reserved API of a cluster-scoped binding", "", "cluster.karmada.io/v1alpha1", "Cluster", "", ReasonReservedAPI},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ref := &workv1alpha2.ObjectReference{APIVersion: tc.apiVersion, Kind: tc.kind, Namespace: tc.namespace, Name: "a"}
			got := ""
			if refusal := Check(tc.binding, ref); refusal != nil {
				got = refusal.Reason
				if refusal.Message == "" {
					t.Error("no message")
				}
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
