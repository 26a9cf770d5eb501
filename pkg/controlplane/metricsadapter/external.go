package metricsadapter

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/metrics/pkg/apis/external_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"
)

// external serves no external metrics: they are of no cluster.
type external struct{}

var _ provider.ExternalMetricsProvider = external{}

// GetExternalMetric implements provider.ExternalMetricsProvider.
func (external) GetExternalMetric(context.Context, string, labels.Selector, provider.ExternalMetricInfo) (*external_metrics.ExternalMetricValueList, error) {
	return nil, errors.New("karmada-metrics-adapter still not implement it")
}

// ListAllExternalMetrics implements provider.ExternalMetricsProvider.
func (external) ListAllExternalMetrics() []provider.ExternalMetricInfo { return nil }
