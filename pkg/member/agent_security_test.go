package member

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

func TestAgentSpec_RunsLikeTheComponents(t *testing.T) {
	d := AgentSpec{Cluster: "member1", Namespace: "karmada-system", Image: "agent:v1", Replicas: 1}.deployment()
	c := components.SchedulerDeployment(&components.Config{Workloads: map[string]components.Workload{}})
	got, want := d.Spec.Template.Spec, c.Spec.Template.Spec
	if diff := cmp.Diff(want.SecurityContext, got.SecurityContext); diff != "" {
		t.Errorf("pod: %s", diff)
	}
	if diff := cmp.Diff(want.Containers[0].SecurityContext, got.Containers[0].SecurityContext); diff != "" {
		t.Errorf("container: %s", diff)
	}
	if !got.Containers[0].VolumeMounts[0].ReadOnly {
		t.Error("the identity of the agent can be written in the pod")
	}
}
