package local

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/karmada-toolkit/karmada/internal/kubelite/ready"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// statusLimit bounds the question to the control plane.
const statusLimit = 3 * time.Second

// ProcessStatus is the state of one process or kind cluster of a federation.
type ProcessStatus struct {
	// Name of the process or cluster.
	Name string
	// State is running, stopped or missing.
	State string
	// PID is 0 when it does not run, and for clusters that are no processes.
	PID int
	// Since is when it was started.
	Since time.Time
	// Server is the URL of a cluster's API server, empty while it is not ready.
	Server string
	// Ready is the Ready condition of a member in the control plane; empty for
	// other processes and when the control plane does not answer.
	Ready string
	// Log is the path of its log, empty when it has none.
	Log string
}

// Status returns the state of the parts of a federation. The error says why the
// members' readiness is unknown; the parts are returned all the same.
func Status(ctx context.Context, d Deps, root, name string) ([]ProcessStatus, error) {
	f, err := Load(root, name)
	if err != nil {
		return nil, err
	}
	if f.Kind != nil {
		return f.statusKind(ctx, d)
	}
	out := make([]ProcessStatus, 0, len(f.Members)+2)
	alive := false
	for _, name := range f.processNames() {
		s := ProcessStatus{Name: name, State: "stopped", Log: f.log(name)}
		if r, ok := f.process(name).running(); ok {
			s.State, s.PID, s.Since = "running", r.PID, r.Time
			if info, err := ready.Read(f.dataDir(name)); err == nil && info.PID == r.PID {
				s.Server = info.Server
				alive = alive || name == controlPlane
			}
		}
		out = append(out, s)
	}
	if !alive {
		return out, nil
	}
	info, err := ready.Read(f.dataDir(controlPlane))
	if err != nil {
		return out, fmt.Errorf("looking for the control plane: %w", err)
	}
	conditions, err := readiness(ctx, info.Kubeconfig)
	for i := range out {
		out[i].Ready = conditions[out[i].Name]
	}
	return out, err
}

// readiness asks the control plane for the Ready conditions of the members.
func readiness(ctx context.Context, kubeconfig string) (map[string]string, error) {
	_, c, err := connect(kubeconfig)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, statusLimit)
	defer cancel()
	clusters := &clusterv1alpha1.ClusterList{}
	if err := c.List(ctx, clusters); err != nil {
		return nil, fmt.Errorf("asking the control plane for its members: %w", err)
	}
	out := map[string]string{}
	for i := range clusters.Items {
		cluster := &clusters.Items[i]
		out[cluster.Name] = "Unknown"
		if c := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady); c != nil {
			out[cluster.Name] = string(c.Status)
		}
	}
	return out, nil
}

// Running says how many of the federation's processes or clusters run, and how many
// it has.
func (f *Federation) Running(ctx context.Context, d Deps) (running, all int) {
	if f.Kind != nil {
		return f.runningKind(ctx, d.Getenv)
	}
	names := f.processNames()
	for _, name := range names {
		if _, ok := f.process(name).running(); ok {
			running++
		}
	}
	return running, len(names)
}

// KubeconfigPath returns the path of the kubeconfig of a federation.
func KubeconfigPath(root, name string) (string, error) {
	f, err := Load(root, name)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(f.Kubeconfig()); err != nil {
		return "", fmt.Errorf("federation %q has no kubeconfig yet; finish its start with \"local up\"", name)
	}
	return f.Kubeconfig(), nil
}
