package local

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/exec"
	"sigs.k8s.io/kind/pkg/log"
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

func kindFederation(t *testing.T, complete map[string]bool) *Federation {
	t.Helper()
	return &Federation{
		Name: "f", Runtime: RuntimeKind, Members: []string{"member1", "member2"}, dir: filepath.Join(t.TempDir(), "f"),
		Kind: &kindState{Complete: complete},
	}
}

func TestDeleteClusters_RemovesWhatItMadeAndNothingElse(t *testing.T) {
	f := kindFederation(t, map[string]bool{"host": true, "member1": false})
	lib := &fakeKind{clusters: []string{"karmada-f-host", "karmada-f-member1", "karmada-f-member2", "kind"}}
	if err := f.deleteClusters(testDeps(), lib); err != nil {
		t.Fatal(err)
	}
	// member2 has the right name, but somebody else made it.
	if diff := cmp.Diff([]string{"karmada-f-member2", "kind"}, lib.clusters); diff != "" {
		t.Error(diff)
	}
}

func TestDeleteCluster_WaitsForNodesThatComeLate(t *testing.T) {
	f := kindFederation(t, map[string]bool{"host": false})
	lib := &fakeKind{late: map[string]int{"karmada-f-host": 1}}
	if err := f.deleteCluster(testDeps(), lib, "host", "remove host"); err != nil {
		t.Fatal(err)
	}
	if len(lib.clusters) != 0 || len(lib.deleted) != 2 {
		t.Errorf("left %v after deleting %v", lib.clusters, lib.deleted)
	}
}

func TestCheckNames_RefusesClustersOfOthers(t *testing.T) {
	s := &kindStarter{Deps: testDeps(), f: kindFederation(t, map[string]bool{"host": true}), lib: &fakeKind{clusters: []string{"karmada-f-host"}}}
	if err := s.checkNames(); err != nil {
		t.Errorf("its own cluster: %v", err)
	}
	s.lib = &fakeKind{clusters: []string{"karmada-f-member1"}}
	if err := s.checkNames(); err == nil || !strings.Contains(err.Error(), "karmada-f-member1") || !strings.Contains(err.Error(), "--name") {
		t.Errorf("the cluster of somebody else: %v", err)
	}
}

func TestCreate_RemembersOnlyWhatThereIs(t *testing.T) {
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
			f := kindFederation(t, map[string]bool{})
			lib := &fakeKind{create: func(string) error {
				if errors.Is(tc.err, errKilled) {
					got, err := loadFederation(f)
					if err != nil {
						return err
					}
					if diff := cmp.Diff(tc.want, got.Kind.Complete); diff != "" {
						t.Error(diff)
					}
					return nil
				}
				return tc.err
			}}
			s := &kindStarter{Deps: testDeps(), f: f, lib: lib, reporting: func(log.Logger) kindLibrary { return lib }}
			err := s.create(t.Context(), "member1", newSayings())
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

var errKilled = errors.New("killed")

func loadFederation(f *Federation) (*Federation, error) { return Load(filepath.Dir(f.dir), f.Name) }

func TestCreate_TakesAwayTheNodesWhenItIsInterrupted(t *testing.T) {
	f := kindFederation(t, map[string]bool{})
	gone := make(chan struct{})
	lib := &fakeKind{}
	lib.create = func(string) error { <-gone; return errors.New("its node is gone") }
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	slow := &slowKind{fakeKind: lib, gone: gone}
	s := &kindStarter{Deps: testDeps(), f: f, lib: slow, reporting: func(log.Logger) kindLibrary { return slow }}
	if err := s.create(ctx, "member1", newSayings()); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("the error is %v", err)
	}
	if len(f.Kind.Complete) != 0 {
		t.Errorf("it remembers %v", f.Kind.Complete)
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

func TestCheckRuntime(t *testing.T) {
	processes, kind := &Federation{Name: "f"}, &Federation{Name: "f", Runtime: RuntimeKind}
	for name, tc := range map[string]struct {
		f       *Federation
		request UpRequest
		want    string
	}{
		"as before":                     {processes, UpRequest{Nodes: -1}, ""},
		"another runtime":               {processes, UpRequest{Runtime: RuntimeKind, Nodes: -1}, "--purge"},
		"an image for processes":        {processes, UpRequest{Kind: KindRequest{Image: "a.tar"}, Nodes: -1}, "--runtime kind"},
		"simulated nodes of containers": {kind, UpRequest{Nodes: 2}, "--nodes"},
		"kind again":                    {kind, UpRequest{Runtime: RuntimeKind, Nodes: -1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.f.checkRuntime(tc.request)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	if err := validateRuntime("docker"); err == nil || !strings.Contains(err.Error(), "process, kind") {
		t.Errorf("an unknown runtime: %v", err)
	}
}

func TestTemplate(t *testing.T) {
	for name, tc := range map[string]struct{ config, want string }{
		"none":             {"", ""},
		"flow style":       {"kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking: {disableDefaultCNI: true}\nnodes: [{role: control-plane}, {role: worker}]", ""},
		"another kind":     {"kind: Pod\napiVersion: v1", "v1 Pod"},
		"an unknown field": {"kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodez: []", "nodez"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := (&kindState{Config: tc.config}).template()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v", err)
			}
			if err == nil && len(cfg.Nodes) == 0 {
				t.Error("there are no nodes")
			}
		})
	}
}

func TestSaveKindKubeconfig_HasTheNameInTheFederation(t *testing.T) {
	f := kindFederation(t, nil)
	if err := f.saveKindKubeconfig(&fakeKind{}, "member1"); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(f.kindKubeconfig("member1"))
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

func TestKindLogger_TellsTheStepAndTheComplaints(t *testing.T) {
	said := newSayings()
	l := kindLogger{said}
	l.V(0).Infof(" • %s  ...\n", "Starting control-plane 🕹️")
	l.V(1).Info(" • something deep  ...")
	l.V(0).Info(" ✓ Preparing nodes 📦\n")
	if got := said.last(); got != "kind: Starting control-plane" {
		t.Errorf("the step is %q", got)
	}
	l.Warn("cgroup v1 is deprecated")
	failed := &exec.RunError{Command: []string{"docker", "run"}, Output: []byte("a\nport is taken\n"), Inner: errors.New("exit status 1")}
	err := said.explain(failed)
	for _, want := range []string{"cgroup v1 is deprecated", "port is taken", "exit status 1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not mention %q", err, want)
		}
	}
}

func TestFindEngine_SaysWhatIsMissing(t *testing.T) {
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

func TestKindNodeURL(t *testing.T) {
	lib := &fakeKind{clusters: []string{"a"}}
	for _, tt := range []struct{ name, cluster, server, want string }{
		{"a kind cluster", "a", "https://127.0.0.1:1", "https://172.18.0.2:6443"},
		{"another server in its context", "a", "https://127.0.0.1:2", ""},
		{"a cluster of another machine", "b", "https://127.0.0.1:1", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := kindNodeURL(lib, tt.cluster, tt.server); err != nil || got != tt.want {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
	if got, err := KindNodeURL(t.Context(), func(string) string { return "" }, "member1", "https://127.0.0.1:1"); got != "" || err != nil {
		t.Errorf("a context that is not kind's: %q, %v", got, err)
	}
}
