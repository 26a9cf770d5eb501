// Package testenv starts real Kubernetes clusters for tests: kubelite processes that start in about a second and are
// gone when the test ends. It links no Kubernetes server code; the program is built once and run.
package testenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/karmada-toolkit/karmada/internal/kubelite/ready"
	"github.com/karmada-toolkit/karmada/internal/wait"
)

const (
	startTimeout = 2 * time.Minute
	stopTimeout  = 2 * time.Minute
	// minLimit is the least limit of a wait. A machine that runs many clusters at once may delay a process by tens of
	// seconds.
	minLimit = 90 * time.Second
	// logTail is how much of a cluster's log is shown when something went wrong.
	logTail = 4096
)

// Spec describes a cluster for a test.
type Spec struct {
	// Name of the cluster, its context and the prefix of its nodes.
	Name string
	// Args are the flags of kubelite beside --data-dir and --name.
	Args []string
	// DataDir is where the cluster keeps its data: a new temporary directory if empty.
	DataDir string
}

// ControlPlane is a cluster that holds a federation's templates.
func ControlPlane() Spec {
	return Spec{Name: "control-plane", Args: []string{"--profile=control-plane", "--context-name=karmada-apiserver", "--fsync=false"}}
}

// Member is a cluster that runs workloads on simulated nodes.
func Member(name string, nodes int) Spec {
	return Spec{Name: name, Args: []string{"--profile=member", fmt.Sprintf("--nodes=%d", nodes)}}
}

// With returns the spec with more flags.
func (s Spec) With(args ...string) Spec {
	s.Args = append(append([]string{}, s.Args...), args...)
	return s
}

// Cluster is a running cluster.
type Cluster struct {
	// Info is what the cluster published when it was ready.
	Info ready.Info
	// Config is the configuration of an administrator's client, without rate limits.
	Config *rest.Config
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// DataDir is where the cluster keeps its data, LogFile where it logs to.
	DataDir string
	LogFile string

	spec Spec
	cmd  *exec.Cmd
	// exited is closed when the process has ended, with err.
	exited chan struct{}
	err    error
}

// Start runs a cluster until the test ends. It returns when the cluster is ready.
func Start(tb testing.TB, spec Spec) *Cluster {
	tb.Helper()
	if spec.DataDir == "" {
		spec.DataDir = tb.TempDir()
	}
	c, err := Launch(tb, spec)
	if err != nil {
		tb.Fatalf("starting cluster %q: %v", spec.Name, err)
	}
	return c
}

// StartAll runs several clusters at once.
func StartAll(tb testing.TB, specs ...Spec) []*Cluster {
	tb.Helper()
	clusters, errs := make([]*Cluster, len(specs)), make([]error, len(specs))
	Binary(tb, "kubelite")
	done := make(chan struct{})
	for i := range specs {
		if specs[i].DataDir == "" {
			specs[i].DataDir = filepath.Join(tb.TempDir(), "data") // made for this user alone
		}
		go func() {
			clusters[i], errs[i] = Launch(tb, specs[i])
			done <- struct{}{}
		}()
	}
	for range specs {
		<-done
	}
	if err := errors.Join(errs...); err != nil {
		tb.Fatalf("starting clusters: %v", err)
	}
	return clusters
}

// Launch is Start for tests that expect a failure: the error holds the end of the log.
func Launch(tb testing.TB, spec Spec) (*Cluster, error) {
	tb.Helper()
	c := &Cluster{DataDir: spec.DataDir, LogFile: filepath.Join(tb.TempDir(), "kubelite.log"), spec: spec}
	if err := c.launch(Binary(tb, "kubelite")); err != nil {
		if c.exited != nil && c.Running() {
			c.Kill(tb)
		}
		return nil, err
	}
	tb.Cleanup(func() {
		c.explain(tb)
		c.Stop(tb)
	})
	return c, nil
}

func (c *Cluster) launch(binary string) error {
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return err
	}
	log, err := os.OpenFile(c.LogFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	args := append([]string{"--data-dir=" + c.DataDir, "--name=" + c.spec.Name}, c.spec.Args...)
	c.cmd = exec.Command(binary, args...)
	c.cmd.Stdout, c.cmd.Stderr = log, log
	c.cmd.SysProcAttr = childAttributes()
	if err := c.spawn(); err != nil {
		return err
	}
	return c.wait()
}

// spawn starts the process from a thread that lives as long as the process: the system would take the end of a
// thread for the end of the parent.
func (c *Cluster) spawn() error {
	started := make(chan error, 1)
	cmd, exited := c.cmd, make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		c.err = cmd.Wait()
		close(exited)
	}()
	err := <-started
	if err == nil {
		c.exited = exited
	}
	return err
}

// wait returns when the cluster is ready, or its process has ended.
func (c *Cluster) wait() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), startTimeout, errors.New("it takes too long"))
	defer cancel()
	ctx, died := context.WithCancelCause(ctx)
	defer died(nil)
	exited := c.exited
	go func() {
		select {
		case <-exited:
			died(errors.New("the process ended"))
		case <-ctx.Done():
		}
	}()
	info, err := ready.Wait(ctx, c.DataDir, c.cmd.Process.Pid)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, c.tail())
	}
	config, err := clientcmd.BuildConfigFromFlags("", info.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS = -1
	c.Info, c.Config, c.Kubeconfig = info, config, info.Kubeconfig
	return nil
}

// Stop ends the cluster in order. It does nothing if it has ended.
func (c *Cluster) Stop(tb testing.TB) {
	tb.Helper()
	if err := c.stop(); err != nil {
		tb.Error(err)
	}
}

func (c *Cluster) stop() error {
	if c.Running() {
		_ = c.cmd.Process.Signal(syscall.SIGTERM)
	}
	select {
	case <-c.exited:
		return nil
	case <-time.After(stopTimeout):
		c.kill()
		return fmt.Errorf("cluster %q did not stop within %s", c.spec.Name, stopTimeout)
	}
}

// Kill ends the cluster as a crash would.
func (c *Cluster) Kill(tb testing.TB) {
	tb.Helper()
	c.kill()
}

func (c *Cluster) kill() {
	_ = c.cmd.Process.Kill()
	<-c.exited
}

// explain logs the end of the cluster's log when the test has failed.
func (c *Cluster) explain(tb testing.TB) {
	tb.Helper()
	if tb.Failed() {
		tb.Logf("the log of cluster %q ends with\n%s", c.spec.Name, c.tail())
	}
}

// Restart starts a cluster again that was stopped or killed, on its data.
func (c *Cluster) Restart(tb testing.TB) {
	tb.Helper()
	if c.Running() {
		c.Stop(tb)
	}
	if err := c.launch(Binary(tb, "kubelite")); err != nil {
		tb.Fatalf("starting cluster %q again: %v", c.spec.Name, err)
	}
}

// Running reports whether the process lives.
func (c *Cluster) Running() bool {
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

// ExitError is how the process ended: nil for exit code 0.
func (c *Cluster) ExitError() error {
	<-c.exited
	return c.err
}

func (c *Cluster) tail() string {
	data, err := os.ReadFile(c.LogFile)
	if err != nil {
		return err.Error()
	}
	if len(data) > logTail {
		data = data[len(data)-logTail:]
		data = data[bytes.IndexByte(data, '\n')+1:]
	}
	return strings.TrimSpace(string(data))
}

// Eventually calls check until it returns nil, and fails the test with its last error when that takes longer than limit,
// which is 90 s at least.
func Eventually(tb testing.TB, limit time.Duration, check func(ctx context.Context) error) {
	tb.Helper()
	if err := wait.Until(tb.Context(), wait.Options{Interval: 20 * time.Millisecond, Timeout: max(limit, minLimit)}, check); err != nil {
		tb.Fatal(err)
	}
}

// Stopped returns the error with which a manager of controllers ended, or nil if a controller did not end within the
// grace period. The priority queue of controller-runtime v0.24 may never hand out an item that becomes ready while it is
// shut down, and then keeps a lock that the workers need.
func Stopped(err error) error {
	if err != nil && strings.Contains(err.Error(), "grace period") {
		return nil
	}
	return err
}
