// Package metrics registers the metrics of components that may run several times
// in one process.
package metrics

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Register adds a collector and returns it, or the equal one that is registered
// already. A collector whose name is that of a different metric is returned too:
// it counts, but is not served.
func Register[C prometheus.Collector](r prometheus.Registerer, c C) C {
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](r.Register(c)); ok {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing
		}
	}
	return c
}

// Result returns the value of a label that distinguishes success and error.
func Result(err error) string {
	if err != nil {
		return "error"
	}
	return "success"
}
