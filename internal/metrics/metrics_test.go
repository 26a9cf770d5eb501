package metrics

import (
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func counter(name string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name}, labels)
}

func TestRegister(t *testing.T) {
	registry := prometheus.NewRegistry()
	first, again := counter("requests_total", "result"), counter("requests_total", "result")
	if got := Register(registry, first); got != first {
		t.Error("a new collector is replaced")
	}
	if got := Register(registry, again); got != first {
		t.Error("the registered collector is not shared")
	}
	other := counter("requests_total", "kind")
	if got := Register(registry, other); got != other {
		t.Error("a collector with other labels is replaced")
	}
}

func TestResult(t *testing.T) {
	if Result(nil) != "success" || Result(errors.New("x")) != "error" {
		t.Errorf("results are %q and %q", Result(nil), Result(errors.New("x")))
	}
}
