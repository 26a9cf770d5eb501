// Package agent is the role that runs in a member cluster which the control plane
// cannot reach: it connects to the control plane, applies the Works of its cluster,
// and writes the status of the cluster and of the Works.
//
// It has permissions on its own execution namespace, its own Cluster and lease, and
// little else, and watches no more than that. While the control plane is not reachable
// it keeps what it applied, and continues as soon as it is. It deletes nothing in its
// cluster but the objects of Works whose deletion the control plane recorded.
package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/gates"
	"github.com/karmada-toolkit/karmada/internal/limit"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

// The names of the controllers.
const (
	controllerExecution     = "execution"
	controllerWorkStatus    = "workStatus"
	controllerClusterStatus = "clusterStatus"
	controllerCertRotation  = "certRotation"
	controllerCollect       = "endpointsliceCollect"
	controllerServiceExport = "serviceExport"
)

// The values of --report-secrets.
const (
	reportCredentials  = "KubeCredentials"
	reportImpersonator = "KubeImpersonator"
)

// Options are the settings of the role.
type Options struct {
	// Controllers are the names to run; "*" stands for all but those that are off
	// by default, "-name" takes one out.
	Controllers []string

	// KarmadaKubeconfig and KarmadaContext select the kubeconfig of the control plane,
	// Kubeconfig that of the member. Empty means the service account of the pod.
	KarmadaKubeconfig, KarmadaContext, Kubeconfig string

	// ClusterName is the name of the member, the rest describes it.
	ClusterName, ClusterAPIEndpoint, ProxyServerAddress string
	ClusterProvider, ClusterRegion                      string
	ClusterZones                                        []string
	// ClusterNamespace has the credentials, in the member and in the control plane.
	ClusterNamespace string
	// ReportSecrets are the credentials that the control plane is given.
	ReportSecrets []string

	// StatusFrequency is the time between two status collections of a healthy cluster.
	StatusFrequency time.Duration
	// LeaseDuration is how long the cluster counts as reported on, and RenewFraction
	// the part of it after which the lease is renewed.
	LeaseDuration time.Duration
	RenewFraction float64
	// SuccessThreshold and FailureThreshold are how long the cluster must be observed as
	// healthy or unhealthy before its Ready condition changes.
	SuccessThreshold, FailureThreshold time.Duration
	// ResourceModeling enables the collection of nodes and pods.
	ResourceModeling bool
	// WorkSyncs is the number of Works whose objects are applied at a time.
	WorkSyncs int

	// RotationInterval is the longest time between two checks of the client certificate.
	RotationInterval time.Duration
	// RotationThreshold is the fraction of its validity that is left when the certificate
	// is renewed.
	RotationThreshold float64
	// KubeconfigNamespace has the Secret with the kubeconfig of the control plane.
	KubeconfigNamespace string

	// PlaneQPS and PlaneBurst limit the requests to the control plane, ClusterQPS and
	// ClusterBurst those to the member, once a value was given.
	PlaneQPS, ClusterQPS     limit.Limit
	PlaneBurst, ClusterBurst int

	// RateLimiterBaseDelay and RateLimiterMaxDelay bound the delay of retries.
	RateLimiterBaseDelay, RateLimiterMaxDelay time.Duration

	// Events selects which successes are recorded. Default: events.Transitions.
	Events events.Mode
	// Gates are the feature gates.
	Gates *gates.Gates

	// accepted are flags of the contract without effect: what they limit does not exist
	// here.
	accepted accepted
	// plane is the connection to the control plane, once Config was called.
	plane *plane
	// check is triggered when the control plane denies access to the agent.
	check membershipCheck
}

type accepted struct {
	resync, cacheSync                time.Duration
	limiterQPS, limiterBucket, syncs int
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		Controllers:       []string{"*"},
		ClusterNamespace:  clusterv1alpha1.NamespaceKarmadaCluster,
		ReportSecrets:     []string{reportCredentials, reportImpersonator},
		StatusFrequency:   10 * time.Second,
		LeaseDuration:     40 * time.Second,
		RenewFraction:     0.25,
		SuccessThreshold:  30 * time.Second,
		FailureThreshold:  30 * time.Second,
		ResourceModeling:  true,
		WorkSyncs:         5,
		RotationInterval:  5 * time.Minute,
		RotationThreshold: 0.2, KubeconfigNamespace: clusterv1alpha1.NamespaceKarmadaSystem,
		PlaneQPS: limit.New(40), PlaneBurst: 60, ClusterQPS: limit.New(40), ClusterBurst: 60,
		RateLimiterBaseDelay: 5 * time.Millisecond, RateLimiterMaxDelay: 1000 * time.Second,
		Gates:    gates.New(gates.Agent()...),
		check:    newMembershipCheck(),
		accepted: accepted{cacheSync: 2 * time.Minute, limiterQPS: 10, limiterBucket: 100, syncs: 5},
	}
}

// Validate reports settings that cannot work.
func (o *Options) Validate() error {
	var errs limit.Checks
	errs.Require(o.ClusterName != "", "--cluster-name is missing: name the cluster that the agent runs in")
	if err := member.ValidateName(o.ClusterName); o.ClusterName != "" {
		errs.Require(err == nil, "--cluster-name: %w", err)
	}
	errs.Require(o.StatusFrequency > 0, "--cluster-status-update-frequency must be greater than 0, got %s", o.StatusFrequency)
	errs.Require(o.LeaseDuration > 0, "--cluster-lease-duration must be greater than 0, got %s", o.LeaseDuration)
	errs.Require(o.RotationInterval > 0, "--cert-rotation-checking-interval must be greater than 0, got %s", o.RotationInterval)
	errs.Require(o.RenewFraction > 0 && o.RenewFraction < 1, "--cluster-lease-renew-interval-fraction must be between 0 and 1, got %v", o.RenewFraction)
	errs.Require(o.RotationThreshold > 0 && o.RotationThreshold < 1, "--cert-rotation-remaining-time-threshold must be between 0 and 1, got %v", o.RotationThreshold)
	known := []string{controllerCertRotation, controllerClusterStatus, controllerCollect, controllerExecution, controllerServiceExport, controllerWorkStatus}
	for _, entry := range o.Controllers {
		name := strings.TrimPrefix(entry, "-")
		errs.Require(entry == "*" || slices.Contains(known, name), "--controllers: unknown controller %q; known are *, %s", name, strings.Join(known, ", "))
	}
	return errors.Join(errs...)
}

// warn logs the settings without effect in this version.
func (o *Options) warn(log logr.Logger) {
	for _, f := range o.Gates.Changed(gates.ControllersWithoutEffect()...) {
		log.Info("Setting has no effect in this version", "setting", fmt.Sprintf("--feature-gates=%s=%v", f, o.Gates.Enabled(f)))
	}
}

// Enabled reports whether --controllers includes a controller: the first entry that
// names it decides, then "*", which does not stand for those that are off by
// default.
func (o *Options) Enabled(name string) bool {
	all := false
	for _, entry := range o.Controllers {
		switch entry {
		case name:
			return true
		case "-" + name:
			return false
		case "*":
			all = name != controllerCertRotation
		}
	}
	return all
}

// reports reports whether the control plane is given a kind of credentials.
func (o *Options) reports(what string) bool {
	return slices.ContainsFunc(o.ReportSecrets, func(entry string) bool { return strings.EqualFold(strings.TrimSpace(entry), what) })
}

// renewInterval is the time between renewals of the cluster's lease.
func (o *Options) renewInterval() time.Duration {
	return time.Duration(float64(o.LeaseDuration) * o.RenewFraction)
}

// AddFlags adds the flags of the role.
func (o *Options) AddFlags(fs *pflag.FlagSet) { o.bind(fs) }

// bind adds the flags of the role.
func (o *Options) bind(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.Controllers, "controllers", o.Controllers, "Controllers to run: '*' runs all that are on by default, 'name' one, '-name' takes one out. All: "+
		strings.Join([]string{controllerCertRotation, controllerClusterStatus, controllerCollect, controllerExecution, controllerServiceExport, controllerWorkStatus}, ", ")+". Off by default: "+controllerCertRotation)
	fs.StringVar(&o.KarmadaKubeconfig, "karmada-kubeconfig", "", "Path of the kubeconfig of the control plane. A client certificate in it that changes is taken over without a restart.")
	fs.StringVar(&o.KarmadaContext, "karmada-context", "", "Context of the control plane's kubeconfig to use instead of the current one.")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "", "Path of the kubeconfig of the member cluster. Empty means the service account of the pod.")
	fs.StringVar(&o.ClusterName, "cluster-name", "", "Name of the member cluster in the control plane.")
	fs.StringVar(&o.ClusterAPIEndpoint, "cluster-api-endpoint", "", "URL at which others reach the API server of the member cluster.")
	fs.StringVar(&o.ProxyServerAddress, "proxy-server-address", "", "URL of a proxy through which others reach the member cluster.")
	fs.StringVar(&o.ClusterProvider, "cluster-provider", "", "Provider of the member cluster.")
	fs.StringVar(&o.ClusterRegion, "cluster-region", "", "Region of the member cluster.")
	fs.StringSliceVar(&o.ClusterZones, "cluster-zones", nil, "Zones of the member cluster.")
	fs.StringVar(&o.ClusterNamespace, "cluster-namespace", o.ClusterNamespace, "Namespace of the credentials, in the member and in the control plane.")
	fs.StringSliceVar(&o.ReportSecrets, "report-secrets", o.ReportSecrets, "Credentials of the member that the control plane is given: KubeCredentials, KubeImpersonator or None. Without KubeImpersonator users do not reach the member through the control plane.")
	fs.DurationVar(&o.StatusFrequency, "cluster-status-update-frequency", o.StatusFrequency, "Time between two status collections of a healthy cluster.")
	fs.DurationVar(&o.LeaseDuration, "cluster-lease-duration", o.LeaseDuration, "How long the lease of the cluster is valid after a renewal.")
	fs.Float64Var(&o.RenewFraction, "cluster-lease-renew-interval-fraction", o.RenewFraction, "Fraction of the duration of the lease after which it is renewed.")
	fs.DurationVar(&o.SuccessThreshold, "cluster-success-threshold", o.SuccessThreshold, "How long the cluster must be healthy before it is Ready again.")
	fs.DurationVar(&o.FailureThreshold, "cluster-failure-threshold", o.FailureThreshold, "How long the cluster must be unhealthy before it is not Ready.")
	fs.BoolVar(&o.ResourceModeling, "enable-cluster-resource-modeling", o.ResourceModeling, "Collect nodes and pods for the estimation of capacity.")
	fs.IntVar(&o.WorkSyncs, "concurrent-work-syncs", o.WorkSyncs, "Works handled at the same time.")
	fs.DurationVar(&o.RotationInterval, "cert-rotation-checking-interval", o.RotationInterval, "Longest time between two checks of the client certificate; used by the controller certRotation.")
	fs.Float64Var(&o.RotationThreshold, "cert-rotation-remaining-time-threshold", o.RotationThreshold, "Fraction of the validity of the client certificate that is left when it is renewed.")
	fs.StringVar(&o.KubeconfigNamespace, "karmada-kubeconfig-namespace", o.KubeconfigNamespace, "Namespace, in the member, of the Secret with the control plane's kubeconfig.")
	fs.Var(&o.PlaneQPS, "kube-api-qps", "Requests per second to the control plane, when the flag is given; otherwise only its API priority and fairness limits them.")
	fs.IntVar(&o.PlaneBurst, "kube-api-burst", o.PlaneBurst, "Requests in a burst to the control plane; it matters only together with --kube-api-qps.")
	fs.Var(&o.ClusterQPS, "cluster-api-qps", "Requests per second to the member cluster, when the flag is given; otherwise only its API priority and fairness limits them.")
	fs.IntVar(&o.ClusterBurst, "cluster-api-burst", o.ClusterBurst, "Requests in a burst to the member cluster; it matters only together with --cluster-api-qps.")
	fs.DurationVar(&o.RateLimiterBaseDelay, "rate-limiter-base-delay", o.RateLimiterBaseDelay, "First delay of a retry.")
	fs.DurationVar(&o.RateLimiterMaxDelay, "rate-limiter-max-delay", o.RateLimiterMaxDelay, "Longest delay of a retry; at most 30s, since a cluster that comes back is not waited for.")
	o.Events.AddFlag(fs)
	o.Gates.AddFlag(fs)

	const nothing = "Accepted for the manifests that pass it; there is nothing that it would limit."
	a := &o.accepted
	fs.IntVar(&a.syncs, "concurrent-cluster-syncs", a.syncs, nothing)
	fs.DurationVar(&a.resync, "resync-period", 0, nothing)
	fs.DurationVar(&a.cacheSync, "cluster-cache-sync-timeout", a.cacheSync, nothing)
	fs.IntVar(&a.limiterQPS, "rate-limiter-qps", a.limiterQPS, nothing)
	fs.IntVar(&a.limiterBucket, "rate-limiter-bucket-size", a.limiterBucket, nothing)
}
