package clustercondition

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestDescribe(t *testing.T) {
	if got := Describe(nil); got != "cluster now does not have taints" {
		t.Error(got)
	}
	got := Describe([]corev1.Taint{{Key: "a", Value: "b", Effect: "NoSchedule"}, {Key: "c", Effect: "NoExecute"}})
	if got != "cluster now has taints([{Key:a,Value:b,Effect:NoSchedule},{Key:c,Effect:NoExecute}])" {
		t.Error(got)
	}
}
