// Package ready is the signal by which a kubelite process publishes that its cluster can be used: a small JSON file in
// its data directory. The package is separate from kubelite so that programs that wait for it need not link Kubernetes.
package ready

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/wait"
)

// File is the name of the signal in the data directory. It exists while the cluster is ready.
const File = "ready.json"

// Info is the content of the signal.
type Info struct {
	// PID is the process that serves the cluster.
	PID int `json:"pid"`
	// Name of the cluster.
	Name string `json:"name"`
	// Server is the URL of the API server.
	Server string `json:"server"`
	// Kubeconfig is the path of a kubeconfig of a cluster administrator.
	Kubeconfig string `json:"kubeconfig"`
	// Etcd is the endpoint of the cluster's etcd, for API servers that share it.
	Etcd string `json:"etcd,omitempty"`
	// Version of Kubernetes.
	Version string `json:"version"`
	// StartTime is when the process began, ReadyTime when its cluster became ready.
	StartTime time.Time `json:"startTime"`
	ReadyTime time.Time `json:"readyTime"`
}

// Free ports are looked for below the range from which the system takes ports for outgoing connections, and below
// the node ports of Kubernetes: a port from there could be taken when a server starts, or starts again.
const (
	FirstPort = 20000
	LastPort  = 29999
)

// ListenFree listens on a free port of an address. The last error is returned if none was found.
func ListenFree(address string) (listener net.Listener, err error) {
	for range 200 {
		port := FirstPort + rand.IntN(LastPort-FirstPort+1) //nolint:gosec // a port need not be unpredictable
		if listener, err = net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port))); err == nil {
			return listener, nil
		}
	}
	return nil, fmt.Errorf("no free port on %s between %d and %d: %w", address, FirstPort, LastPort, err)
}

// Path returns where the signal of a data directory is.
func Path(dataDir string) string { return filepath.Join(dataDir, File) }

// Read returns the signal; the error is fs.ErrNotExist while the cluster is not ready.
func Read(dataDir string) (Info, error) {
	var info Info
	data, err := os.ReadFile(Path(dataDir))
	if err != nil {
		return info, err
	}
	if err := json.Unmarshal(data, &info); err != nil {
		return info, fmt.Errorf("reading %s: %w", Path(dataDir), err)
	}
	return info, nil
}

// Write writes the signal, atomically.
func Write(dataDir string, info Info) error {
	data, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return err
	}
	return pki.WriteFile(Path(dataDir), append(data, '\n'), 0o600)
}

// Wait polls until process pid writes the signal. A signal left behind by another process does not count. The caller
// watches the process and ends ctx when it dies.
func Wait(ctx context.Context, dataDir string, pid int) (Info, error) {
	var info Info
	err := wait.Until(ctx, wait.Options{Interval: 20 * time.Millisecond}, func(context.Context) (err error) {
		if info, err = Read(dataDir); err == nil && info.PID != pid {
			err = fmt.Errorf("the signal is that of process %d", info.PID)
		}
		return err
	})
	if err != nil {
		return Info{}, fmt.Errorf("waiting for the cluster in %s: %w", dataDir, err)
	}
	return info, nil
}
