package webhook

import (
	"errors"
	"testing"

	"github.com/karmada-toolkit/karmada/internal/quantity"
	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
)

func TestDecodeAs_QuantitiesThatTakeMinutes(t *testing.T) {
	decode := func(value string) error {
		_, err := decodeAs[autoscalingv1alpha1.FederatedHPA]([]byte(`{"apiVersion":"autoscaling.karmada.io/v1alpha1","kind":"FederatedHPA",
			"spec":{"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"AverageValue","averageValue":"`+value+`"}}}]}}`),
			autoscalingv1alpha1.GroupVersion.WithKind("FederatedHPA"))
		return err
	}
	if err := decode("1e-300000000"); !errors.Is(err, quantity.ErrRange) {
		t.Errorf("got %v", err)
	}
	if err := decode("1e3"); err != nil {
		t.Error(err)
	}
}
