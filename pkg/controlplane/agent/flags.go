package agent

import (
	"strings"

	"github.com/spf13/pflag"
)

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
