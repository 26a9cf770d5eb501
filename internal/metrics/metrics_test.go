package metrics

import (
	"crypto/x509"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/component-base/metrics/legacyregistry"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
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

func TestCertificate(t *testing.T) {
	var current *x509.Certificate
	for range 2 { // a role that is set up again
		Certificate("serving", "test", func() *x509.Certificate { return current })
	}
	for _, tc := range []struct {
		now  *x509.Certificate
		want string
	}{
		{nil, ""},
		{&x509.Certificate{SerialNumber: big.NewInt(0xAB1), NotAfter: time.Unix(1700000000, 0)}, `karmada_certificate_not_after_seconds{certificate="serving",role="test",serial="ab1"} 1.7e+09`},
		{&x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Unix(1800000000, 0)}, `karmada_certificate_not_after_seconds{certificate="serving",role="test",serial="2"} 1.8e+09`},
	} {
		current = tc.now
		want := ""
		if tc.want != "" {
			want = "# HELP karmada_certificate_not_after_seconds The end of the validity of a certificate in use, in seconds since 1970-01-01 UTC.\n# TYPE karmada_certificate_not_after_seconds gauge\n" + tc.want + "\n"
		}
		for _, g := range []prometheus.Gatherer{ctrlmetrics.Registry, legacyregistry.DefaultGatherer} {
			if err := testutil.GatherAndCompare(g, strings.NewReader(want), "karmada_certificate_not_after_seconds"); err != nil {
				t.Error(err)
			}
		}
	}
}
