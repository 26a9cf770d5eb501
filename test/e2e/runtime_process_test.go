//go:build !kind

package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// under is what the federation of the tests runs on: processes.
var under runtime = processes{}

type processes struct{}

// brokenOverrider makes a Deployment unhealthy: no simulated node has as many processors.
const brokenOverrider = `{plaintext: [{path: /spec/template/spec/containers/0/resources, operator: add, value: {requests: {cpu: "1000000"}}}]}`

// unhealthySeconds is how long an application may be unhealthy: longer than it takes to start.
const unhealthySeconds = "15"

// flags: member1 is in Push mode, member2 in Pull mode; E2E_PULL is another number of members in Pull mode.
// With E2E_SERVICES=true the feature gate MultiClusterService is on, which TestPull needs and TestGateWarnings must not have.
func (processes) flags() []string {
	flags := append(failoverFlags(), autoscalingFlags()...)
	flags[1] += ",SchedulingOvercommitProtection=true,MultiClusterService=" + cmp.Or(os.Getenv("E2E_SERVICES"), "false")
	return append(flags, "--estimators", "--search", "--pull", cmp.Or(os.Getenv("E2E_PULL"), "1"))
}

func (processes) timeout() time.Duration { return 3 * time.Minute }

func (processes) many() int { return 100 }

func (p processes) crashControlPlane(t *testing.T) {
	t.Helper()
	p.kill(t, "karmada")
	p.kill(t, "karmada-apiserver")
}

// serveSearch has nothing to do: the federation was started with --search.
func (processes) serveSearch(*testing.T) {}

func (p processes) crashMember(t *testing.T, name string) {
	t.Helper()
	p.kill(t, name)
}

// kill ends a process of the federation.
func (p processes) kill(t *testing.T, process string) {
	t.Helper()
	p.signal(t, process, syscall.SIGKILL)
}

// signal sends a signal to a process of the federation.
func (processes) signal(t *testing.T, process string, signal syscall.Signal) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(stateDir, federationName, "processes", process+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var record struct{ PID int }
	if err := json.Unmarshal(data, &record); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(record.PID, signal); err != nil {
		t.Fatal(err)
	}
}

func (processes) keepLogs(to string) {
	if err := os.CopyFS(to, os.DirFS(filepath.Join(stateDir, federationName, "logs"))); err != nil {
		fmt.Fprintln(os.Stderr, "keeping logs:", err)
	}
}

func (processes) componentLogs() string {
	data, err := os.ReadFile(filepath.Join(stateDir, federationName, "logs", "karmada.log"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "reading the log of the components:", err)
	}
	return string(data)
}
