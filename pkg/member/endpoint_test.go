package member

import (
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

func TestAddresses_Endpoint(t *testing.T) {
	const here, there, node = "https://127.0.0.1:36443", "https://192.0.2.7:32443", "https://172.18.0.3:6443"
	tests := []struct {
		name      string
		a         Addresses
		want      string
		uncertain bool
		err       string
	}{
		{"a cluster with an address of its own", Addresses{Member: there, ControlPlane: here}, "", false, ""},
		{"elsewhere, as the control plane", Addresses{Member: there, ControlPlane: there}, "", false, ""},
		{"both on this machine", Addresses{Member: here, ControlPlane: "https://localhost:5443"}, "", true, ""},
		{"this machine, the control plane elsewhere", Addresses{Name: "m1", Member: here, ControlPlane: there}, "", false, "--cluster-api-endpoint https://"},
		{"every address of this machine", Addresses{Member: "https://0.0.0.0:6443", ControlPlane: there}, "", false, "which means this machine"},
		{"the IPv6 address of this machine", Addresses{Member: "https://[::1]:6443", ControlPlane: there}, "", false, "which means this machine"},
		{"a name of this machine", Addresses{Member: "https://kind.localhost:6443", ControlPlane: there}, "", false, "which means this machine"},
		{"the node of a kind cluster", Addresses{Member: here, ControlPlane: there, Node: node}, node, false, ""},
		{"the node of a kind cluster, the control plane on this machine", Addresses{Member: here, ControlPlane: here, Node: node}, node, true, ""},
		{"what the user says comes first", Addresses{Member: here, ControlPlane: there, Node: node, Given: here}, here, false, ""},
		{"no TLS", Addresses{Member: here, ControlPlane: there, Given: "http://192.0.2.1:8080"}, "", false, "use a URL such as https://"},
		{"no URL", Addresses{Member: there, ControlPlane: there, Given: "192.0.2.1:6443"}, "", false, "use a URL such as https://"},
		{"a password", Addresses{Member: there, ControlPlane: there, Given: "https://a:b@192.0.2.1"}, "", false, "use a URL such as https://"},
		{"through a proxy", Addresses{Member: here, ControlPlane: there, Proxied: true}, "", false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, uncertain, err := tt.a.Endpoint()
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil || got != tt.want || uncertain != tt.uncertain {
				t.Errorf("got %q, %t, %v; want %q, %t", got, uncertain, err, tt.want, tt.uncertain)
			}
		})
	}
}

func TestConfirm(t *testing.T) {
	for _, tt := range []struct {
		name, reason string
		status       metav1.ConditionStatus
		back         bool
	}{
		{"not reached", reasonNotReachable, metav1.ConditionFalse, true},
		{"ready", "ClusterReady", metav1.ConditionTrue, false},
		{"reached but ill", "ClusterNotReady", metav1.ConditionFalse, false},
		{"no condition yet", "", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				control, member := newServer(t), memberServer(t, "id-1")
				d, r := deps(control, member), joinRequest("m1")
				cluster, err := Join(t.Context(), d, r)
				if err != nil {
					t.Fatal(err)
				}
				if tt.reason != "" {
					cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: tt.status, Reason: tt.reason, Message: "connection refused"}}
					if err := control.Update(t.Context(), cluster); err != nil {
						t.Fatal(err)
					}
				}
				err = Confirm(t.Context(), d, r, cluster)
				if !tt.back {
					if err != nil {
						t.Error(err)
					}
					get(t, control, "", "m1", &clusterv1alpha1.Cluster{})
					return
				}
				if err == nil || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), "--cluster-api-endpoint https://") {
					t.Errorf("got %v", err)
				}
				left := &clusterv1alpha1.ClusterList{}
				if err := control.List(t.Context(), left); err != nil || len(left.Items) != 0 {
					t.Errorf("the cluster is still there: %v, %v", left.Items, err)
				}
				for _, w := range member.writes {
					if verb, _, _ := strings.Cut(w, " "); verb == "delete" {
						return
					}
				}
				t.Errorf("nothing was removed from the member: %v", member.writes)
			})
		})
	}
}
