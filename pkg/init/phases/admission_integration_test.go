//go:build integration

package phases

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// TestMutatingWebhooks_AreCalledForAllButControllers registers the webhooks at an address where nothing listens: whoever
// writes Works without a call of them succeeds.
func TestMutatingWebhooks_AreCalledForAllButControllers(t *testing.T) {
	cluster, admin := emptied(t)
	as := func(user string) client.Client {
		config := rest.CopyConfig(cluster.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
		c, err := client.New(config, client.Options{Scheme: kube.NewScheme()})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	definitions, err := components.CRDs("https://127.0.0.1:1", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range append(definitions, components.MutatingWebhooks("https://127.0.0.1:1", nil)) {
		if o.GetName() == "works.work.karmada.io" || o.GetName() == components.MutatingWebhooksName {
			if err := admin.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	created := 0
	create := func(ctx context.Context, user string, labels map[string]string) error {
		created++
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("w", created), Labels: labels}}
		return as(user).Create(ctx, work)
	}
	id := map[string]string{workv1alpha2.WorkPermanentIDLabel: "id"}
	const called = "failed calling webhook"
	// Webhooks have an effect soon after they were registered.
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		if err := create(ctx, "system:admin", id); err == nil || !strings.Contains(err.Error(), called) {
			return errors.Join(errors.New("the webhook was not called"), err)
		}
		return nil
	})
	for _, tc := range []struct {
		user   string
		labels map[string]string
		called bool
	}{
		{"system:karmada:controller-manager", id, false},
		{"system:karmada:all-in-one", id, false},
		{"system:karmada:controller-manager", nil, true},
		{"system:karmada:controller-manager", map[string]string{"a": "b"}, true},
		{"system:karmada:scheduler", id, true},
		{"system:karmada:agent:member1", id, true},
		{"tenant", id, true},
	} {
		err := create(t.Context(), tc.user, tc.labels)
		if got := err != nil && strings.Contains(err.Error(), called); got != tc.called || !got && err != nil {
			t.Errorf("%s with the labels %v: called %t, want %t: %v", tc.user, tc.labels, got, tc.called, err)
		}
	}
}
