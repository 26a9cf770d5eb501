package phases

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

func TestReplacedAPIServer(t *testing.T) {
	wanted, err := components.APIServerDeployment(&components.Config{
		Namespace: "karmada-system", Workloads: map[string]components.Workload{components.APIServer: {Replicas: 2}},
	})
	if err != nil {
		t.Fatal(err)
	}
	wanted.Generation = 3
	done := appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}
	for name, tc := range map[string]struct {
		change func(*appsv1.Deployment)
		ok     bool
	}{
		"all pods are new":               {func(*appsv1.Deployment) {}, true},
		"not configured":                 {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Command = nil }, false},
		"the change was not observed":    {func(d *appsv1.Deployment) { d.Status.ObservedGeneration = 2 }, false},
		"an old pod still answers":       {func(d *appsv1.Deployment) { d.Status.Replicas = 3 }, false},
		"a new pod is not available yet": {func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 1 }, false},
		"a pod is missing":               {func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := wanted.DeepCopy()
			d.Status = done
			tc.change(d)
			if err := replacedAPIServer(d); (err == nil) != tc.ok {
				t.Errorf("replaced: %v", err)
			}
		})
	}
}
