package pb

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/karmada-toolkit/karmada/internal/build"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

func nodeClaim() *workv1alpha2.NodeClaim {
	return &workv1alpha2.NodeClaim{
		NodeSelector: map[string]string{"a": "b", "c": "d"},
		HardNodeAffinity: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: "In", Values: []string{"1"}}},
		}}},
		Tolerations: []corev1.Toleration{{Key: "k", Operator: "Exists"}, {Key: "l", Effect: "NoSchedule"}},
	}
}

func resources() corev1.ResourceList {
	return corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("1Gi")}
}

func apiComponents() []workv1alpha2.Component {
	return []workv1alpha2.Component{
		{Name: "head", Replicas: 1, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{
			NodeClaim: nodeClaim(), ResourceRequest: resources(), PriorityClassName: "high",
		}},
		{Name: "worker", Replicas: 3},
	}
}

func apiRequirements() *workv1alpha2.ReplicaRequirements {
	return &workv1alpha2.ReplicaRequirements{NodeClaim: nodeClaim(), ResourceRequest: resources(), Namespace: "ns", PriorityClassName: "high"}
}

// recorded are messages and their bytes, written by an encoder that is independent of the generated one.
func recorded(tb testing.TB) map[string]proto.Message {
	tb.Helper()
	components, err := FromComponents(apiComponents())
	if err != nil {
		tb.Fatal(err)
	}
	requirements, err := FromReplicaRequirements(apiRequirements())
	if err != nil {
		tb.Fatal(err)
	}
	assumed := []*AssumedWorkload{{Namespace: "ns", Components: components}, {}}
	return map[string]proto.Message{
		"0a026d3112750a4912060a016112016212060a016312016422110a0f0a0d0a047a6f6e651202496e1a01312a0f0a016b12064578697374731a0022002a130a016c12001a00220a4e6f5363686564756c651a026e732204686967682a0d0a0363707512060a043130306d2a0f0a066d656d6f727912050a033147691a8d010a026e73127b0a046865616412710a4912060a016112016212060a016312016422110a0f0a0d0a047a6f6e651202496e1a01312a0f0a016b12064578697374731a0022002a130a016c12001a00220a4e6f5363686564756c651a0468696768220d0a0363707512060a043130306d220f0a066d656d6f727912050a033147691801120a0a06776f726b657218031a00": &MaxAvailableReplicasRequest{Cluster: "m1", AssumedWorkloads: assumed, ReplicaRequirements: requirements},
		"1200": &MaxAvailableReplicasRequest{ReplicaRequirements: &ReplicaRequirements{}},
		"0a026d31127b0a046865616412710a4912060a016112016212060a016312016422110a0f0a0d0a047a6f6e651202496e1a01312a0f0a016b12064578697374731a0022002a130a016c12001a00220a4e6f5363686564756c651a0468696768220d0a0363707512060a043130306d220f0a066d656d6f727912050a033147691801120a0a06776f726b657218031a026e73228d010a026e73127b0a046865616412710a4912060a016112016212060a016312016422110a0f0a0d0a047a6f6e651202496e1a01312a0f0a016b12064578697374731a0022002a130a016c12001a00220a4e6f5363686564756c651a0468696768220d0a0363707512060a043130306d220f0a066d656d6f727912050a033147691801120a0a06776f726b657218032200": &MaxAvailableComponentSetsRequest{Cluster: "m1", Components: components, Namespace: "ns", AssumedWorkloads: assumed},
		"0a026d31121e0a07617070732f7631120a4465706c6f796d656e741a026e7322037765621880b09dc2df01": &UnschedulableReplicasRequest{
			Cluster: "m1", UnschedulableThreshold: 60e9,
			Resource: &ObjectReference{ApiVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "web"},
		},
		"0807":                   &MaxAvailableReplicasResponse{MaxReplicas: 7},
		"08ffffffffffffffffff01": &MaxAvailableReplicasResponse{MaxReplicas: -1},
		"0802":                   &MaxAvailableComponentSetsResponse{MaxSets: 2},
		"0801":                   &UnschedulableReplicasResponse{UnschedulableReplicas: 1},
	}
}

func TestMessages_AreThoseOfTheRecordedBytes(t *testing.T) {
	for text, want := range recorded(t) {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(data); got != text {
			t.Errorf("%T is encoded as\n%s, want\n%s", want, got, text)
		}
		recorded, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		got := want.ProtoReflect().New().Interface()
		if err := proto.Unmarshal(recorded, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("%T: %s", want, diff)
		}
	}
}

func TestConvert_ThereAndBack(t *testing.T) {
	messages, err := FromComponents(apiComponents())
	if err != nil {
		t.Fatal(err)
	}
	components, err := ToComponents(messages)
	if diff := cmp.Diff(apiComponents(), components); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for _, want := range []*workv1alpha2.ReplicaRequirements{apiRequirements(), {}, nil} {
		message, err := FromReplicaRequirements(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ToReplicaRequirements(message)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Error(err, diff)
		}
	}
}

// The parser of Kubernetes takes minutes for some short texts.
func TestToReplicaRequirements_RefusesCostlyQuantities(t *testing.T) {
	for _, text := range []string{"1e-300000000", "1e300000000", strings.Repeat("1", 100_000), "x"} {
		data := append([]byte{0x0a}, protowire.AppendBytes(nil, []byte(text))...)
		_, err := ToReplicaRequirements(&ReplicaRequirements{ResourceRequestBytes: map[string][]byte{"cpu": data}})
		if err == nil || !strings.Contains(err.Error(), "decoding the quantity of cpu") {
			t.Errorf("got %v", err)
		}
	}
}

// FuzzConvert checks that no message makes a conversion panic, and that what can be read can be written and read again.
func FuzzConvert(f *testing.F) {
	for text := range recorded(f) {
		data, err := hex.DecodeString(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte{0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		build.Bounded(t, time.Minute, 64<<20+uint64(65536*len(data)), func() {
			var m MaxAvailableReplicasRequest
			if proto.Unmarshal(data, &m) != nil {
				return
			}
			requirements, err := ToReplicaRequirements(m.ReplicaRequirements)
			if err != nil {
				return
			}
			again, err := FromReplicaRequirements(requirements)
			if err != nil {
				return // a quantity that Kubernetes reads and does not write
			}
			if _, err := ToReplicaRequirements(again); err != nil {
				t.Errorf("%x can be read, but not after it was written: %v", data, err)
			}
		})
	})
}
