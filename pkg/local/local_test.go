package local

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
	"github.com/karmada-toolkit/karmada/pkg/local/federation/federationtest"
	"github.com/karmada-toolkit/karmada/pkg/local/kindcluster"
	"github.com/karmada-toolkit/karmada/pkg/local/process"
)

// asBefore is a request that changes nothing.
func asBefore() process.Request { return process.Request{Nodes: federation.NodeSpec{Count: -1}} }

func TestPrepare(t *testing.T) {
	root := t.TempDir()
	f, err := prepare(federationtest.Deps(), UpRequest{Root: root, Name: "a", Members: -1, Process: asBefore()})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Members) != defaultMembers || f.NodeSpec.Count != defaultNodes {
		t.Errorf("a new federation has %d members and %d nodes", len(f.Members), f.NodeSpec.Count)
	}
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	again, err := prepare(federationtest.Deps(), UpRequest{Root: root, Name: "a", Members: 3, Process: asBefore()})
	if err != nil || len(again.Members) != 3 || again.NodeSpec.Count != defaultNodes {
		t.Errorf("growing: %+v, %v", again, err)
	}
	for _, bad := range []UpRequest{
		{Root: root, Name: "Not A Name"},
		{Root: root, Name: "a", Members: maxMembers + 1},
	} {
		if _, err := prepare(federationtest.Deps(), bad); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

func TestCheckRuntime(t *testing.T) {
	processes, kind := federation.New("", "f", "", time.Time{}), federation.New("", "f", RuntimeKind, time.Time{})
	for name, tc := range map[string]struct {
		f       *Federation
		request UpRequest
		want    string
	}{
		"as before":                     {processes, UpRequest{Process: asBefore()}, ""},
		"another runtime":               {processes, UpRequest{Runtime: RuntimeKind, Process: asBefore()}, "--purge"},
		"an image for processes":        {processes, UpRequest{Kind: kindcluster.Request{Image: "a.tar"}, Process: asBefore()}, "--runtime kind"},
		"simulated nodes of containers": {kind, UpRequest{Process: process.Request{Nodes: federation.NodeSpec{Count: 2}}}, "--nodes"},
		"kind again":                    {kind, UpRequest{Runtime: RuntimeKind, Process: asBefore()}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkRuntime(tc.f, tc.request)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	if err := validateRuntime("docker"); err == nil || !strings.Contains(err.Error(), "process, kind") {
		t.Errorf("an unknown runtime: %v", err)
	}
}

func TestCheckRemoval(t *testing.T) {
	f := federation.New("", "f", "", time.Time{})
	f.Members = []string{"member1", "member2"}
	if _, err := checkRemoval(federationtest.Deps(), f, []string{"member2"}); err != nil {
		t.Error(err)
	}
	if _, err := checkRemoval(federationtest.Deps(), f, []string{"member3"}); err == nil || !strings.Contains(err.Error(), "it has member1, member2") {
		t.Errorf("an unknown member: %v", err)
	}
	f.Runtime = RuntimeKind
	if _, err := checkRemoval(federationtest.Deps(), f, []string{"member2"}); err == nil || !strings.Contains(err.Error(), "karmadactl unjoin") {
		t.Errorf("a kind cluster: %v", err)
	}
}

func TestRemoveMembers_NeedsTheControlPlane(t *testing.T) {
	root := t.TempDir()
	f := federation.New(root, "f", "", time.Now())
	f.Members = []string{"member1"}
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	err := RemoveMembers(t.Context(), federationtest.Deps(), root, "f", []string{"member1"})
	if err == nil || !strings.Contains(err.Error(), "karmadactl local up --name f --dir "+root) {
		t.Errorf("got %v", err)
	}
	if again, err := Load(root, "f"); err != nil || !slices.Equal(again.Members, []string{"member1"}) {
		t.Errorf("the member is gone: %v, %v", again, err)
	}
}

// fakeRuntime records what is started and joined.
type fakeRuntime struct {
	Runtime

	kubeconfig string
	fails      map[string]error

	mu    sync.Mutex
	calls []string
}

func (r *fakeRuntime) call(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, name)
}

func (r *fakeRuntime) Start(ctx context.Context, cluster string) ([]string, error) {
	if cluster != federation.ControlPlane && len(r.fails) > 0 {
		<-ctx.Done() // it is still starting when another fails
		return nil, context.Cause(ctx)
	}
	r.call("start " + cluster)
	return []string{r.kubeconfig}, r.fails[cluster]
}

func (r *fakeRuntime) Join(_ context.Context, member string) error {
	r.call("join " + member)
	return nil
}

func TestStart(t *testing.T) {
	f := federation.New(t.TempDir(), "f", "", time.Now())
	f.Members = []string{"member1", "member2"}
	kubeconfig := t.TempDir() + "/kubeconfig"
	if err := os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &fakeRuntime{kubeconfig: kubeconfig}
	if err := start(t.Context(), r, f, nil); err != nil {
		t.Fatal(err)
	}
	control := slices.Index(r.calls, "start "+federation.ControlPlane)
	for _, member := range f.Members {
		started, joined := slices.Index(r.calls, "start "+member), slices.Index(r.calls, "join "+member)
		if started < 0 || joined < max(started, control) {
			t.Errorf("%s does not join after it and the control plane are ready: %q", member, r.calls)
		}
	}
	broken := errors.New("no port is free")
	r = &fakeRuntime{fails: map[string]error{federation.ControlPlane: broken}}
	if err := start(t.Context(), r, f, nil); !errors.Is(err, broken) || len(r.calls) != 1 {
		t.Errorf("without a control plane: %v, %q", err, r.calls)
	}
}

func TestStart_OnlySomeParts(t *testing.T) {
	f := federation.New(t.TempDir(), "f", "", time.Now())
	f.Members = []string{"member1", "member2", "member3"}
	write := func(path string, names ...string) string {
		config := clientcmdapi.NewConfig()
		for _, name := range names {
			config.Contexts[name] = &clientcmdapi.Context{Cluster: name}
		}
		if err := clientcmd.WriteToFile(*config, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	write(f.Dir().Kubeconfig(), federation.ControlPlane, "member1", "member2", "member3")
	r := &fakeRuntime{kubeconfig: write(t.TempDir()+"/kubeconfig", "member2")}
	if err := start(t.Context(), r, f, []string{federation.Agent("member2"), "member3"}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(r.calls)
	if want := []string{"join member2", "join member3", "start " + federation.ControlPlane, "start member2", "start member3"}; !slices.Equal(r.calls, want) {
		t.Errorf("got %q, want %q", r.calls, want)
	}
	config, err := clientcmd.LoadFromFile(f.Dir().Kubeconfig())
	if err != nil || len(config.Contexts) != 4 || config.CurrentContext != federation.ControlPlane {
		t.Errorf("the kubeconfig has %d contexts, %v", len(config.Contexts), err)
	}
}

func TestReadyNow_NotOfAPartThatStopped(t *testing.T) {
	for _, tc := range []struct{ state, condition, want string }{
		{federation.StateRunning, "True", "True"},
		{federation.StateStopped, "True", "Unknown"},
		{federation.StateStopped, "False", "False"},
		{federation.StateStopped, "", ""},
	} {
		if got := readyNow(tc.state, tc.condition); got != tc.want {
			t.Errorf("%+v: got %q", tc, got)
		}
	}
}

func TestDescribeMembers(t *testing.T) {
	answers := map[string]string{
		"/api": `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"cluster.karmada.io","versions":[{"groupVersion":"cluster.karmada.io/v1alpha1","version":"v1alpha1"}],` +
			`"preferredVersion":{"groupVersion":"cluster.karmada.io/v1alpha1","version":"v1alpha1"}}]}`,
		"/apis/cluster.karmada.io/v1alpha1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"cluster.karmada.io/v1alpha1",` +
			`"resources":[{"name":"clusters","kind":"Cluster","verbs":["list"]}]}`,
		"/apis/cluster.karmada.io/v1alpha1/clusters": `{"kind":"ClusterList","apiVersion":"cluster.karmada.io/v1alpha1","items":[{"metadata":{"name":"m1"}},` +
			`{"metadata":{"name":"m2","annotations":{"cluster.karmada.io/flapping-until":"2026-05-01T12:05:00Z"}},"spec":{"taints":[{"key":"cluster.karmada.io/flapping","effect":"NoSchedule"}]}},` +
			`{"metadata":{"name":"m3"},"spec":{"taints":[{"key":"cluster.karmada.io/flapping","effect":"NoSchedule"}]}}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answers[r.URL.Path] == "" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answers[r.URL.Path])
	}))
	defer server.Close()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"], config.Contexts["c"], config.CurrentContext = &clientcmdapi.Cluster{Server: server.URL}, &clientcmdapi.Context{Cluster: "c"}, "c"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	taints := func(c *clusterv1alpha1.Cluster) (text string) {
		for _, t := range c.Spec.Taints {
			text += t.Key + " " + c.Annotations[clusterv1alpha1.FlappingUntilAnnotation]
		}
		return text
	}
	for name, tc := range map[string]struct {
		members []string
		want    map[string]string
	}{
		"one with a text": {[]string{"m1", "m2"}, map[string]string{"m2": "cluster.karmada.io/flapping 2026-05-01T12:05:00Z"}},
		"another":         {[]string{"m3"}, map[string]string{"m3": "cluster.karmada.io/flapping "}},
		"none":            {[]string{"m1"}, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := describe(t.Context(), path, tc.members, taints); err != nil || !maps.Equal(got, tc.want) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	server.Close()
	if _, err := describe(t.Context(), path, []string{"m2"}, taints); err == nil {
		t.Error("no error without a control plane")
	}
}
