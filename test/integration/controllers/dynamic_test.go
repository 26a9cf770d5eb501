//go:build integration

// Covers pkg/controlplane/interpretation/dynamic.

package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/crds"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpretation/dynamic"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
)

// rulesRequests records what is asked of the API server. A watch that goes on from a list asks for nothing again.
type rulesRequests struct {
	next http.RoundTripper
	mu   sync.Mutex
	seen []string
}

func (r *rulesRequests) RoundTrip(req *http.Request) (*http.Response, error) {
	if query := req.URL.Query(); query.Get("watch") == "" || query.Get("sendInitialEvents") != "" {
		r.mu.Lock()
		r.seen = append(r.seen, req.Method+" "+req.URL.RequestURI())
		r.mu.Unlock()
	}
	return r.next.RoundTrip(req)
}

func (r *rulesRequests) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.seen
	r.seen = nil
	return out
}

// changedKinds records which of some kinds were affected by each change.
type changedKinds struct {
	mu    sync.Mutex
	kinds []string
}

func (c *changedKinds) listen(affects func(schema.GroupVersionKind) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, kind := range []string{"Foo", "Bar", "Baz"} {
		if affects(exampleKind(kind)) {
			c.kinds = append(c.kinds, kind)
		}
	}
}

func (c *changedKinds) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.kinds
	c.kinds = nil
	return out
}

func exampleKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: kind}
}

func customization(name, kind string, healthy bool) *configv1alpha1.ResourceInterpreterCustomization {
	c := &configv1alpha1.ResourceInterpreterCustomization{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.Target = configv1alpha1.CustomizationTarget{APIVersion: "example.io/v1", Kind: kind}
	c.Spec.Customizations.HealthInterpretation = &configv1alpha1.HealthInterpretation{
		LuaScript: fmt.Sprintf("function InterpretHealth(o) return %t end", healthy),
	}
	return c
}

type rules struct {
	*testing.T
	client client.Client
	in     *interpreter.Interpreter
	asked  *rulesRequests
	news   *changedKinds
}

func startRules(t *testing.T, before ...client.Object) *rules {
	t.Helper()
	cluster := apiServer(t)
	c, err := client.New(cluster.Config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		if crd.Spec.Group == configv1alpha1.GroupName {
			if err := c.Create(t.Context(), crd); client.IgnoreAlreadyExists(err) != nil {
				t.Fatal(err)
			}
		}
	}
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		return errors.Join(c.List(ctx, &configv1alpha1.ResourceInterpreterCustomizationList{}),
			c.List(ctx, &configv1alpha1.ResourceInterpreterWebhookConfigurationList{}))
	})
	w := &rules{T: t, client: c, asked: &rulesRequests{}, news: &changedKinds{}}
	for _, obj := range before {
		w.must(w.create(obj))
	}
	cfg := rest.CopyConfig(cluster.Config)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		w.asked.next = next
		return w.asked
	})
	mgr, err := ctrl.NewManager(cfg, manager.Options{Scheme: kube.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if w.in, err = dynamic.NewInterpreter(ctx, mgr); err != nil {
		t.Fatal(err)
	}
	w.in.Notifier().Subscribe(w.news.listen)
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := testenv.Stopped(<-done); err != nil {
			t.Error(err)
		}
	})
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("the cache does not sync")
	}
	w.asked.take()
	return w
}

// create creates an object until the test ends.
func (w *rules) create(obj client.Object) error {
	w.Cleanup(func() {
		if err := client.IgnoreNotFound(w.client.Delete(context.Background(), obj)); err != nil {
			w.Error(err)
		}
	})
	return w.client.Create(w.Context(), obj)
}

// becomes waits until objects of a kind are judged as wanted, and checks that
// only that kind was affected and nothing was asked of the API server.
func (w *rules) becomes(kind, want string) {
	w.Helper()
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(exampleKind(kind))
	testenv.Eventually(w.T, time.Minute, func(context.Context) error {
		got := "unknown"
		if w.in.HookEnabled(exampleKind(kind), configv1alpha1.InterpreterOperationInterpretHealth) {
			healthy, err := w.in.InterpretHealth(obj)
			got = fmt.Sprint(healthy)
			if err != nil {
				got = err.Error()
			}
		}
		if !strings.Contains(got, want) {
			return fmt.Errorf("health of %s is %s, want %s", kind, got, want)
		}
		return nil
	})
	if kinds := w.news.take(); slices.ContainsFunc(kinds, func(other string) bool { return other != kind }) {
		w.Errorf("affected were %v, want %s", kinds, kind)
	}
	if asked := w.asked.take(); len(asked) > 0 {
		w.Errorf("asked of the API server: %v", asked)
	}
}

func (w *rules) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func TestNewInterpreter_FollowsChangesWithoutRestartOrRescan(t *testing.T) {
	t.Parallel()
	foo := customization("foo", "Foo", true)
	w := startRules(t, foo)
	w.becomes("Foo", "true") // it was there before

	bar := customization("bar", "Bar", true)
	w.must(w.create(bar))
	w.becomes("Bar", "true")
	bar.Spec.Customizations.HealthInterpretation.LuaScript = "function InterpretHealth(o) return false end"
	w.must(w.client.Update(t.Context(), bar))
	w.becomes("Bar", "false")
	w.must(w.client.Delete(t.Context(), bar))
	w.becomes("Bar", "unknown")

	hooks := &configv1alpha1.ResourceInterpreterWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "hooks"}}
	hooks.Webhooks = []configv1alpha1.ResourceInterpreterWebhook{{
		Name: "baz.example.io", InterpreterContextVersions: []string{"v1alpha1"},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1")},
		Rules: []configv1alpha1.RuleWithOperations{{
			Operations: []configv1alpha1.InterpreterOperation{"*"},
			Rule:       configv1alpha1.Rule{APIGroups: []string{"example.io"}, APIVersions: []string{"*"}, Kinds: []string{"Baz"}},
		}},
	}}
	w.must(w.create(hooks))
	w.becomes("Baz", `failed calling webhook "hooks/baz.example.io"`)
	w.must(w.client.Delete(t.Context(), hooks))
	w.becomes("Baz", "unknown")
}
