package env

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// request sends a request to the server of a kubeconfig and returns its error.
func request(t *testing.T, kubeconfig string) error {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(true)
	*flags.KubeConfig = kubeconfig
	c := &connection{
		flags: flags, kubeconfig: (&ControlPlane{flags: flags}).KubeconfigPath, program: "karmadactl", last: &atomic.Pointer[ConnectionError]{}, foreign: &atomic.Pointer[ConnectionError]{},
		unserved: &atomic.Pointer[ConnectionError]{}, defaults: limits{answer: 10 * time.Millisecond, probe: 500 * time.Millisecond, alive: 500 * time.Millisecond},
	}
	config, err := flags.WithWrapConfigFn(c.wrap).ToRESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.GroupVersion, config.NegotiatedSerializer = &schema.GroupVersion{Version: "v1"}, scheme.Codecs
	client, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.Get().AbsPath("/version").MaxRetries(0).Do(t.Context()).Error()
}

func writeKubeconfig(t *testing.T, dir, server string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	path := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConnection_ServerThatDoesNotAnswer(t *testing.T) {
	stop := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(stop) })
	failure := ConnectionFailure(request(t, writeKubeconfig(t, t.TempDir(), server.URL)))
	if failure == nil || !strings.Contains(failure.Error(), "accepted the connection and did not answer") {
		t.Errorf("got %v", failure)
	}
}

func TestConnection_SlowServerIsWaitedFor(t *testing.T) {
	probed := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/livez" {
			close(probed)
			return
		}
		select {
		case <-probed:
			w.WriteHeader(http.StatusOK)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	if err := request(t, writeKubeconfig(t, t.TempDir(), server.URL)); err != nil {
		t.Error(err)
	}
}

func TestConnection_RefusedByALocalFederation(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "demo")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := writeKubeconfig(t, dir, "http://"+address)
	want := "The connection to the server " + address + " was refused - did you specify the right host or port?"
	if failure := ConnectionFailure(request(t, path)); failure == nil || failure.Error() != want {
		t.Errorf("got %v, want %s", failure, want)
	}
	if err := os.WriteFile(filepath.Join(dir, federationFile), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	want = `the local federation "demo" is not running: ` + address + ` refuses connections; "karmadactl local up --name demo --dir ` + filepath.Dir(dir) + `" starts it`
	if failure := ConnectionFailure(request(t, path)); failure == nil || failure.Error() != want {
		t.Errorf("got %v, want %s", failure, want)
	}
	t.Setenv("XDG_STATE_HOME", "/state")
	if got := localFlags("/state/karmada/local", "demo"); got != " --name demo" {
		t.Errorf("got %q in the default directory", got)
	}
}

// roundTripFunc is a transport.
type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// The transport of a stream keeps its last connection: a probe on it would take the place of the stream.
func TestConnection_StreamsAreNotProbed(t *testing.T) {
	for _, path := range []string{"/exec", "/attach", "/portforward"} {
		var paths []string
		next := roundTripFunc(func(req *http.Request) (*http.Response, error) {
			paths = append(paths, req.URL.Path)
			return &http.Response{StatusCode: http.StatusSwitchingProtocols}, nil
		})
		tripper := &roundTripper{connection: &connection{}, limits: limits{answer: time.Nanosecond, probe: time.Nanosecond}, next: next}
		whole := "/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy/api/v1/namespaces/default/pods/x" + path
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://server"+whole, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tripper.RoundTrip(req); err != nil || len(paths) != 1 || paths[0] != whole {
			t.Errorf("%s: %v after requests for %v", path, err, paths)
		}
	}
}
