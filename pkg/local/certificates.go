package local

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/karmada-toolkit/karmada/pkg/local/federation"
	"github.com/karmada-toolkit/karmada/pkg/local/kindcluster"
)

// Certificates are where a federation has its certificates, and how its processes take over new ones.
type Certificates struct {
	// HostKubeconfig is of the host cluster of a federation of kind clusters, and Data the directory of its control plane. The other
	// fields are of a federation of processes.
	HostKubeconfig, Data string
	// Dir has everything that the federation keeps, Own are the directories in it of the control plane.
	Dir string
	Own []string
	// Kubeconfig has the contexts of the control plane and of the members, in both.
	Kubeconfig string

	d          Deps
	federation *Federation
	root       string
}

// CertificatesOf returns where a federation has its certificates.
func CertificatesOf(d Deps, root, name string) (*Certificates, error) {
	f, err := Load(root, name)
	if err != nil {
		return nil, err
	}
	dir := f.Dir()
	if f.Runtime == RuntimeKind {
		return &Certificates{HostKubeconfig: kindcluster.HostKubeconfig(dir), Data: dir.ControlPlane(), Kubeconfig: dir.Kubeconfig()}, nil
	}
	own := []string{dir.ControlPlane(), dir.Data(federation.ControlPlane)}
	return &Certificates{
		Dir: string(dir), Own: own, Kubeconfig: dir.Kubeconfig(), d: d, federation: f, root: root,
	}, nil
}

// Restart restarts the control plane.
func (c *Certificates) Restart(ctx context.Context) error {
	parts := []string{federation.ControlPlane, federation.Roles}
	if err := StopParts(ctx, c.d, c.root, c.federation.Name, parts); err != nil {
		return err
	}
	return StartParts(ctx, c.d, c.root, c.federation.Name, parts)
}

// maxMetrics is how much of the metrics of a process is read, in bytes.
const maxMetrics = 16 << 20

// Metrics returns the metrics of the processes with roles of the control plane, of those that run, by their names.
func (c *Certificates) Metrics(ctx context.Context) (map[string][]byte, error) {
	ports := map[string]string{federation.Roles: federation.PortMetrics}
	for _, member := range c.federation.Members {
		ports[federation.Agent(member)], ports[federation.Estimator(member)] = federation.AgentMetricsPort(member), federation.EstimatorMetricsPort(member)
	}
	running, err := Parts(ctx, c.d, c.root, c.federation.Name)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for process, port := range ports {
		runs := slices.ContainsFunc(running, func(p ProcessStatus) bool { return p.Name == process && p.State == federation.StateRunning })
		if number := c.federation.Port(port); runs && number != 0 {
			if out[process], err = read(ctx, "http://"+federation.Address(number)+"/metrics"); err != nil {
				return nil, fmt.Errorf("reading the metrics of %s: %w", process, err)
			}
		}
	}
	return out, nil
}

func read(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", url, response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, maxMetrics))
}
