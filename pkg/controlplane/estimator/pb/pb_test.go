package pb

import (
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

func requests() []Message {
	claim := &workv1alpha2.NodeClaim{
		NodeSelector: map[string]string{"a": "b", "c": ""},
		HardNodeAffinity: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: "In", Values: []string{"1"}}},
		}}},
		Tolerations: []corev1.Toleration{{Key: "k", Operator: "Exists"}, {Key: "l", Effect: "NoSchedule"}},
	}
	resources := corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("1Gi")}
	components := []workv1alpha2.Component{
		{Name: "head", Replicas: 1, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{
			NodeClaim: claim, ResourceRequest: resources, PriorityClassName: "high",
		}},
		{Name: "worker", Replicas: 3},
	}
	assumed := []AssumedWorkload{{Namespace: "ns", Components: components}, {}}
	return []Message{
		&MaxAvailableReplicasRequest{Cluster: "m1", Assumed: assumed, Requirements: &workv1alpha2.ReplicaRequirements{
			NodeClaim: claim, ResourceRequest: resources, Namespace: "ns", PriorityClassName: "high",
		}},
		&MaxAvailableReplicasRequest{}, &MaxAvailableReplicasRequest{Requirements: &workv1alpha2.ReplicaRequirements{}},
		&MaxAvailableComponentSetsRequest{Cluster: "m1", Components: components, Namespace: "ns", Assumed: assumed},
		&UnschedulableReplicasRequest{Cluster: "m1", Resource: ObjectReference{"apps/v1", "Deployment", "ns", "web"}, Threshold: 60e9},
		&MaxAvailableReplicasResponse{MaxReplicas: 7}, &MaxAvailableReplicasResponse{MaxReplicas: -1},
		&MaxAvailableComponentSetsResponse{MaxSets: 2}, &UnschedulableReplicasResponse{UnschedulableReplicas: 1},
	}
}

func fresh(m Message) Message {
	switch m.(type) {
	case *MaxAvailableReplicasRequest:
		return &MaxAvailableReplicasRequest{Cluster: "old"}
	case *MaxAvailableComponentSetsRequest:
		return &MaxAvailableComponentSetsRequest{Cluster: "old"}
	case *UnschedulableReplicasRequest:
		return &UnschedulableReplicasRequest{Cluster: "old"}
	case *MaxAvailableReplicasResponse:
		return &MaxAvailableReplicasResponse{MaxReplicas: 99}
	case *MaxAvailableComponentSetsResponse:
		return &MaxAvailableComponentSetsResponse{MaxSets: 99}
	}
	return &UnschedulableReplicasResponse{UnschedulableReplicas: 99}
}

func TestMessages_ThereAndBack(t *testing.T) {
	for _, m := range requests() {
		data, err := Codec{}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		got := fresh(m)
		if err := (Codec{}).Unmarshal(data, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, got); diff != "" {
			t.Errorf("%T: %s", m, diff)
		}
	}
}

// The bytes of a message are those that a generated encoder makes.
func TestMessages_OnTheWire(t *testing.T) {
	for _, tc := range []struct {
		message Message
		want    string
	}{
		{&MaxAvailableReplicasResponse{MaxReplicas: 3}, "0803"},
		{&MaxAvailableReplicasResponse{MaxReplicas: -1}, "08ffffffffffffffffff01"},
		{&MaxAvailableReplicasResponse{}, ""},
		{
			&MaxAvailableReplicasRequest{Cluster: "m1", Requirements: &workv1alpha2.ReplicaRequirements{
				ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("1")},
			}},
			// 1: "m1", 2: {5: {1: "cpu", 2: {1: "1"}}}
			"0a026d31" + "120c" + "2a0a" + "0a03637075" + "1203" + "0a0131",
		},
	} {
		data, err := tc.message.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(data); got != tc.want {
			t.Errorf("%T: %s, want %s", tc.message, got, tc.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, m := range requests() {
		data, err := m.Append(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte{0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, like := range requests() {
			m := fresh(like)
			if m.Parse(data) != nil {
				continue
			}
			again, err := m.Append(nil)
			if err != nil {
				continue // a quantity that Kubernetes reads and does not write
			}
			if err := fresh(like).Parse(again); err != nil {
				t.Errorf("%T: %x is read, and not after it was written as %x: %v", m, data, again, err)
			}
		}
	})
}
