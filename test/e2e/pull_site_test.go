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
)

// pullSite is a federation of its own for the stories of Pull mode: member1 is
// pushed to, member2 pulls. Its parts are stopped, cut off and set back in time.
type pullSite struct {
	dir string
}

const (
	pullName  = "pull"
	pullAgent = "member2-agent"
)

// newPullSite starts the federation. Until the test ends, commands are for it.
func newPullSite(t *testing.T) *pullSite {
	t.Helper()
	s := &pullSite{dir: filepath.Join(stateDir, pullName)}
	before := kubeconfig
	t.Cleanup(func() {
		if t.Failed() {
			s.keepLogs()
		}
		ctl("", "local", "down", "--purge", "--name", pullName, "--dir", stateDir)
		kubeconfig = before
	})
	must(t, "local", "up", "--name", pullName, "--dir", stateDir, "--members", "2", "--pull", "1")
	kubeconfig = filepath.Join(s.dir, "kubeconfig")
	return s
}

func (s *pullSite) keepLogs() {
	to := os.Getenv("E2E_LOGS")
	if to == "" {
		return
	}
	if err := os.CopyFS(filepath.Join(to, pullName), os.DirFS(filepath.Join(s.dir, "logs"))); err != nil {
		fmt.Fprintln(os.Stderr, "keeping logs:", err)
	}
}

// up brings back what is dead.
func (s *pullSite) up(t *testing.T) {
	t.Helper()
	must(t, "local", "up", "--name", pullName, "--dir", stateDir)
}

// process is the record of a process of the federation.
type process struct {
	PID     int
	Command []string
}

func (s *pullSite) process(t *testing.T, name string) process {
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
func (s *pullSite) end(t *testing.T, name string, how syscall.Signal) {
	t.Helper()
	p := s.process(t, name).PID
	if err := syscall.Kill(p, how); err != nil {
		t.Fatal(err)
	}
	within(t, 30*time.Second, func() error {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p))
		if err == nil && !strings.Contains(string(data), ") Z ") {
			return fmt.Errorf("%s is still there", name)
		}
		return nil
	})
}

// runAgent runs an agent in the place of the federation's, by another kubeconfig of
// the control plane, until the test ends.
func (s *pullSite) runAgent(t *testing.T, kubeconfig string, more ...string) {
	t.Helper()
	args := slices.Clone(s.process(t, pullAgent).Command)
	for i := range args {
		if strings.HasPrefix(args[i], "--karmada-kubeconfig=") {
			args[i] = "--karmada-kubeconfig=" + kubeconfig
		}
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "logs", "own-agent.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(args[0], append(args[1:], more...)...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		_ = log.Close()
		s.up(t)
	})
}

// agentKubeconfig returns the kubeconfig of the federation's agent.
func (s *pullSite) agentKubeconfig() string {
	return filepath.Join(s.dir, pullAgent, "control-plane.kubeconfig")
}

// through returns the agent's kubeconfig with another address of the control
// plane, and the address it had.
func (s *pullSite) through(t *testing.T, address string) (path, server string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(s.agentKubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range config.Clusters {
		server = strings.TrimPrefix(c.Server, "https://")
		c.Server = "https://" + address
	}
	path = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path, server
}

// network is a TCP connection to the control plane that can be cut: what is on the
// way stays there, and who dials is refused.
type network struct {
	address, target string

	mu       sync.Mutex
	open     *sync.Cond
	cut      bool
	listener net.Listener
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &network{address: l.Addr().String(), listener: l}
	n.open = sync.NewCond(&n.mu)
	t.Cleanup(func() { n.set(false); n.mu.Lock(); defer n.mu.Unlock(); _ = n.listener.Close() })
	return n
}

// serve forwards to the target.
func (n *network) serve(target string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.target = target
	go n.accept(n.listener)
}

func (n *network) accept(l net.Listener) {
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

func (n *network) forward(to, from net.Conn) {
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

// set cuts the network, or heals it.
func (n *network) set(cut bool) {
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

// uids returns the UIDs of the Deployments of a namespace in a member, by name.
func uids(t *testing.T, cluster, ns string) map[string]string {
	t.Helper()
	out, err := valueIn(cluster, []string{"get", "deploy", "-n", ns, "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}{"\n"}{end}`})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(out) {
		if name, uid, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			all[name] = uid
		}
	}
	return all
}
