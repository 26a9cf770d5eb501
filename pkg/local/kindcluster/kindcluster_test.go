package kindcluster

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/exec"
	"sigs.k8s.io/kind/pkg/log"

	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
)

// fakeKind is the kind library with clusters that exist in memory only.
type fakeKind struct {
	mu       sync.Mutex
	clusters []string
	deleted  []string
	// create is what making a cluster comes to.
	create func(name string) error
	// late clusters are listed only after they were deleted so many times.
	late map[string]int
}

func (k *fakeKind) Create(name string, _ ...cluster.CreateOption) error {
	if k.create != nil {
		if err := k.create(name); err != nil {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.clusters = append(k.clusters, name)
	return nil
}

func (k *fakeKind) Delete(name, _ string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.deleted = append(k.deleted, name)
	k.clusters = slices.DeleteFunc(k.clusters, func(c string) bool { return c == name })
	if n, ok := k.late[name]; ok {
		k.late[name] = n - 1
		if n == 1 {
			k.clusters = append(k.clusters, name)
		}
	}
	return nil
}

func (k *fakeKind) List() ([]string, error) { return k.clusters, nil }

func (k *fakeKind) KubeConfig(string, bool) (string, error) {
	return "apiVersion: v1\nkind: Config\ncurrent-context: kind-a\ncontexts: [{name: kind-a, context: {cluster: kind-a, user: kind-a}}]\n" +
		"clusters: [{name: kind-a, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: kind-a, user: {}}]\n", nil
}

func (k *fakeKind) ListNodes(name string) ([]nodes.Node, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if slices.Contains(k.clusters, name) {
		return []nodes.Node{fakeNode{name + "-control-plane"}}, nil
	}
	return nil, nil
}

// fakeNode is a node that has a name and nothing else.
type fakeNode struct{ name string }

func (n fakeNode) String() string                                           { return n.name }
func (fakeNode) Role() (string, error)                                      { return "control-plane", nil }
func (fakeNode) IP() (v4, v6 string, err error)                             { return "172.18.0.2", "", nil }
func (fakeNode) SerialLogs(io.Writer) error                                 { return nil }
func (fakeNode) Command(string, ...string) exec.Cmd                         { return nil }
func (fakeNode) CommandContext(context.Context, string, ...string) exec.Cmd { return nil }

// testClusters are the clusters of a federation with two members.
func testClusters(t *testing.T, lib library, complete map[string]bool) *clusters {
	t.Helper()
	f := federation.New(t.TempDir(), "f", federation.RuntimeKind, time.Now())
	f.Members, f.Kind = []string{"member1", "member2"}, &federation.Kind{Complete: complete}
	return &clusters{
		Deps:   federation.Deps{Program: "karmadactl", Now: time.Now, Progress: progress.Discard{}},
		record: newRecord(f), lib: lib, logging: func(log.Logger) library { return lib },
	}
}

func TestDeleteAll_RemovesWhatItMadeAndNothingElse(t *testing.T) {
	lib := &fakeKind{clusters: []string{"karmada-f-host", "karmada-f-member1", "karmada-f-member2", "kind"}}
	if err := testClusters(t, lib, map[string]bool{"host": true, "member1": false}).deleteAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	// member2 has the right name, but this federation did not make it.
	if diff := cmp.Diff([]string{"karmada-f-member2", "kind"}, lib.clusters); diff != "" {
		t.Error(diff)
	}
}

func TestDelete_WaitsForNodesThatComeLate(t *testing.T) {
	lib := &fakeKind{late: map[string]int{"karmada-f-host": 1}}
	if err := testClusters(t, lib, map[string]bool{"host": false}).delete(t.Context(), "host", "remove host"); err != nil {
		t.Fatal(err)
	}
	if len(lib.clusters) != 0 || len(lib.deleted) != 2 {
		t.Errorf("left %v after deleting %v", lib.clusters, lib.deleted)
	}
}

func TestCheckNames_RefusesClustersOfOthers(t *testing.T) {
	s := testClusters(t, &fakeKind{clusters: []string{"karmada-f-host"}}, map[string]bool{"host": true})
	if err := s.checkNames(); err != nil {
		t.Errorf("its own cluster: %v", err)
	}
	s.lib = &fakeKind{clusters: []string{"karmada-f-member1"}}
	if err := s.checkNames(); err == nil || !strings.Contains(err.Error(), "karmada-f-member1") || !strings.Contains(err.Error(), "--name") {
		t.Errorf("a cluster of others: %v", err)
	}
}

func TestCreate_RecordsOnlyWhatThereIs(t *testing.T) {
	broken := errors.New("no space left")
	for name, tc := range map[string]struct {
		err  error
		want map[string]bool
	}{
		"a complete cluster":  {nil, map[string]bool{"member1": true}},
		"kind cleaned it up":  {broken, map[string]bool{}},
		"the program is dead": {errKilled, map[string]bool{"member1": false}},
	} {
		t.Run(name, func(t *testing.T) {
			lib := &fakeKind{}
			s := testClusters(t, lib, map[string]bool{})
			f := s.record.f
			lib.create = func(string) error {
				if errors.Is(tc.err, errKilled) {
					got, err := federation.Load(filepath.Dir(string(f.Dir())), f.Name)
					if err != nil {
						return err
					}
					if diff := cmp.Diff(tc.want, got.Kind.Complete); diff != "" {
						t.Error(diff)
					}
					return nil
				}
				return tc.err
			}
			err := s.create(t.Context(), "member1", newLibraryLog())
			if errors.Is(tc.err, errKilled) {
				return
			}
			if !errors.Is(err, tc.err) {
				t.Errorf("the error is %v", err)
			}
			if diff := cmp.Diff(tc.want, f.Kind.Complete); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Two federations that start at the same time choose the same free port.
func TestCreate_TakesAnotherPortWhenOneIsTaken(t *testing.T) {
	lib := &fakeKind{}
	s := testClusters(t, lib, map[string]bool{})
	var ports []int
	lib.create = func(string) error {
		port := s.record.f.Kind.Port
		ports = append(ports, port)
		if len(ports) > 1 {
			return nil
		}
		l, err := net.Listen("tcp", net.JoinHostPort(federation.Loopback, strconv.Itoa(port)))
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = l.Close() })
		return errors.New("port is already allocated")
	}
	if err := s.create(t.Context(), hostCluster, newLibraryLog()); err != nil || len(ports) != 2 || ports[0] == ports[1] {
		t.Errorf("%v after the ports %v", err, ports)
	}
	lib.create = func(string) error { return errors.New("no space left") }
	if err := s.create(t.Context(), hostCluster, newLibraryLog()); err == nil {
		t.Error("a start without space succeeds")
	}
}

var errKilled = errors.New("killed")

func TestCreate_RemovesTheNodesWhenItIsInterrupted(t *testing.T) {
	gone := make(chan struct{})
	lib := &fakeKind{}
	lib.create = func(string) error { <-gone; return errors.New("its node is gone") }
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	slow := &slowKind{fakeKind: lib, gone: gone}
	s := testClusters(t, slow, map[string]bool{})
	if err := s.create(ctx, "member1", newLibraryLog()); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("the error is %v", err)
	}
	if made := s.record.made(); len(made) != 0 {
		t.Errorf("it has recorded %v", made)
	}
}

// slowKind goes on creating until the nodes are taken away.
type slowKind struct {
	*fakeKind
	once sync.Once
	gone chan struct{}
}

func (k *slowKind) Delete(name, kubeconfig string) error {
	k.once.Do(func() { close(k.gone) })
	return k.fakeKind.Delete(name, kubeconfig)
}

func TestTemplate(t *testing.T) {
	for name, tc := range map[string]struct{ config, want string }{
		"none":             {"", ""},
		"flow style":       {"kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking: {disableDefaultCNI: true}\nnodes: [{role: control-plane}, {role: worker}]", ""},
		"another kind":     {"kind: Pod\napiVersion: v1", "v1 Pod"},
		"an unknown field": {"kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodez: []", "nodez"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := template(tc.config)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v", err)
			}
			if err == nil && len(cfg.Nodes) == 0 {
				t.Error("there are no nodes")
			}
		})
	}
}

func TestSaveKubeconfig_HasTheNameInTheFederation(t *testing.T) {
	r := testClusters(t, nil, nil).record
	if err := saveKubeconfig(&fakeKind{}, r, "member1"); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(r.kubeconfig("member1"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), "current-context: member1") || strings.Contains(string(data), "kind-a") {
		t.Errorf("the kubeconfig is\n%s", data)
	}
	if got := renameContext(clientcmdapi.NewConfig(), "a"); got.CurrentContext != "" {
		t.Errorf("a kubeconfig without a context gives %v", got)
	}
}

func TestWithRepository(t *testing.T) {
	images := []string{"registry.k8s.io/etcd@sha256:1", "import-1@sha256:2", "registry.k8s.io/kube-apiserver:v1.36.3", "registry.k8s.io/etcd:3.6.8-0"}
	if got, ok := withRepository(images, "/etcd"); !ok || got != "registry.k8s.io/etcd:3.6.8-0" {
		t.Errorf("got %q, %t", got, ok)
	}
	if got, ok := withRepository(images, "/nothing"); ok {
		t.Errorf("got %q", got)
	}
}

func TestLibraryLogger_KeepsTheStepAndTheWarnings(t *testing.T) {
	logged := newLibraryLog()
	l := libraryLogger{logged}
	l.V(0).Infof(" • %s  ...\n", "Starting control-plane 🕹️")
	l.V(1).Info(" • something deep  ...")
	l.V(0).Info(" ✓ Preparing nodes 📦\n")
	if got := logged.step(); got != "kind: Starting control-plane" {
		t.Errorf("the step is %q", got)
	}
	l.Warn("cgroup v1 is deprecated")
	failed := &exec.RunError{Command: []string{"docker", "run"}, Output: []byte("a\nport is taken\n\nRun 'docker run --help' for more information\n"), Inner: errors.New("exit status 1")}
	err := logged.explain(failed)
	for _, want := range []string{"cgroup v1 is deprecated", "port is taken", "exit status 1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not mention %q", err, want)
		}
	}
}

func TestFindEngine_NamesWhatIsMissing(t *testing.T) {
	t.Setenv("PATH", "")
	_, err := findEngine(t.Context(), func(string) string { return "" })
	for _, want := range []string{"docker is not on the PATH", "podman", "--runtime"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not mention %q", err, want)
		}
	}
	_, err = findEngine(t.Context(), func(string) string { return "lxc" })
	if err == nil || !strings.Contains(err.Error(), `"lxc"`) {
		t.Errorf("an unknown engine: %v", err)
	}
}

func TestNodeURL(t *testing.T) {
	lib := &fakeKind{clusters: []string{"a"}}
	for _, tt := range []struct{ name, cluster, server, want string }{
		{"a kind cluster", "a", "https://127.0.0.1:1", "https://172.18.0.2:6443"},
		{"another server in its context", "a", "https://127.0.0.1:2", ""},
		{"a cluster of another machine", "b", "https://127.0.0.1:1", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := nodeURL(lib, tt.cluster, tt.server); err != nil || got != tt.want {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
	if got, err := NodeURL(t.Context(), func(string) string { return "" }, "member1", "https://127.0.0.1:1"); got != "" || err != nil {
		t.Errorf("a context that is not kind's: %q, %v", got, err)
	}
}

func TestSeparate(t *testing.T) {
	k, members := &federation.Kind{}, []string{"member1", "member2", "member3", "member4", "member5"}
	subnet := func(member, config string) string {
		cfg, err := template(config)
		if err != nil {
			t.Fatal(err)
		}
		separate(cfg, k, member, members)
		return cfg.Networking.PodSubnet
	}
	const own = "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking: "
	for _, tc := range []struct{ member, config, want string }{
		{"member1", "", "10.160.0.0/16"},
		{"member2", "", "10.161.0.0/16"},
		{"member1", "", "10.160.0.0/16"},
		{"member3", own + "{podSubnet: 10.7.0.0/16}", "10.7.0.0/16"},
		{"member4", own + "{ipFamily: ipv6}", "fd00:10:244::/56"},
		{"member5", "", "10.162.0.0/16"},
	} {
		if got := subnet(tc.member, tc.config); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.member, got, tc.want)
		}
	}
	members = []string{"member1", "member5", "member6"}
	if got := subnet("member6", ""); got != "10.161.0.0/16" {
		t.Errorf("the subnet of a member that left is not used again: %s", got)
	}
}

func TestUncolored(t *testing.T) {
	var out strings.Builder
	u := &uncolored{to: &out}
	for _, part := range []string{"[\x1b[0;3", "2m  OK  \x1b[0m] Started\nnext ", "line\nno", strings.Repeat("x", maxLine)} {
		if n, err := u.Write([]byte(part)); err != nil || n != len(part) {
			t.Fatal(n, err)
		}
	}
	if want := "[  OK  ] Started\nnext line\nno" + strings.Repeat("x", maxLine); out.String() != want {
		t.Errorf("got %.80q", out.String())
	}
}
