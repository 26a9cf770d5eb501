package locate

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

// federation has the pod p in m1, both in m1 and m2, and a cluster m3 that refuses.
func federation(t *testing.T) (*env.Env, *bytes.Buffer) {
	t.Helper()
	const proxy = "/apis/cluster.karmada.io/v1alpha1/clusters/"
	reply := func(w http.ResponseWriter, code int, body string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = fmt.Fprint(w, body)
	}
	object := `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"x"}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := strings.TrimPrefix(r.URL.Path, proxy); path {
		case strings.TrimSuffix(proxy, "/"):
			reply(w, 200, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[{"metadata":{"name":"m1"}},{"metadata":{"name":"m2"}},{"metadata":{"name":"m3"}}]}`)
		case "m1", "m2":
			reply(w, 200, `{"kind":"Cluster","apiVersion":"cluster.karmada.io/v1alpha1","metadata":{"name":"`+path+`"}}`)
		case strings.TrimSuffix(proxy, "/clusters/"):
			reply(w, 200, `{"kind":"APIResourceList","apiVersion":"v1"}`)
		case "/apis/apps/v1/namespaces/ns/deployments", "/apis/apps/v1/deployments":
			reply(w, 200, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[]}`)
		case "m2/proxy/apis/apps/v1/namespaces/ns/deployments", "m2/proxy/apis/apps/v1/deployments":
			items := object
			if r.URL.Query().Get("labelSelector") == "app=none" {
				items = ""
			}
			reply(w, 200, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[`+items+`]}`)
		case "/apis":
			reply(w, 200, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}`)
		case "/api":
			reply(w, 200, `{"kind":"APIVersions","versions":[]}`)
		case "/apis/apps/v1":
			reply(w, 200, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":[{"name":"deployments","singularName":"deployment","shortNames":["deploy"],"namespaced":true,"kind":"Deployment","verbs":["get"]},{"name":"controllerrevisions","singularName":"controllerrevision","namespaced":true,"kind":"ControllerRevision","verbs":["get"]}]}`)
		case "/apis/apps/v1/namespaces/ns/controllerrevisions":
			reply(w, 200, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[`+object+`]}`)
		case "/apis/apps/v1/namespaces/ns/controllerrevisions/here":
			reply(w, 200, object)
		case "m1/proxy/api/v1/namespaces/ns/pods/one", "m1/proxy/api/v1/namespaces/ns/pods/both", "m2/proxy/api/v1/namespaces/ns/pods/both", "m2/proxy/apis/apps/v1/namespaces/ns/deployments/web":
			reply(w, 200, object)
		case "m1/proxy/api/v1/namespaces/ns/pods":
			items := ""
			if s := r.URL.Query().Get("labelSelector"); s == "app=one" || s == "app=both" {
				items = object
			}
			reply(w, 200, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[`+items+`]}`)
		case "m2/proxy/api/v1/namespaces/ns/pods":
			items := ""
			if r.URL.Query().Get("labelSelector") == "app=both" {
				items = object
			}
			reply(w, 200, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[`+items+`]}`)
		default:
			if strings.HasPrefix(path, "m3/") {
				reply(w, 503, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":503,"reason":"ServiceUnavailable","message":"connection refused"}`)
				return
			}
			reply(w, 404, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound","message":"not found","details":{"name":"x"}}`)
		}
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"k","contexts":[{"name":"k","context":{"cluster":"k","namespace":"ns"}}],
		"clusters":[{"name":"k","cluster":{"server":%q}}]}`, server.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", path)
	t.Setenv("KUBECACHEDIR", t.TempDir())
	errOut := &bytes.Buffer{}
	return &env.Env{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &bytes.Buffer{}, ErrOut: errOut},
		Root:      "karmadactl", Name: "karmadactl", Now: time.Now, Interruptible: context.WithCancel,
	}, errOut
}

func TestCheck(t *testing.T) {
	const refused = "cluster(m3): refused: connection refused"
	for line, tt := range map[string]struct {
		want, err, notes string
	}{
		"one":                {want: "members m1", notes: "using cluster(m1); no answer of other clusters: " + refused},
		"deploy/web":         {want: "members m2", notes: "using cluster(m2); no answer of other clusters: " + refused},
		"both":               {err: `pod "both" exists in several clusters: m1, m2; choose one with --cluster`},
		"-l app=both":        {err: `pods with labels "app=both" exist in several clusters: m1, m2; choose one with --cluster`},
		"gone":               {err: `pod "gone" not found in namespace "ns" of the clusters m1, m2, m3; no answer of ` + refused},
		"widgets/x":          {err: `the control plane has no resource type "widgets"; name the cluster with --cluster`},
		"one -s karmada":     {want: "karmada "},
		"one -s members":     {want: "members m1", notes: "using cluster(m1); no answer of other clusters: " + refused},
		"both -C m2":         {want: "members m2"},
		"both -s karmada -C": {want: "karmada m2"},
		"":                   {want: "karmada "},
		"one -s all":         {err: "not support operation scope: all; use one of [karmada members]"},
		"-l app=one":         {want: "members m1", notes: "using cluster(m1); no answer of other clusters: " + refused},
		"-l app=two":         {err: `pods with labels "app=two" not found in namespace "ns" of the clusters m1, m2, m3; no answer of ` + refused},
	} {
		t.Run(line, func(t *testing.T) {
			e, notes := federation(t)
			access := e.NewAccess()
			cmd := &cobra.Command{Use: "x", RunE: func(*cobra.Command, []string) error { return nil }, SilenceErrors: true, SilenceUsage: true}
			selector := cmd.Flags().StringP("selector", "l", "", "")
			access.Flags.Add(cmd).AddNamespace(cmd)
			access.AddTargetFlags(cmd)
			Check(e, access, cmd, func(_ *cobra.Command, args []string) Target {
				if len(args) > 0 {
					return Target{Arg: args[0]}
				}
				return Target{Selector: *selector}
			})
			cmd.SetArgs(strings.Fields(strings.Replace(line, "-s karmada -C", "-s karmada -C m2", 1)))
			err := cmd.ExecuteContext(t.Context())
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("got error %v\nwant %s", err, tt.err)
				}
				return
			}
			if got := fmt.Sprintf("%s %s", access.Target.EffectiveScope(), access.Target.Cluster); err != nil || got != tt.want {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
			if got := strings.TrimSuffix(notes.String(), "\n"); got != tt.notes {
				t.Errorf("stderr %q, want %q", got, tt.notes)
			}
		})
	}
}
