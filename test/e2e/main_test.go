// Package e2e walks through what users do, by the command line, on a federation
// of real clusters, and looks at what a user would look at.
package e2e

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// bin is the directory of the programs, kubeconfig that of the federation, and
// stateDir where it lives. They are set once, before the tests.
var bin, kubeconfig, stateDir string

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
	// E2E_PULL is how many of the members are in Pull mode: one suite, both modes.
	if err := federation("up", "--members", "2", "--pull", cmp.Or(os.Getenv("E2E_PULL"), "0")); err != nil {
		return 1, err
	}
	defer func() {
		if code != 0 {
			keepLogs(filepath.Join(stateDir, "default", "logs"))
		}
		if derr := federation("down", "--purge"); err == nil {
			err = derr
		}
	}()
	kubeconfig = filepath.Join(stateDir, "default", "kubeconfig")
	return m.Run(), nil
}

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
	args = append([]string{"local"}, append(args, "--dir", stateDir)...)
	cmd := exec.CommandContext(context.Background(), filepath.Join(bin, "karmadactl"), args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	fmt.Fprintf(os.Stderr, "$ karmadactl %v\n%s", args, out.String())
	if err != nil {
		return fmt.Errorf("karmadactl %v: %w", args, err)
	}
	return nil
}

// keepLogs copies the logs of the federation to where they survive.
func keepLogs(from string) {
	to := os.Getenv("E2E_LOGS")
	if to == "" {
		return
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		fmt.Fprintln(os.Stderr, "keeping logs:", err)
	}
}
