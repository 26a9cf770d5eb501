//go:build integration

// Covers pkg/controlplane/controllers/agentcsr.

package controllers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

// attempt is one request that an agent makes for what is not its own.
type attempt struct {
	verb, path string
	body       []byte
}

func (a attempt) String() string { return a.verb + " " + a.path }

// apiMethods are the HTTP methods of verbs.
var apiMethods = map[string]string{
	"get": http.MethodGet, "list": http.MethodGet, "watch": http.MethodGet, "create": http.MethodPost,
	"update": http.MethodPut, "patch": http.MethodPatch, "delete": http.MethodDelete, "deletecollection": http.MethodDelete,
}

// everyUser reports which requests every user may make, and what the contract lets all
// agents read.
func everyUser(group, resource, verb string) bool {
	switch resource {
	case "selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews":
		return verb == "create"
	case "resourceinterpretercustomizations", "resourceinterpreterwebhookconfigurations":
		return group == "config.karmada.io" && slices.Contains([]string{"get", "list", "watch"}, verb)
	case "certificatesigningrequests": // what comes of it is tested apart
		return verb == "create"
	case "clusters": // shows nothing of others, which is tested apart
		return verb == "list" || verb == "watch"
	}
	return false
}

// attempts are all verbs on all kinds that live in the namespaces, or in none.
func attempts(t *testing.T, config *rest.Config, namespaces, objects []string) []attempt {
	t.Helper()
	disc, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := disc.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	var out []attempt
	for _, list := range lists {
		prefix, group := "/apis/"+list.GroupVersion, strings.Split(list.GroupVersion, "/")[0]
		if list.GroupVersion == "v1" {
			prefix, group = "/api/v1", ""
		}
		for _, r := range list.APIResources {
			for _, verb := range append(slices.Clone(r.Verbs), verbsOf(r)...) {
				if apiMethods[verb] == "" || everyUser(group, r.Name, verb) {
					continue
				}
				spaces := namespaces
				if len(spaces) == 0 {
					spaces = []string{""}
				}
				if r.Namespaced != (len(namespaces) > 0) {
					continue
				}
				for _, space := range spaces {
					out = append(out, attemptsOn(prefix, list.GroupVersion, space, verb, r, objects)...)
				}
			}
		}
	}
	return out
}

// verbsOf are further verbs worth trying on a subresource, whatever it offers.
func verbsOf(r metav1.APIResource) []string {
	if strings.Contains(r.Name, "/") {
		return []string{"get", "create", "update", "patch"}
	}
	return nil
}

func attemptsOn(prefix, gv, space, verb string, r metav1.APIResource, objects []string) []attempt {
	resource, sub, _ := strings.Cut(r.Name, "/")
	base := prefix
	if space != "" {
		base += "/namespaces/" + space
	}
	base += "/" + resource
	if sub == "" && !slices.Contains([]string{"get", "update", "patch", "delete"}, verb) {
		if verb == "watch" {
			return []attempt{{verb, base + "?watch=true&timeoutSeconds=1", nil}}
		}
		if verb != "create" {
			return []attempt{{verb, base, nil}}
		}
	}
	var out []attempt
	for _, name := range objects {
		path := base
		if verb != "create" || sub != "" {
			path += "/" + name
		}
		if sub != "" {
			path += "/" + sub
		}
		out = append(out, attempt{verb, path, attemptBody(gv, space, verb, r.Kind, name)})
	}
	return out
}

// attemptBody is an object that is valid where an agent may create one at all.
func attemptBody(gv, space, verb, kind, name string) []byte {
	if verb == "patch" {
		return []byte(`{"metadata":{"labels":{"a":"b"}}}`)
	}
	if verb != "create" && verb != "update" {
		return nil
	}
	obj := map[string]any{"apiVersion": gv, "kind": kind, "metadata": map[string]any{"name": name, "namespace": space}}
	about := map[string]any{"kind": "Cluster", "name": "m2", "apiVersion": "cluster.karmada.io/v1alpha1"}
	if space != metav1.NamespaceDefault {
		about["namespace"] = space
	}
	switch {
	case kind == "Event" && gv == "v1":
		obj["involvedObject"], obj["reason"], obj["type"] = about, "Lie", "Normal"
	case kind == "Event":
		obj["regarding"], obj["reason"], obj["type"], obj["action"] = about, "Lie", "Normal", "Lying"
		obj["reportingController"], obj["reportingInstance"] = "c", "i"
		obj["eventTime"] = "2026-05-01T12:00:00.000000Z"
	case kind == "Secret":
		obj["type"] = "Opaque"
	}
	data, err := json.Marshal(obj)
	if err != nil {
		panic(err)
	}
	return data
}

// tryAttempt makes a request and returns the status code.
func tryAttempt(ctx context.Context, c *http.Client, host string, a attempt) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, apiMethods[a.verb], host+a.path, bytes.NewReader(a.body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	if a.verb == "patch" {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
	return resp.StatusCode, string(text), nil
}

func TestAgent_IsDeniedAllThatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	p := startAgentPlane(t)
	own, other := p.mustEnrol(t, "m1", "id-1"), p.mustEnrol(t, "m2", "id-2")
	furnish(t, p.admin, other)
	httpClient, err := rest.HTTPClientFor(own.Config)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ namespaces, objects []string }{
		"the execution namespace of another cluster": {[]string{"karmada-es-m2"}, []string{"m2", "work", "m1"}},
		"the namespace of the control plane":         {[]string{"karmada-system"}, []string{"karmada-agent-m2", "m2", "karmada-scheduler"}},
		"credentials and leases of another cluster":  {[]string{"karmada-cluster"}, []string{"m2", "m2-impersonator", "m2-abandoned"}},
		"the namespaces of Kubernetes and of users":  {[]string{"kube-system", "kube-public", "default"}, []string{"m2", "m1"}},
		"objects without a namespace": {nil, []string{
			"m2", "karmada-es-m2", "karmada-system", "kube-system", "system:karmada:m2:agent", "system:karmada:m1:agent", "cluster-admin", "agents.karmada.io",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			count := 0
			for _, a := range attempts(t, p.home.Config, tc.namespaces, tc.objects) {
				code, text, err := tryAttempt(t.Context(), httpClient, own.Config.Host, a)
				if err != nil {
					t.Fatalf("%s: %v", a, err)
				}
				if code != http.StatusForbidden && code != http.StatusMethodNotAllowed && code != http.StatusNotFound {
					t.Errorf("%s is answered %d: %s", a, code, text)
				}
				// The API server reports that there is no such event before admission runs.
				event := strings.Contains(a.path, "/namespaces/default/events/") && a.verb == "patch"
				if code == http.StatusNotFound && !event && !strings.Contains(text, "the server could not find the requested resource") {
					t.Errorf("%s was allowed, and only not found: %s", a, text)
				}
				count++
			}
			if count < 100 {
				t.Errorf("only %d requests were tried", count)
			}
			t.Logf("%d requests denied", count)
		})
	}
	foreign := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: "foreign.1"},
		InvolvedObject: corev1.ObjectReference{Kind: "Cluster", Name: "m2"}, Reason: "Fine", Type: corev1.EventTypeNormal,
	}
	if err := p.admin.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	t.Run("it sees no other cluster", func(t *testing.T) { seesOnlyItself(t, own) })
	t.Run("it may work", func(t *testing.T) { mayWork(t, p.admin, own) })
	t.Run("it may not change what others decide about it", func(t *testing.T) { keepsDecisions(t, p.admin, own) })
}

// furnish writes what the control plane and the agent of a cluster write.
func furnish(t *testing.T, admin client.Client, i *member.Identity) {
	t.Helper()
	c, err := client.New(i.Config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	if err := admin.Create(t.Context(), &workv1alpha1.Work{ObjectMeta: meta("karmada-es-"+i.Cluster, "work")}); err != nil {
		t.Fatal(err)
	}
	label := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"used":"yes"}}}`))
	for _, obj := range []client.Object{
		&corev1.Secret{ObjectMeta: meta("karmada-cluster", i.Cluster)},
		&corev1.Secret{ObjectMeta: meta("karmada-cluster", i.Cluster+"-impersonator")},
		&coordinationv1.Lease{ObjectMeta: meta("karmada-cluster", i.Cluster)},
		&coordinationv1.Lease{ObjectMeta: meta("karmada-system", "karmada-agent-"+i.Cluster)},
	} {
		if err := c.Patch(t.Context(), obj, label); err != nil {
			t.Fatal(err)
		}
	}
}

func seesOnlyItself(t *testing.T, i *member.Identity) {
	t.Helper()
	list := &clusterv1alpha1.ClusterList{}
	if err := i.Client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Name != i.Cluster {
		t.Errorf("it lists %d clusters", len(list.Items))
	}
	err := i.Client.List(t.Context(), list, client.MatchingFields{"metadata.name": "m2"})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("asked for another by name it lists %d clusters: %v", len(list.Items), err)
	}
	httpClient, err := rest.HTTPClientFor(i.Config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, i.Config.Host+"/apis/cluster.karmada.io/v1alpha1/clusters?watch=true&timeoutSeconds=5", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(resp.Body)
	if strings.Contains(string(text), `"name":"m2"`) || !strings.Contains(string(text), `"name":"m1"`) {
		t.Errorf("it watches %s", text)
	}
}

// mayWork does what an agent does.
func mayWork(t *testing.T, admin client.Client, i *member.Identity) {
	t.Helper()
	furnish(t, admin, i)
	c, err := client.New(i.Config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "work"}}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "m1"}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "m1"}}
	own := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
	event := func(namespace, kind, name string) *corev1.Event {
		return &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: name + ".1"},
			InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name, Namespace: namespace}, Reason: "Fine", Type: corev1.EventTypeNormal,
		}
	}
	label := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"a":"b"}}}`))
	status := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"r","message":"m","lastTransitionTime":"2026-05-01T12:00:00Z"}]}}`))
	spec := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"apiEndpoint":"https://10.0.0.1:6443","secretRef":{"namespace":"karmada-cluster","name":"m1"},"impersonatorSecretRef":{"namespace":"karmada-cluster","name":"m1-impersonator"}}}`))
	for what, do := range map[string]func() error{
		"list works":                     func() error { return c.List(ctx, &workv1alpha1.WorkList{}, client.InNamespace("karmada-es-m1")) },
		"patch a work":                   func() error { return c.Patch(ctx, work.DeepCopy(), label) },
		"report on a work":               func() error { return c.Status().Patch(ctx, work.DeepCopy(), status) },
		"renew its lease":                func() error { return c.Patch(ctx, lease, label) },
		"change its secret":              func() error { return c.Patch(ctx, secret, label) },
		"describe itself":                func() error { return c.Patch(ctx, own.DeepCopy(), spec) },
		"report on itself":               func() error { return c.Status().Patch(ctx, own.DeepCopy(), status) },
		"record an event of its Work":    func() error { return c.Create(ctx, event("karmada-es-m1", "Work", "work")) },
		"record an event of its Cluster": func() error { return c.Create(ctx, event("default", "Cluster", "m1")) },
		"read its namespace":             func() error { return c.Get(ctx, client.ObjectKey{Name: "karmada-es-m1"}, &corev1.Namespace{}) },
	} {
		if err := do(); err != nil {
			t.Errorf("it may not %s: %v", what, err)
		}
	}
	foreign := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "foreign.1"}}
	if err := c.Patch(ctx, foreign, label); !apierrors.IsForbidden(err) {
		t.Errorf("it may change an event of another cluster: %v", err)
	}
}

// keepsDecisions tries to change what decides what is sent to the cluster, and to
// refer to the credentials of others.
func keepsDecisions(t *testing.T, admin client.Client, i *member.Identity) {
	t.Helper()
	// Taints come and go with the condition Ready, but for this one.
	before := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
	kept := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"taints":[{"key":"kept","effect":"NoExecute"}]}}`))
	if err := admin.Patch(t.Context(), before, kept); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		err := admin.Get(ctx, client.ObjectKey{Name: "m1"}, before)
		if err == nil && len(before.Finalizers) == 0 {
			err = errors.New("the cluster has no finalizer yet")
		}
		return err
	})
	for _, patch := range []string{
		`{"spec":{"impersonatorSecretRef":{"namespace":"karmada-cluster","name":"m2-impersonator"}}}`,
		`{"spec":{"secretRef":{"namespace":"kube-system","name":"m1"}}}`,
		`{"spec":{"syncMode":"Push"}}`,
		`{"spec":{"id":"id-9"}}`,
		`{"spec":{"taints":[]}}`,
		`{"spec":{"provider":"p"}}`,
		`{"spec":{"region":"eu"}}`,
		`{"spec":{"zones":["eu-1"]}}`,
		`{"spec":{"zone":"eu-1"}}`,
		`{"spec":{"resourceModels":[]}}`,
		`{"spec":{"resourceModels":[{"grade":0,"ranges":[{"name":"cpu","min":"0","max":"9223372036854775807"}]}]}}`,
		`{"spec":{"apiEndpoint":"https://10.0.0.2:6443"}}`,
		`{"spec":{"proxyURL":"http://10.0.0.2"}}`,
		`{"spec":{"proxyHeader":{"a":"b"}}}`,
		`{"metadata":{"labels":{"env":"prod"}}}`,
		`{"metadata":{"finalizers":null}}`,
		`{"metadata":{"annotations":{"cluster.karmada.io/credentials-namespace":"kube-system"}}}`,
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"default","uid":"u"}]}}`,
	} {
		target := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
		err := i.Client.Patch(t.Context(), target, client.RawPatch("application/merge-patch+json", []byte(patch)))
		if err == nil {
			t.Errorf("it may write %s", patch)
		} else if !strings.Contains(err.Error(), "an agent may") {
			t.Errorf("%s is refused without a reason: %v", patch, err)
		}
	}
}

func (p *agentPlane) takesRightsBack(t *testing.T) {
	i := p.mustEnrol(t, "removed", "id-removed")
	if err := p.admin.Delete(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "removed"}}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, 30*time.Second, func(ctx context.Context) error {
		err := i.Client.Get(ctx, client.ObjectKey{Name: "removed"}, &clusterv1alpha1.Cluster{})
		if err == nil || !strings.Contains(err.Error(), "forbidden") {
			return fmt.Errorf("it still gets an answer: %w", err)
		}
		return nil
	})
}
