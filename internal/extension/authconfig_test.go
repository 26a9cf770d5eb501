package extension

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/karmada-toolkit/karmada/internal/pki"
)

func caPEM(t *testing.T, name string) string {
	t.Helper()
	ca, err := pki.NewCA(pki.CAConfig{CommonName: name}, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return string(ca.CertPEM())
}

func published(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication"}, Data: data}
}

type counter int

func (c *counter) Enqueue() { *c++ }

func TestTrust_FollowsWhatIsPublished(t *testing.T) {
	front, next := caPEM(t, "front"), caPEM(t, "next")
	data := map[string]string{
		"requestheader-client-ca-file": front, "client-ca-file": caPEM(t, "clients"),
		"requestheader-username-headers": `["X-Remote-User"]`, "requestheader-allowed-names": `["front-proxy-client"]`,
	}
	client := fake.NewClientset(published(data))
	got, err := newAuthConfig(t.Context(), client, false)
	if err != nil {
		t.Fatal(err)
	}
	c := got.requestHeaders()
	if diff := cmp.Diff([]string{"X-Remote-User"}, c.UsernameHeaders.Value()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"front-proxy-client"}, c.AllowedClientNames.Value()); diff != "" {
		t.Error(diff)
	}
	if _, ok := c.CAContentProvider.VerifyOptions(); !ok || string(c.CAContentProvider.CurrentCABundleContent()) != front {
		t.Error("the authority is not there")
	}
	var changes counter
	c.CAContentProvider.AddListener(&changes)

	data["requestheader-client-ca-file"] = next
	if _, err := client.CoreV1().ConfigMaps("kube-system").Update(t.Context(), published(data), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := got.read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if changes != 1 || string(c.CAContentProvider.CurrentCABundleContent()) != next {
		t.Errorf("%d changes", changes)
	}

	data["requestheader-client-ca-file"] = "garbage"
	if err := got.take(published(data)); err == nil {
		t.Error("garbage was taken")
	}
	data["requestheader-client-ca-file"], data["requestheader-allowed-names"] = front, "garbage"
	if err := got.take(published(data)); err == nil || string(c.CAContentProvider.CurrentCABundleContent()) != next {
		t.Errorf("half of it was taken: %v", err)
	}
}

func TestTrust_WaitsUntilPublished(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 80*time.Millisecond)
	defer cancel()
	_, err := newAuthConfig(ctx, fake.NewClientset(), false)
	if err == nil || !strings.Contains(err.Error(), `reading ConfigMap kube-system/extension-apiserver-authentication: configmaps "extension-apiserver-authentication" not found`) {
		t.Errorf("got %v", err)
	}
	tolerant, err := newAuthConfig(t.Context(), fake.NewClientset(), true)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := tolerant.requestHeaders().CAContentProvider.VerifyOptions(); ok {
		t.Error("there is an authority although nothing is known")
	}
}
