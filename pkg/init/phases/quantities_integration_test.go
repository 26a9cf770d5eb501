//go:build integration

package phases

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/testenv"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// TestWebhookConfigurations_RefuseQuantitiesOfAStatus writes the status of a FederatedHPA, as users with the role "edit" may.
func TestWebhookConfigurations_RefuseQuantitiesOfAStatus(t *testing.T) {
	_, cp := emptied(t)
	definitions, err := components.CRDs("https://127.0.0.1:1", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range definitions {
		if o.GetName() == "federatedhpas.autoscaling.karmada.io" {
			if err := cp.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	hpa := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling.karmada.io/v1alpha1", "kind": "FederatedHPA", "metadata": map[string]any{"name": "web", "namespace": "default"},
		"spec": map[string]any{"maxReplicas": int64(3), "scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
	}}
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error { return cp.Create(ctx, hpa) })
	for _, o := range components.WebhookConfigurations("https://127.0.0.1:1", nil, nil) {
		if strings.HasPrefix(o.GetName(), "quantities.") {
			if err := cp.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	write := func(ctx context.Context, metric string) error {
		patch := `{"status":{"currentReplicas":1,"desiredReplicas":1,"currentMetrics":[` + metric + `]}}`
		return cp.Status().Patch(ctx, hpa.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch)))
	}
	for _, hostile := range []string{
		`{"type":"Resource","resource":{"name":"cpu","current":{"averageValue":"1e-300000000"}}}`,
		`{"type":"Pods","pods":{"metric":{"name":"a"},"current":{"averageValue":"1E+300000000"}}}`,
		`{"type":"External","external":{"metric":{"name":"a"},"current":{"value":"` + strings.Repeat("1", 2000) + `"}}}`,
		`{"type":"Object","object":{"metric":{"name":"a"},"describedObject":{"kind":"A","name":"a"},"current":{"value":"1e99999"}}}`,
		`{"type":"ContainerResource","containerResource":{"name":"cpu","container":"c","current":{"averageValue":"1e-300000000"}}}`,
	} {
		// Admission policies have an effect soon after they were created.
		testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
			if err := write(ctx, hostile); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "out of range") {
				return errors.Join(errors.New("the write was not refused"), err)
			}
			return nil
		})
	}
	if err := write(t.Context(), `{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":50,"averageValue":"100m"}}},
		{"type":"External","external":{"metric":{"name":"a"},"current":{"value":2}}},{"type":"Pods","pods":{"metric":{"name":"a"},"current":{"averageValue":"1e3"}}}`); err != nil {
		t.Error(err)
	}
	if err := cp.Status().Patch(t.Context(), hpa.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"status":{"currentMetrics":null}}`))); err != nil {
		t.Errorf("a status without metrics: %v", err)
	}
}
