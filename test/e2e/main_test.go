// Package e2e tests user stories with the command line, on a federation of real
// clusters, and checks the output and the objects that users read.
package e2e

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// federationName is the name of the federation of the tests: that of E2E_NAME, so that two suites can run on one
// machine.
var federationName = cmp.Or(os.Getenv("E2E_NAME"), "e2e")

// bin is the directory of the programs, kubeconfig that of the federation, and
// stateDir where it lives. They are set once, before the tests.
var bin, kubeconfig, stateDir string

// runtime is what differs between federations of processes and of kind clusters:
// the suite is the same. Each is in a file of its own; the build tag "kind"
// chooses.
type runtime interface { //nolint:interfacebloat // everything in which the two runtimes differ
	// flags of "local up" beside the number of members.
	flags() []string
	// timeout is how long a test waits for a condition that should take a second.
	timeout() time.Duration
	// many is a number of Deployments that keeps a control plane busy.
	many() int
	// crashControlPlane ends every process of the control plane at once.
	crashControlPlane(t *testing.T)
	// serveSearch makes the control plane serve search until the test ends.
	serveSearch(t *testing.T)
	// crashMember ends a member.
	crashMember(t *testing.T, name string)
	// keepLogs copies the logs of a failed test.
	keepLogs(to string)
	// componentLogs returns what the components of the control plane logged.
	componentLogs() string
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	tmp, err := os.MkdirTemp("", "e2e-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if bin = os.Getenv("E2E_BIN"); bin == "" {
		bin = filepath.Join(tmp, "bin")
		if err := build(bin); err != nil {
			return 1, err
		}
	}
	if bin, err = filepath.Abs(bin); err != nil {
		return 1, err
	}
	stateDir = filepath.Join(tmp, "state")
	kubeconfig = filepath.Join(stateDir, federationName, "kubeconfig")
	defer func() {
		if _, missing := os.Stat(filepath.Join(stateDir, federationName)); missing != nil {
			return
		}
		if to := os.Getenv("E2E_LOGS"); to != "" && code != 0 {
			under.keepLogs(to)
		}
		if derr := federation("down", "--purge"); err == nil {
			err = derr
		}
	}()
	code = m.Run()
	if _, missing := os.Stat(kubeconfig); missing != nil {
		return code, nil
	}
	lacking, err := missingRights(context.Background(), under.componentLogs())
	if len(lacking) > 0 {
		err = fmt.Errorf("components lack rights; see pkg/init/components/component_rbac.go:\n  %s", strings.Join(lacking, "\n  "))
	}
	return code, err
}

// started starts the federation for the first test that needs it.
var started = sync.OnceValue(func() error {
	return federation(append([]string{"up", "--members", cmp.Or(os.Getenv("E2E_MEMBERS"), "2")}, under.flags()...)...)
})

// build makes the programs that the tests run.
func build(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, program := range []string{"karmadactl", "kubectl-karmada", "karmada", "kubelite"} {
		cmd := exec.Command("go", "build", "-o", dir+"/", "../../cmd/"+program)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("building %s: %w", program, err)
		}
	}
	return nil
}

// federation runs a local command on the federation of the tests.
func federation(args ...string) error {
	var out bytes.Buffer
	args = append([]string{"local"}, append(args, "--name", federationName, "--dir", stateDir)...)
	cmd := exec.CommandContext(context.Background(), filepath.Join(bin, "karmadactl"), args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	fmt.Fprintf(os.Stderr, "$ karmadactl %v\n%s", args, out.String())
	if err != nil {
		return fmt.Errorf("karmadactl %v: %w", args, err)
	}
	return nil
}
