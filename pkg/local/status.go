package local

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/karmada-toolkit/karmada/internal/kube"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
	"github.com/karmada-toolkit/karmada/pkg/local/membership"
)

// statusTimeout bounds a request to the control plane.
const statusTimeout = 3 * time.Second

// DefaultRoot returns the directory under which federations are kept unless a
// user names another.
func DefaultRoot(getenv func(string) string) (string, error) { return federation.DefaultRoot(getenv) }

// ValidateName returns an error if a name cannot be that of a federation.
func ValidateName(name string) error { return federation.ValidateName(name) }

// Load reads the federation name under root, or returns ErrNoFederation.
func Load(root, name string) (*Federation, error) { return federation.Load(root, name) }

// List reads the names of the federations under root, sorted. Those of other users are left out.
func List(root string) ([]string, error) { return federation.List(root) }

// Status returns the state of the parts of a federation. The error is the reason why
// the members' readiness is unknown; the parts are returned all the same.
func Status(ctx context.Context, d Deps, root, name string) ([]ProcessStatus, error) {
	f, err := Load(root, name)
	if err != nil {
		return nil, err
	}
	status, err := runtimeOf(d, f, UpRequest{}).Status(ctx)
	if err != nil {
		return nil, err
	}
	parts := status.Parts
	if status.Hosted {
		parts = slices.Insert(parts, 0, controlStatus(ctx, status.ControlPlane))
		if parts[0].State != federation.StateRunning {
			return parts, nil
		}
	}
	if status.ControlPlane == "" {
		return parts, nil
	}
	conditions, err := readiness(ctx, status.ControlPlane)
	for i := range parts {
		parts[i].Ready = readyNow(parts[i].State, conditions[parts[i].Name])
	}
	return parts, err
}

// readyNow returns the Ready condition of a part, without one that is older than the end of the part: the control plane
// takes seconds to notice it.
func readyNow(state, condition string) string {
	if state != federation.StateRunning && condition == string(metav1.ConditionTrue) {
		return string(metav1.ConditionUnknown)
	}
	return condition
}

// Parts returns the state of the parts of a federation, without their readiness.
func Parts(ctx context.Context, d Deps, root, name string) ([]ProcessStatus, error) {
	f, err := Load(root, name)
	if err != nil {
		return nil, err
	}
	status, err := runtimeOf(d, f, UpRequest{}).Status(ctx)
	return status.Parts, err
}

// controlStatus returns the state of a control plane that is not a process or
// cluster itself.
func controlStatus(ctx context.Context, kubeconfig string) ProcessStatus {
	s := ProcessStatus{Name: federation.ControlPlane, State: federation.StateMissing}
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return s
	}
	s.State, s.Server = federation.StateStopped, cfg.Host
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return s
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	if kube.CheckOK(ctx, client, cfg.Host+"/readyz") == nil {
		s.State = federation.StateRunning
	}
	return s
}

// readiness returns the Ready conditions of the members in the control plane.
func readiness(ctx context.Context, kubeconfig string) (map[string]string, error) {
	return clusters(ctx, kubeconfig, func(c *clusterv1alpha1.Cluster) string { return string(c.ReadyStatus()) })
}

// clusters returns a text for each member in the control plane, by name.
func clusters(ctx context.Context, kubeconfig string, text func(*clusterv1alpha1.Cluster) string) (map[string]string, error) {
	_, c, err := membership.Connect(kubeconfig)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	list := &clusterv1alpha1.ClusterList{}
	if err := c.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing the members in the control plane: %w", err)
	}
	out := map[string]string{}
	for i := range list.Items {
		out[list.Items[i].Name] = text(&list.Items[i])
	}
	return out, nil
}

// Running returns how many of the federation's processes or clusters run, and how
// many it has.
func Running(ctx context.Context, d Deps, f *Federation) (running, all int) {
	status, _ := runtimeOf(d, f, UpRequest{}).Status(ctx) // the parts are returned anyway
	for _, part := range status.Parts {
		if part.State == federation.StateRunning {
			running++
		}
	}
	return running, len(status.Parts)
}

// KubeconfigPath returns the path of the kubeconfig of a federation.
func KubeconfigPath(root, name string) (string, error) {
	f, err := Load(root, name)
	if err != nil {
		return "", err
	}
	path := f.Dir().Kubeconfig()
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("federation %q has no kubeconfig yet; finish its start with \"local up\"", name)
	}
	return path, nil
}
