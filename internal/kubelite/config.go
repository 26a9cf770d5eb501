package kubelite

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/karmada-toolkit/karmada/internal/limit"
)

// Profile is the role of a cluster, which selects the controllers that run in it.
type Profile string

const (
	// ControlPlane is a cluster that holds the templates of a federation: nothing runs in it, so only the
	// controllers that keep its objects in order do.
	ControlPlane Profile = "control-plane"
	// Member is a cluster that runs workloads, with all controllers.
	Member Profile = "member"
)

// Config describes a cluster.
type Config struct {
	// Name of the cluster; the names of its nodes begin with it.
	Name string
	// DataDir holds everything that the cluster keeps. It is made if it does not exist.
	DataDir string
	// BindAddress is the address the API server listens on.
	BindAddress string
	// SecurePort is the port of the API server. 0 means the one used before, or a free one.
	SecurePort int
	// Profile selects the controllers.
	Profile Profile
	// CertSANs are more names and addresses by which clients reach the API server.
	CertSANs []string

	// Nodes is how many nodes are simulated; with 0 there is no scheduler either.
	Nodes int
	// NodeCPU, NodeMemory and NodePods are the capacity of each node.
	NodeCPU    string
	NodeMemory string
	NodePods   int

	// ServiceClusterIPRange and ClusterCIDR are the addresses of Services and pods.
	ServiceClusterIPRange string
	ClusterCIDR           string

	// AdmissionConfigFile is the path of an AdmissionConfiguration of the API server;
	// empty means none.
	AdmissionConfigFile string

	// FSync makes every write of etcd reach the disk before it is acknowledged. Without it a crash of the
	// machine, but not of the process, can lose or damage data.
	FSync bool
	// Etcd is an external etcd. The zero value means an embedded one.
	Etcd ExternalEtcd

	// WriteKubeconfig is one more file to which the administrator's kubeconfig is written.
	WriteKubeconfig string
	// ContextName is the context in the kubeconfigs; the name of the cluster if empty.
	ContextName string

	// Verbosity is the log level and LogFile the file that is logged to: Stderr if empty.
	Verbosity int
	LogFile   string
	// GCPercent, MemoryTarget and MemoryLimit tune Go's garbage collector once the cluster is ready. GCPercent holds for
	// a heap up to the size MemoryTarget.
	GCPercent    int
	MemoryTarget string
	MemoryLimit  string

	// Stderr takes the log and Now is the clock.
	Stderr io.Writer
	Now    func() time.Time
}

// ExternalEtcd describes how to connect to an etcd outside the process.
type ExternalEtcd struct {
	Servers  []string
	CAFile   string
	CertFile string
	KeyFile  string
	Prefix   string
}

// DefaultConfig is what the flags begin with.
func DefaultConfig() Config {
	return Config{
		BindAddress:           "127.0.0.1",
		Profile:               ControlPlane,
		NodeCPU:               "16",
		NodeMemory:            "128Gi",
		NodePods:              500,
		ServiceClusterIPRange: "10.96.0.0/12",
		ClusterCIDR:           "10.244.0.0/16",
		FSync:                 true,
		GCPercent:             300,
		MemoryTarget:          "1Gi",
	}
}

// complete fills what follows from other fields and checks everything that can be checked without touching
// anything.
func (c Config) complete() (Config, error) {
	if c.DataDir == "" {
		return c, errors.New("--data-dir is required: name a directory for the cluster's data")
	}
	dir, err := filepath.Abs(c.DataDir)
	if err != nil {
		return c, fmt.Errorf("finding the data directory: %w", err)
	}
	c.DataDir = dir
	c.Name = cmp.Or(c.Name, string(c.Profile))
	c.ContextName = cmp.Or(c.ContextName, c.Name)
	return c, c.validate()
}

func (c Config) validate() error {
	var errs limit.Checks
	errs.Require(c.Profile == ControlPlane || c.Profile == Member, "--profile %q: use %s or %s", c.Profile, ControlPlane, Member)
	msgs := validation.IsDNS1123Subdomain(c.Name)
	errs.Require(len(msgs) == 0, "--name %q: %s", c.Name, strings.Join(msgs, ", "))
	errs.Require(net.ParseIP(c.BindAddress) != nil, "--bind-address %q is not an IP address", c.BindAddress)
	errs.Require(c.SecurePort >= 0 && c.SecurePort <= 65535, "--secure-port %d is not a port: use 1 to 65535, or 0 for a free one", c.SecurePort)
	errs.Require(isRange(c.ServiceClusterIPRange), "--service-cluster-ip-range %q is not an address range like 10.0.0.0/16", c.ServiceClusterIPRange)
	errs.Require(isRange(c.ClusterCIDR), "--cluster-cidr %q is not an address range like 10.0.0.0/16", c.ClusterCIDR)
	errs.Require(c.Nodes >= 0, "--nodes %d is negative", c.Nodes)
	errs.Require(c.Nodes <= 0 || c.Profile == Member, "--nodes needs --profile %s: a control plane runs no pods", Member)
	errs.Require(c.NodePods >= 0, "--node-pods %d is negative", c.NodePods)
	errs.Require(isQuantity(c.NodeCPU), "--node-cpu %q is not a quantity like 16", c.NodeCPU)
	errs.Require(isQuantity(c.NodeMemory), "--node-memory %q is not a quantity like 128Gi", c.NodeMemory)
	errs.Require(c.MemoryTarget == "" || isQuantity(c.MemoryTarget), "--memory-target %q is not a quantity like 1Gi", c.MemoryTarget)
	errs.Require(c.MemoryLimit == "" || isQuantity(c.MemoryLimit), "--memory-limit %q is not a quantity like 512Mi", c.MemoryLimit)
	return errors.Join(errs...)
}

func isRange(s string) bool {
	_, _, err := net.ParseCIDR(s)
	return err == nil
}

func isQuantity(s string) bool {
	q, err := resource.ParseQuantity(s)
	return err == nil && q.Sign() >= 0
}

// bytesOf returns an amount of memory in bytes, 0 for none.
func bytesOf(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return 0, err
	}
	return q.Value(), nil
}
