package scheduler

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

func TestOptions_Defaults(t *testing.T) {
	fs := pflag.NewFlagSet("scheduler", pflag.ContinueOnError)
	NewOptions().AddFlags(fs)
	for name, want := range map[string]string{
		"enable-scheduler-estimator":               "false",
		"disable-scheduler-estimator-in-pull-mode": "false",
		"scheduler-estimator-timeout":              "3s",
		"scheduler-estimator-service-namespace":    "karmada-system",
		"scheduler-estimator-service-prefix":       "karmada-scheduler-estimator",
		"scheduler-estimator-port":                 "10352",
		"scheduler-estimator-cert-file":            "",
		"scheduler-estimator-key-file":             "",
		"scheduler-estimator-ca-file":              "",
		"insecure-skip-estimator-verify":           "false",
		"enable-empty-workload-propagation":        "false",
		"plugins":                                  "[*]",
		"scheduler-name":                           "default-scheduler",
		"rate-limiter-base-delay":                  "5ms",
		"rate-limiter-max-delay":                   "16m40s",
		"rate-limiter-qps":                         "10",
		"rate-limiter-bucket-size":                 "100",
	} {
		f := fs.Lookup(name)
		if f == nil || f.DefValue != want {
			t.Errorf("--%s: %+v, want default %q", name, f, want)
		}
	}
	if fs.Lookup("feature-gates") == nil {
		t.Error("no --feature-gates")
	}
}

func TestOptions_Validate(t *testing.T) {
	for name, spoil := range map[string]func(*Options){
		"no name":          func(o *Options) { o.SchedulerName = "" },
		"negative timeout": func(o *Options) { o.Estimator.Timeout = -time.Second },
		"no such port":     func(o *Options) { o.Estimator.Port = 65536 },
		"no workers":       func(o *Options) { o.Workers = 0 },
	} {
		o := NewOptions()
		spoil(o)
		if o.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := NewOptions().Validate(); err != nil {
		t.Error(err)
	}
}

func TestOptions_PluginsOutOfTree(t *testing.T) {
	o := NewOptions()
	o.OutOfTree = framework.Registry{"APIEnablement": nil}
	_, err := newScheduler(o, deps{clock: clocktesting.NewFakeClock(time.Unix(0, 0)), metrics: newMetrics(prometheus.NewRegistry())})
	if err == nil || err.Error() != "a plugin named APIEnablement already exists" {
		t.Errorf("got %v", err)
	}
}

func TestOptions_FirstComeFirstServedWithoutTheGate(t *testing.T) {
	o := NewOptions()
	if err := o.Gates.Set("PriorityBasedScheduling=false"); err != nil {
		t.Fatal(err)
	}
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	q := newQueue(o, clock, nil)
	q.Push(named("a"), 0)
	q.Push(named("b"), 9)
	pop(t, q, "a")
	q.Finish(named("a"), parked)
	pending(t, q, 1, 1, 0)
	clock.Step(o.RateLimiter.BaseDelay)
	q.Sweep()
	pending(t, q, 2, 0, 0)
}

func TestMetrics_CanBeRegisteredTwice(t *testing.T) {
	r := prometheus.NewRegistry()
	newMetrics(r).incoming.WithLabelValues(eventCluster).Inc()
	newMetrics(r).incoming.WithLabelValues(eventCluster).Inc()
	registerQueue(r, newQueue(NewOptions(), clocktesting.NewFakeClock(time.Unix(0, 0)), r))
	registerQueue(r, newQueue(NewOptions(), clocktesting.NewFakeClock(time.Unix(0, 0)), r))
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "workqueue_") || len(f.GetMetric()) != 1 {
			got[f.GetName()] = len(f.GetMetric())
		}
	}
	want := map[string]int{"karmada_scheduler_queue_incoming_bindings_total": 1, "scheduler_pending_bindings": 3}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
