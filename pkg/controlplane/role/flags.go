package role

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/kube"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// common are the settings that every role has.
type common struct {
	kubeconfig, context, master   string
	qps                           float32
	burst                         int
	leaderElect                   bool
	leaderNamespace, leaderName   string
	secondLock                    string
	leaseDuration, renew, retry   time.Duration
	metricsAddress, healthAddress string
	secureMetrics                 bool
	metricsCertDir                string
	enablePprof                   bool
	pprofAddress                  string
	gcPercent                     int
	// events is the flag of the roles that record events, for all of them at once.
	events                         events.Mode
	startTimeout                   time.Duration
	rateLimitedByServer, elections bool
	// hide are flags that the role does not have.
	hide []string
}

// newCommon returns the defaults for a role.
func newCommon(r Role) *common {
	return &common{
		leaderElect:     r.LockName != "" || r.Elects,
		leaderNamespace: cmp.Or(r.LockNamespace, clusterv1alpha1.NamespaceKarmadaSystem),
		leaderName:      r.LockName,
		secondLock:      r.SecondLock,
		leaseDuration:   15 * time.Second,
		renew:           10 * time.Second,
		retry:           2 * time.Second,
		metricsAddress:  r.MetricsAddress,
		healthAddress:   r.HealthAddress,
		pprofAddress:    ":6060",
		qps:             40,
		burst:           60,
		gcPercent:       cmp.Or(r.GCPercent, 100),
		startTimeout:    2 * time.Minute,
		elections:       r.LockName != "" || r.Elects,
	}
}

// flags returns the flags of the settings.
func (c *common) flags() *pflag.FlagSet {
	fs := pflag.NewFlagSet("common", pflag.ContinueOnError)
	fs.StringVar(&c.kubeconfig, "kubeconfig", c.kubeconfig, "Path of the kubeconfig of the control plane. Empty means $KUBECONFIG, then the service account of the pod.")
	fs.StringVar(&c.context, "karmada-context", c.context, "Context of the kubeconfig to use instead of the current one.")
	fs.StringVar(&c.master, "master", c.master, "URL of the control plane's API server; it overrides the one of the kubeconfig.")
	fs.Float32Var(&c.qps, "kube-api-qps", c.qps, "Requests per second to the control plane. The API server's own fairness is relied on unless the flag is given.")
	fs.IntVar(&c.burst, "kube-api-burst", c.burst, "Requests in a burst to the control plane; it matters only together with --kube-api-qps.")
	if c.elections {
		fs.BoolVar(&c.leaderElect, "leader-elect", c.leaderElect, "Elect a leader before working, so that several replicas can run.")
		fs.StringVar(&c.leaderNamespace, "leader-elect-resource-namespace", c.leaderNamespace, "Namespace of the Lease of the election.")
		fs.StringVar(&c.leaderName, "leader-elect-resource-name", c.leaderName, "Name of the Lease of the election.")
		fs.DurationVar(&c.leaseDuration, "leader-elect-lease-duration", c.leaseDuration, "Time after which others may take over from a leader that does not renew.")
		fs.DurationVar(&c.renew, "leader-elect-renew-deadline", c.renew, "Time after which a leader that cannot renew gives up.")
		fs.DurationVar(&c.retry, "leader-elect-retry-period", c.retry, "Time between attempts to become or stay leader.")
	}
	fs.StringVar(&c.metricsAddress, "metrics-bind-address", c.metricsAddress, "Address of the metrics; \"0\" turns them off.")
	fs.BoolVar(&c.secureMetrics, "secure-metrics", c.secureMetrics, "Serve metrics by HTTPS, and only to clients whose token the control plane knows and lets get /metrics, as its ClusterRole system:monitoring does.")
	fs.StringVar(&c.metricsCertDir, "metrics-cert-dir", c.metricsCertDir, "Directory with the certificate tls.crt and key tls.key of the metrics, with --secure-metrics; empty makes a self-signed one.")
	fs.StringVar(&c.healthAddress, "health-probe-bind-address", c.healthAddress, "Address of the health probes; \"0\" turns them off.")
	fs.BoolVar(&c.enablePprof, "enable-pprof", c.enablePprof, "Serve profiles.")
	fs.StringVar(&c.pprofAddress, "profiling-bind-address", c.pprofAddress, "Address of the profiles.")
	fs.DurationVar(&c.startTimeout, "start-timeout", c.startTimeout, "How long to wait at start for the API server and the APIs it must serve.")
	c.events.AddFlag(fs)
	fs.IntVar(&c.gcPercent, "gc-percent", c.gcPercent, "How much the heap grows, in percent, before memory is collected.")
	return fs
}

// bind adds the flags of c to those of a role. Where the role has a flag of the
// same name, the role's stays and its value counts for both; the returned
// function takes it over after parsing.
func (c *common) bind(role *pflag.FlagSet) (takeOver func() error) {
	mine := c.flags()
	var twice []string
	mine.VisitAll(func(f *pflag.Flag) {
		if slices.Contains(c.hide, f.Name) {
			return
		}
		if role.Lookup(f.Name) != nil {
			twice = append(twice, f.Name)
			return
		}
		if f.Name == events.FlagName {
			return // the role records no events
		}
		role.AddFlag(f)
	})
	return func() error {
		var errs []error
		for _, name := range twice {
			if err := mine.Set(name, role.Lookup(name).Value.String()); err != nil {
				errs = append(errs, fmt.Errorf("--%s: %w", name, err))
			}
		}
		c.rateLimitedByServer = !role.Changed("kube-api-qps")
		return errors.Join(errs...)
	}
}

// credentials returns those for the control plane.
func (c *common) credentials(userAgent string) (*kube.Credentials, error) {
	credentials, err := kube.NewCredentials(kube.CredentialsOptions{Load: c.load, Clock: clock.RealClock{}})
	if err != nil {
		return nil, err
	}
	cfg := credentials.Config
	cfg.UserAgent = userAgent
	cfg.QPS, cfg.Burst = c.qps, c.burst
	if c.rateLimitedByServer {
		cfg.QPS, cfg.Burst = -1, 0
	}
	return credentials, nil
}

// load reads the kubeconfig.
func (c *common) load() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.context}
	overrides.ClusterInfo.Server = c.master
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("loading the kubeconfig of the control plane (--kubeconfig): %w", err)
	}
	return cfg, nil
}
