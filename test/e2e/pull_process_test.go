//go:build !kind

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/karmada-toolkit/karmada/internal/pki"
)

// pullProcesses is the federation of processes.
type pullProcesses struct {
	dir string
	// kubeconfig of the agent, and where the backup is.
	kubeconfig, kept string
}

const pullAgent = "member2-agent"

// newPullSite is the federation of the tests: one of its members is in Pull mode.
func newPullSite(t *testing.T) pullSite {
	t.Helper()
	if err := started(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(stateDir, federationName)
	return &pullProcesses{dir: dir, kubeconfig: filepath.Join(dir, pullAgent, "control-plane.kubeconfig")}
}

func (s *pullProcesses) killAgent(t *testing.T) {
	t.Helper()
	s.end(t, pullAgent, syscall.SIGKILL)
}

// startAgent brings back what is dead.
func (s *pullProcesses) startAgent(t *testing.T) {
	t.Helper()
	must(t, "local", "up", "--name", federationName, "--dir", stateDir)
}

// process is the record of a process of the federation.
type process struct {
	PID     int
	Command []string
}

func (s *pullProcesses) process(t *testing.T, name string) process {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, "processes", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var p process
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// end ends a process of the federation and waits until it is gone.
func (s *pullProcesses) end(t *testing.T, name string, how syscall.Signal) {
	t.Helper()
	p := s.process(t, name).PID
	if err := syscall.Kill(p, how); err != nil {
		t.Fatal(err)
	}
	within(t, 2*time.Minute, func() error {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p))
		if err == nil && !strings.Contains(string(data), ") Z ") {
			return fmt.Errorf("%s is still there", name)
		}
		return nil
	})
}

func (s *pullProcesses) agentConfig(t *testing.T) *clientcmdapi.Config {
	t.Helper()
	config, err := clientcmd.LoadFromFile(s.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func (s *pullProcesses) runAgent(t *testing.T, config *clientcmdapi.Config, flags ...string) {
	t.Helper()
	s.end(t, pullAgent, syscall.SIGTERM)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	args := slices.Clone(s.process(t, pullAgent).Command)
	for i := range args {
		if strings.HasPrefix(args[i], "--karmada-kubeconfig=") {
			args[i] = "--karmada-kubeconfig=" + path
		}
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "logs", "own-agent.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(args[0], append(args[1:], flags...)...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	federations := s.kubeconfig
	s.kubeconfig = path
	t.Cleanup(func() {
		s.kubeconfig = federations
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		_ = log.Close()
		s.startAgent(t)
	})
}

func (s *pullProcesses) authority(t *testing.T) pki.Pair {
	t.Helper()
	return readAuthority(t, filepath.Join(s.dir, "karmada-apiserver", "pki"))
}

func (s *pullProcesses) backup(t *testing.T) {
	t.Helper()
	s.kept = filepath.Join(t.TempDir(), "backup")
	s.end(t, "karmada-apiserver", syscall.SIGTERM)
	if err := os.CopyFS(s.kept, os.DirFS(filepath.Join(s.dir, "karmada-apiserver"))); err != nil {
		t.Fatal(err)
	}
	s.startAgent(t)
}

// restore: the parts of a control plane start with the data they are to work on.
func (s *pullProcesses) restore(t *testing.T) {
	t.Helper()
	s.end(t, "karmada", syscall.SIGTERM)
	s.end(t, "karmada-apiserver", syscall.SIGTERM)
	data := filepath.Join(s.dir, "karmada-apiserver")
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(data, os.DirFS(s.kept)); err != nil {
		t.Fatal(err)
	}
	s.startAgent(t)
}

// network has the agent go through a proxy.
func (s *pullProcesses) network(t *testing.T) network {
	t.Helper()
	n := newProxy(t)
	config := s.agentConfig(t)
	for _, c := range config.Clusters {
		n.serve(strings.TrimPrefix(c.Server, "https://"))
		c.Server = "https://" + n.address
	}
	s.runAgent(t, config)
	return n
}

// proxy is a TCP connection to the control plane that can be cut: what is on the
// way stays there, and who dials is refused.
type proxy struct {
	address, target string

	mu       sync.Mutex
	open     *sync.Cond
	cut      bool
	listener net.Listener
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &proxy{address: l.Addr().String(), listener: l}
	n.open = sync.NewCond(&n.mu)
	t.Cleanup(func() { n.change(false); n.mu.Lock(); defer n.mu.Unlock(); _ = n.listener.Close() })
	return n
}

// serve forwards to the target.
func (n *proxy) serve(target string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.target = target
	go n.accept(n.listener)
}

func (n *proxy) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", n.target)
		if err != nil {
			_ = conn.Close()
			continue
		}
		go n.forward(conn, far)
		go n.forward(far, conn)
	}
}

func (n *proxy) forward(to, from net.Conn) {
	defer func() { _ = to.Close() }()
	buf := make([]byte, 32<<10)
	for {
		got, err := from.Read(buf)
		n.mu.Lock()
		for n.cut {
			n.open.Wait()
		}
		n.mu.Unlock()
		if got > 0 {
			if _, werr := to.Write(buf[:got]); werr != nil {
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				_ = from.Close()
			}
			return
		}
	}
}

func (n *proxy) set(_ *testing.T, cut bool) { n.change(cut) }

func (n *proxy) change(cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut == cut {
		return
	}
	n.cut = cut
	if cut {
		_ = n.listener.Close()
		return
	}
	n.open.Broadcast()
	if l, err := net.Listen("tcp", n.address); err == nil {
		n.listener = l
		go n.accept(l)
	}
}
