// Package estimator is the role that answers requests of schedulers over gRPC: how many replicas of a workload fit into
// one cluster, and how many of its replicas no node accepts.
//
// It watches the nodes and pods of the cluster and keeps what estimates need of them. Requests are answered from
// there; none makes it read from the cluster.
package estimator

import (
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/featuregate"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/gates"
	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/limit"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

// defaultParallelism is the number of estimates that are computed at the same time.
const defaultParallelism = 16

// Options are the settings of the role.
type Options struct {
	// Kubeconfig and Master select the member cluster. Both empty mean the service account of the pod.
	Kubeconfig, Master string
	// QPS and Burst limit the requests to the member cluster, once a value was given.
	QPS   limit.Limit
	Burst int
	// ClusterName is the name of the member cluster in the control plane. Required.
	ClusterName string
	// BindAddress and Port are where the server listens. An empty address means all.
	BindAddress string
	Port        int
	// CertFile and KeyFile have the certificate of the server; without them connections are not encrypted. ClientCAFile
	// has the authorities of the certificates that clients must present, unless InsecureSkipClientVerify is set. The
	// files are read for every connection.
	CertFile, KeyFile, ClientCAFile string
	InsecureSkipClientVerify        bool
	// ClientAllowedNames are the common names of the client certificates that are accepted. Empty means every name.
	ClientAllowedNames []string
	// Parallelism is the number of estimates that are computed at the same time. 0 means 16.
	Parallelism int
	// Gates are the feature gates.
	Gates *gates.Gates
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		QPS: limit.New(20), Burst: 30, Port: 10352,
		Gates: gates.New(append(withoutEffect(), gates.ResourceQuotaEstimate, gates.SchedulingOvercommitProtection)...),
	}
}

// withoutEffect are the gates that the flag accepts and that concern other roles.
func withoutEffect() []featuregate.Feature {
	return []featuregate.Feature{
		gates.Failover, gates.GracefulEviction, gates.CustomizedClusterResourceModeling, gates.PriorityBasedScheduling,
		gates.MultiplePodTemplatesScheduling, gates.WorkloadAffinity, gates.FederatedQuotaEnforcement,
	}
}

// AddFlags adds the flags of the role.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Path of the kubeconfig of the member cluster. Empty means the service account of the pod.")
	fs.StringVar(&o.Master, "master", o.Master, "URL of the member's API server; it overrides the one of the kubeconfig.")
	fs.Var(&o.QPS, "kube-api-qps", "Requests per second to the member cluster, when the flag is given; otherwise only its API priority and fairness limits them.")
	fs.IntVar(&o.Burst, "kube-api-burst", o.Burst, "Requests in a burst to the member cluster; it matters only together with --kube-api-qps.")
	fs.StringVar(&o.ClusterName, "cluster-name", o.ClusterName, "Name of the member cluster in the control plane.")
	fs.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "IP address to listen on; empty means all.")
	fs.IntVar(&o.Port, "server-port", o.Port, "Port to listen on.")
	fs.StringVar(&o.CertFile, "grpc-auth-cert-file", o.CertFile, "Certificate of the server. Without one connections are not encrypted.")
	fs.StringVar(&o.KeyFile, "grpc-auth-key-file", o.KeyFile, "Key of that certificate.")
	fs.StringVar(&o.ClientCAFile, "grpc-client-ca-file", o.ClientCAFile, "Authorities of the certificates that clients must present.")
	fs.BoolVar(&o.InsecureSkipClientVerify, "insecure-skip-grpc-client-verify", o.InsecureSkipClientVerify, "Do not check the certificates of clients.")
	fs.StringSliceVar(&o.ClientAllowedNames, "grpc-client-allowed-names", o.ClientAllowedNames, "Common names of the client certificates that are accepted; empty accepts every certificate of the authorities.")
	fs.IntVar(&o.Parallelism, "parallelism", o.Parallelism, fmt.Sprintf("Estimates that are computed at the same time; 0 means %d.", defaultParallelism))
	o.Gates.AddFlag(fs)
}

// Validate reports settings that cannot work.
func (o *Options) Validate() error {
	var errs limit.Checks
	errs.Require(o.ClusterName != "", "--cluster-name is missing: name the member cluster that is estimated")
	if err := member.ValidateName(o.ClusterName); o.ClusterName != "" {
		errs.Require(err == nil, "--cluster-name: %w", err)
	}
	errs.Require(o.BindAddress == "" || net.ParseIP(o.BindAddress) != nil, "--bind-address %q is not an IP address", o.BindAddress)
	errs.Require(o.Port >= 0 && o.Port <= 65535, "--server-port is %d, must be between 0 and 65535", o.Port)
	errs.Require(o.Parallelism >= 0, "--parallelism is %d, must not be negative", o.Parallelism)
	errs.Require((o.CertFile == "") == (o.KeyFile == ""), "--grpc-auth-cert-file and --grpc-auth-key-file belong together: set both or none")
	errs.Require(o.ClientCAFile == "" || o.CertFile != "", "--grpc-client-ca-file needs --grpc-auth-cert-file: clients present certificates on encrypted connections only")
	errs.Require(len(o.ClientAllowedNames) == 0 || o.verifiesClients(), "--grpc-client-allowed-names needs --grpc-client-ca-file, without --insecure-skip-grpc-client-verify")
	return errors.Join(errs...)
}

// verifiesClients reports whether clients must present a certificate.
func (o *Options) verifiesClients() bool { return o.ClientCAFile != "" && !o.InsecureSkipClientVerify }

// Credentials returns those for the member cluster.
func (o *Options) Credentials(userAgent string) (*kube.Credentials, error) {
	credentials, err := kube.NewCredentials(kube.CredentialsOptions{Load: o.load, Clock: clock.RealClock{}})
	if err != nil {
		return nil, err
	}
	cfg := credentials.Config
	cfg.UserAgent = userAgent
	cfg.WarningHandler = rest.NoWarnings{}
	cfg.QPS, cfg.Burst = -1, 0
	if qps := o.QPS.QPS(); qps > 0 {
		cfg.QPS, cfg.Burst = qps, max(o.Burst, 1)
	}
	return credentials, nil
}

// load reads the kubeconfig.
func (o *Options) load() (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags(o.Master, o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("loading the kubeconfig of the member cluster (--kubeconfig): %w", err)
	}
	return cfg, nil
}

// Manager has the manager make no requests: the role reads the member by itself.
func (o *Options) Manager(m *manager.Options) error {
	m.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.NewDefaultRESTMapper(nil), nil }
	return nil
}
