package phases

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// The phases that only install a workload in the host cluster.
const (
	KubeControllerManager = "kube-controller-manager"
	Scheduler             = "scheduler"
	ControllerManager     = "controller-manager"
)

// afterEtcd are the needs of the workloads that wait for the API server without harm. They do not start before etcd is
// ready only to leave the processors to what all others wait for.
func afterEtcd() []string { return []string{Etcd} }

func kubeControllerManager() Phase {
	return Phase{
		Name: KubeControllerManager, Doc: "Install Kubernetes' controllers", Needs: afterEtcd(),
		host: func(in *Inputs) ([]client.Object, error) {
			return []client.Object{components.KubeControllerManagerService(in.Config), components.KubeControllerManagerDeployment(in.Config)}, nil
		},
		run: deploy(components.KubeControllerManager),
	}
}

func scheduler() Phase {
	return Phase{
		Name: Scheduler, Doc: "Install the scheduler", Needs: afterEtcd(),
		host: func(in *Inputs) ([]client.Object, error) {
			return []client.Object{components.SchedulerDeployment(in.Config)}, nil
		},
		run: deploy(components.Scheduler),
	}
}

func controllerManager() Phase {
	return Phase{
		Name: ControllerManager, Doc: "Install the controllers of the federation", Needs: afterEtcd(),
		host: func(in *Inputs) ([]client.Object, error) {
			return []client.Object{components.ControllerManagerDeployment(in.Config)}, nil
		},
		run: deploy(components.ControllerManager),
	}
}
