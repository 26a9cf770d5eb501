package member

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karmada-toolkit/karmada/internal/kube"
)

func TestAgentSpec_RunsLikeTheComponents(t *testing.T) {
	d := AgentSpec{Cluster: "member1", Namespace: "karmada-system", Image: "agent:v1", Replicas: 1}.deployment()
	got := d.Spec.Template.Spec
	if diff := cmp.Diff(kube.PodSecurity(), got.SecurityContext); diff != "" {
		t.Errorf("pod: %s", diff)
	}
	if diff := cmp.Diff(kube.ContainerSecurity(), got.Containers[0].SecurityContext); diff != "" {
		t.Errorf("container: %s", diff)
	}
	if !got.Containers[0].VolumeMounts[0].ReadOnly {
		t.Error("the identity of the agent can be written in the pod")
	}
}
