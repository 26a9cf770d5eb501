package certs

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/release"
)

// withoutPods is an installation whose pods use what is written.
type withoutPods struct {
	*Hosted
	cp client.Client
}

func (w withoutPods) rollOut(context.Context, restarts) error         { return nil }
func (w withoutPods) connect(context.Context) (client.Client, error)  { return w.cp, nil }
func (w withoutPods) kept(_ context.Context, _ named) (string, error) { return "", nil }
func newFake(objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}
func chart(name string) *release.Certificates {
	return &release.Certificates{
		Release:  release.Release{Name: name, Fixed: name + "-", Namespace: "team", Domain: "cluster.local", SystemNamespace: "karmada-system"},
		Validity: 365 * 24 * time.Hour, EtcdReplicas: 1, Renewed: "1",
	}
}

// secretsOf returns what is in the Secrets of a namespace whose names have a prefix, and when an upgrade renews.
func secretsOf(t *testing.T, c client.Client, prefix string) (data map[string]string, due string) {
	t.Helper()
	list := &corev1.SecretList{}
	if err := c.List(t.Context(), list, client.InNamespace("team")); err != nil {
		t.Fatal(err)
	}
	data = map[string]string{}
	for _, s := range list.Items {
		if !strings.HasPrefix(s.Name, prefix) {
			continue
		}
		for key, value := range s.Data {
			data[s.Name+" "+key] = string(value)
		}
		if s.Name == prefix+"cert" {
			due = s.Annotations[components.RenewAfterAnnotation]
		}
	}
	return data, due
}

// Of two releases in a namespace one is renewed, and an upgrade keeps what was written.
func TestHosted_Releases(t *testing.T) {
	c := newFake()
	now := start
	clock := func() time.Time { return now }
	for _, name := range []string{"one", "two"} {
		if err := chart(name).Write(t.Context(), c, clock); err != nil {
			t.Fatal(err)
		}
	}
	other, _ := secretsOf(t, c, "two-")
	none := withoutPods{&Hosted{Namespace: "team", client: c}, newFake()}
	if _, err := Renew(t.Context(), none, options(now)); err == nil || !strings.Contains(err.Error(), "the control planes one, two: choose one of them with --release") {
		t.Errorf("got %v", err)
	}
	none.Release = "three"
	if _, err := Renew(t.Context(), none, options(now)); err == nil || !strings.Contains(err.Error(), `namespace team has the control planes one, two: choose one of them with --release`) {
		t.Errorf("got %v", err)
	}
	in := withoutPods{&Hosted{Namespace: "team", Release: "one", client: c}, newFake()}
	for _, step := range []struct {
		name string
		run  func(o Options) error
	}{
		{"renew", func(o Options) error { _, err := Renew(t.Context(), in, o); return err }},
		{"authorities", func(o Options) error { _, err := RenewAuthorities(t.Context(), in, o); return err }},
		{"renew between", func(o Options) error { _, err := Renew(t.Context(), in, o); return err }},
		{"finish", func(o Options) error { _, err := Finish(t.Context(), in, o, false); return err }},
	} {
		before, _ := secretsOf(t, c, "one-")
		now = now.AddDate(0, 0, 100)
		if err := step.run(options(now)); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		after, due := secretsOf(t, c, "one-")
		if maps.Equal(before, after) {
			t.Errorf("%s: nothing changed", step.name)
		}
		if err := chart("one").Write(t.Context(), c, clock); err != nil {
			t.Fatalf("%s: upgrading: %v", step.name, err)
		}
		upgraded, want := secretsOf(t, c, "one-")
		if diff := cmp.Diff(after, upgraded); diff != "" {
			t.Errorf("%s: an upgrade changed\n%s", step.name, diff)
		}
		if due != want {
			t.Errorf("%s: due at %s, want %s", step.name, due, want)
		}
		if got, _ := secretsOf(t, c, "two-"); !maps.Equal(other, got) {
			t.Errorf("%s: the other release changed", step.name)
		}
	}
	if _, err := RenewAuthorities(t.Context(), in, options(now)); err != nil {
		t.Fatal(err)
	}
	if err := chart("one").Remove(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if left, _ := secretsOf(t, c, "one-"); len(left) > 0 {
		t.Errorf("removed, and left %v", sortedKeys(left))
	}
	if _, err := Renew(t.Context(), withoutPods{&Hosted{Namespace: "team", client: c}, newFake()}, options(now)); err != nil {
		t.Errorf("the only one: %v", err)
	}
}

// The control plane of init beside a release.
func TestHosted_InitBesideRelease(t *testing.T) {
	secret := func(name string, labels map[string]string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Labels: labels}, Data: map[string][]byte{frontProxyCA: []byte("x")}}
	}
	c := newFake(
		secret("karmada-cert", map[string]string{components.BootstrapLabel: components.SecretDefaults}),
		secret("one-cert", map[string]string{components.InstanceLabel: "one"}), secret("copy", nil))
	for name, want := range map[string]string{"karmada": "karmada-certs-renewal", "one": "one-certs-renewal"} {
		h := &Hosted{Namespace: "team", Release: name, client: c}
		if err := h.choose(t.Context()); err != nil || h.state.Name != want || len(h.scope) != 2 {
			t.Errorf("%s: %v, %v", name, h.state, err)
		}
	}
}
