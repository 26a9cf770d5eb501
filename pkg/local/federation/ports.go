package federation

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/karmada-toolkit/karmada/internal/kubelite/ready"
)

// Loopback is the only address that a local federation listens on.
const Loopback = "127.0.0.1"

// The ports of the control plane's roles.
const (
	PortAggregated = "aggregated-apiserver"
	PortWebhook    = "webhook"
	PortAdapter    = "metrics-adapter"
	PortSearch     = "search"
	PortHealth     = "health"
	PortMetrics    = "metrics"
)

// AgentHealthPort returns the name of the port of an agent's health probes.
func AgentHealthPort(member string) string { return Agent(member) + "-" + PortHealth }

// AgentMetricsPort returns the name of the port of an agent's metrics.
func AgentMetricsPort(member string) string { return Agent(member) + "-" + PortMetrics }

// EstimatorPort returns the name of the port on which an estimator answers.
func EstimatorPort(member string) string { return Estimator(member) + "-grpc" }

// EstimatorHealthPort returns the name of the port of an estimator's health probes.
func EstimatorHealthPort(member string) string { return Estimator(member) + "-" + PortHealth }

// EstimatorMetricsPort returns the name of the port of an estimator's metrics.
func EstimatorMetricsPort(member string) string { return Estimator(member) + "-" + PortMetrics }

// EstimatorPorts returns the names of the ports of an estimator.
func EstimatorPorts(member string) []string {
	return []string{EstimatorPort(member), EstimatorHealthPort(member), EstimatorMetricsPort(member)}
}

// ChoosePorts gives each name a port and records it: the one that it had if it is
// still free, else another.
func (f *Federation) ChoosePorts(names ...string) error {
	return f.Update(func() error {
		if f.Ports == nil {
			f.Ports = map[string]int{}
		}
		for _, name := range names {
			l, err := listen(f.Ports[name])
			if err != nil {
				return fmt.Errorf("finding a port for %s: %w", name, err)
			}
			// Held until all are chosen, so that no two are the same.
			defer l.Close() //nolint:errcheck // nothing was sent
			f.Ports[name] = l.Addr().(*net.TCPAddr).Port
		}
		return nil
	})
}

// listen takes the wanted port if it is free, else another.
func listen(wanted int) (net.Listener, error) {
	if wanted != 0 {
		if l, err := net.Listen("tcp", net.JoinHostPort(Loopback, strconv.Itoa(wanted))); err == nil {
			return l, nil
		}
	}
	return ready.ListenFree(Loopback)
}

// Port returns the port with a name, 0 while none is chosen.
func (f *Federation) Port(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.Ports[name]
}

// Address is where a local federation listens on a port.
func Address(port int) string { return net.JoinHostPort(Loopback, strconv.Itoa(port)) }

// The servers that a federation is made of.
const (
	KubeliteServer = "kubelite"
	KarmadaServer  = "karmada"
)

// binDirVariable names a directory with the servers.
const binDirVariable = "KARMADA_BIN_DIR"

// FindServer looks for a server beside the program, then in $KARMADA_BIN_DIR, then on the PATH.
func (d Deps) FindServer(name string) (string, error) {
	var dirs []string
	if executable := d.Executable; executable != "" {
		if resolved, err := filepath.EvalSymlinks(executable); err == nil {
			executable = resolved
		}
		dirs = append(dirs, filepath.Dir(executable))
	}
	if dir := d.Getenv(binDirVariable); dir != "" {
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return filepath.Abs(path)
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("the server %q was not found beside this program, in $%s or on the PATH: build it with \"make build\", or set %s to the directory that has it", name, binDirVariable, binDirVariable)
	}
	return filepath.Abs(path)
}
