// Package problemdetector is the role that runs on every node of a member and reports problems of the member to the
// control plane: whether its nodes resolve the names of Services.
package problemdetector

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/limit"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

// Detector is the name of the only detector.
const Detector = "coredns-detector"

// LockName is the name of the Lease by which the detector elects the node that reports for the cluster.
const LockName = "cluster-problem-detector-" + Detector

// Options are the settings of the role.
type Options struct {
	// Detectors are the names to run; "*" stands for all, "-name" takes one out.
	Detectors []string
	// KarmadaKubeconfig and KarmadaContext select the kubeconfig of the control plane, Kubeconfig that of the member.
	// Without Kubeconfig it is the service account of the pod.
	KarmadaKubeconfig, KarmadaContext, Kubeconfig string
	// ClusterName is the name of the member, HostName that of the node. Default: the name of the host.
	ClusterName, HostName string
	// BindAddress and HealthzPort are where health is served.
	BindAddress string
	HealthzPort int
	// Period is the time between two lookups. Default 5 s.
	Period time.Duration
	// SuccessThreshold and FailureThreshold are how long a node must resolve names, or fail to, before its condition
	// changes. Default 30 s.
	SuccessThreshold, FailureThreshold time.Duration
	// StaleThreshold is the age from which the condition of a node counts as unknown. Default 1 min.
	StaleThreshold time.Duration
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		Detectors: []string{"*"}, BindAddress: "127.0.0.1", HealthzPort: 10357, Period: 5 * time.Second,
		SuccessThreshold: 30 * time.Second, FailureThreshold: 30 * time.Second, StaleThreshold: time.Minute,
	}
}

// AddFlags adds the flags of the role.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.Detectors, "detectors", o.Detectors, "Detectors to run: * stands for all, NAME for one, -NAME for not that one. There is "+Detector+".")
	fs.StringVar(&o.KarmadaKubeconfig, "karmada-kubeconfig", o.KarmadaKubeconfig, "Path of the kubeconfig of the control plane.")
	fs.StringVar(&o.KarmadaContext, "karmada-context", o.KarmadaContext, "Context of that kubeconfig to use instead of the current one.")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Path of the kubeconfig of the member. Empty means the service account of the pod.")
	fs.StringVar(&o.ClusterName, "cluster-name", o.ClusterName, "Name of the member in the control plane.")
	fs.StringVar(&o.HostName, "host-name", o.HostName, "Name of the node. Empty means the name of the host.")
	fs.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "Address on which health is served.")
	fs.IntVar(&o.HealthzPort, "healthz-port", o.HealthzPort, "Port on which health is served; 0 turns it off.")
	fs.DurationVar(&o.Period, "coredns-detect-period", o.Period, "Time between two lookups of a name.")
	fs.DurationVar(&o.SuccessThreshold, "coredns-success-threshold", o.SuccessThreshold, "How long lookups must succeed before the node is reported to resolve names.")
	fs.DurationVar(&o.FailureThreshold, "coredns-failure-threshold", o.FailureThreshold, "How long lookups must fail before the node is reported not to resolve names.")
	fs.DurationVar(&o.StaleThreshold, "coredns-stale-threshold", o.StaleThreshold, "Age from which the report of a node counts as unknown.")
}

// Validate reports settings that cannot work.
func (o *Options) Validate() error {
	var errs limit.Checks
	errs.Require(o.ClusterName != "", "--cluster-name is missing: name the cluster that the detector runs in")
	if err := member.ValidateName(o.ClusterName); o.ClusterName != "" {
		errs.Require(err == nil, "--cluster-name: %w", err)
	}
	errs.Require(o.KarmadaKubeconfig != "", "--karmada-kubeconfig is missing: name the kubeconfig of the control plane")
	for _, d := range o.Detectors {
		errs.Require(d == "*" || strings.TrimPrefix(d, "-") == Detector, "--detectors: unknown detector %q; known are *, %s", d, Detector)
	}
	errs.Require(o.HealthzPort >= 0 && o.HealthzPort <= 65535, "--healthz-port must be between 0 and 65535, got %d", o.HealthzPort)
	errs.Require(o.Period > 0, "--coredns-detect-period must be at least 1ns, got %s", o.Period)
	errs.Require(o.SuccessThreshold >= 0, "--coredns-success-threshold must be at least 0s, got %s", o.SuccessThreshold)
	errs.Require(o.FailureThreshold >= 0, "--coredns-failure-threshold must be at least 0s, got %s", o.FailureThreshold)
	errs.Require(o.StaleThreshold > 0, "--coredns-stale-threshold must be at least 1ns, got %s", o.StaleThreshold)
	return errors.Join(errs...)
}

// enabled reports whether --detectors includes the detector: the first entry that names it decides, then "*".
func (o *Options) enabled() bool {
	for _, d := range o.Detectors {
		if strings.TrimPrefix(d, "-") == Detector {
			return d == Detector
		}
	}
	return slices.Contains(o.Detectors, "*")
}

// Credentials returns those for the member: the election and the reports of the nodes are there.
func (o *Options) Credentials(userAgent string) (*kube.Credentials, error) {
	credentials, err := kube.NewCredentials(kube.CredentialsOptions{Load: o.memberConfig, Clock: clock.RealClock{}})
	if err != nil {
		return nil, err
	}
	credentials.Config.UserAgent, credentials.Config.QPS = userAgent, -1
	return credentials, nil
}

func (o *Options) memberConfig() (*rest.Config, error) {
	if o.Kubeconfig != "" {
		cfg, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("loading the kubeconfig of the member (--kubeconfig): %w", err)
		}
		return cfg, nil
	}
	cfg, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("connecting to the member: %w; run the detector in a pod of the member, or name the member's kubeconfig with --kubeconfig", err)
	}
	if !byAddress(cfg.Host) {
		return nil, fmt.Errorf("the API server of the member is named %q: it must be an IP address, to be reached while names are not resolved; set KUBERNETES_SERVICE_HOST", cfg.Host)
	}
	return cfg, nil
}

// byAddress reports whether a URL has an IP address as its host.
func byAddress(host string) bool {
	u, err := url.Parse(host)
	return err == nil && net.ParseIP(u.Hostname()) != nil
}

// planeConfig returns how the control plane is reached.
func (o *Options) planeConfig() (*rest.Config, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: o.KarmadaKubeconfig}
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.KarmadaContext}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("loading the kubeconfig of the control plane (--karmada-kubeconfig): %w", err)
	}
	return cfg, nil
}

// Manager serves health where the flags of the role have it.
func (o *Options) Manager(m *manager.Options) error {
	m.HealthProbeBindAddress = "0"
	if o.HealthzPort > 0 {
		m.HealthProbeBindAddress = net.JoinHostPort(o.BindAddress, strconv.Itoa(o.HealthzPort))
	}
	return nil
}

// Hidden returns the shared flags that the role has under other names.
func (*Options) Hidden() []string { return []string{"health-probe-bind-address"} }
