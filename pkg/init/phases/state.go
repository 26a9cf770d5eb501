package phases

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ssa "github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/internal/wait"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/credentials"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
	"github.com/karmada-toolkit/karmada/pkg/init/rollout"
	"github.com/karmada-toolkit/karmada/pkg/init/write"
)

// State is one run of an installation, as its phases see it.
type State struct {
	Config *config.Configuration
	// Host and HostAPI are clients of the host cluster. Without them nothing is written there, and no workload is waited for.
	Host      client.Client
	HostAPI   kubernetes.Interface
	Facts     *hostcluster.Facts
	Addresses hostcluster.Addresses
	// CRDs are the APIs of the federation; nil means those that are built in.
	CRDs     []*apiextensionsv1.CustomResourceDefinition
	Tracker  *rollout.Tracker
	Progress *progress.Reminder
	Now      func() time.Time
	Outcome  *Outcome

	// Given is what the objects are made of; nil means that the phases make it of the configuration.
	Given *Inputs
	// Connect connects to the control plane; nil means as the administrator, by the certificates.
	Connect func(context.Context) (client.Client, error)
	// Admin is how the control plane is reached, if Given is.
	Admin *rest.Config
	// TimeoutFlag names the flag with the timeout of workloads.
	TimeoutFlag string
	// Parallel is how many phases may run at the same time, 0 without limit. With KeepGoing a failure stops only those that need the phase.
	Parallel  int
	KeepGoing bool

	mu           sync.Mutex
	credentials  *credentials.Credentials
	controlPlane client.Client
}

// Owner identifies the installation.
func (s *State) Owner() credentials.Owner {
	return credentials.OwnerOf(s.Facts, s.Config.APIServer.Namespace)
}

// Credentials loads or creates the certificates, once. Those of the installation in the host cluster precede those of
// the local files.
func (s *State) Credentials() (*credentials.Credentials, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.credentials != nil {
		return s.credentials, nil
	}
	have := s.Facts.Certificates
	if len(have) == 0 && s.Config.PKIPath != "" {
		files := credentials.FilesOf(s.Config)
		if who, ok := files.Owner(); ok && who == s.Owner() {
			var err error
			if have, err = files.Certificates(); err != nil {
				return nil, err
			}
		}
	}
	creds, err := credentials.Make(s.Config, have, s.Addresses, s.Now)
	if err != nil {
		return nil, err
	}
	s.credentials = creds
	return creds, nil
}

// CAHash returns how a cluster that registers recognises the authority of the control plane; empty unless a phase used
// the certificates.
func (s *State) CAHash() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.credentials == nil {
		return ""
	}
	return s.credentials.CAHash()
}

// Inputs returns what the objects of the phases are made of.
func (s *State) Inputs() (*Inputs, error) {
	if s.Given != nil {
		return s.Given, nil
	}
	creds, err := s.Credentials()
	if err != nil {
		return nil, err
	}
	return &Inputs{Config: ComponentsConfig(s.Config, s.Facts, creds), Server: s.Addresses.Server, CRDs: s.CRDs, AllInOneRuns: s.Facts.Runs(components.AllInOne)}, nil
}

// ControlPlaneConfig returns how the new control plane is reached.
func (s *State) ControlPlaneConfig() (*rest.Config, error) {
	if s.Admin != nil {
		return s.Admin, nil
	}
	creds, err := s.Credentials()
	if err != nil {
		return nil, err
	}
	return creds.RESTConfig()
}

// ControlPlane returns a client of the control plane.
func (s *State) ControlPlane(ctx context.Context) (client.Client, error) {
	if s.Connect != nil {
		return s.Connect(ctx)
	}
	cfg, err := s.ControlPlaneConfig()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.controlPlane != nil {
		return s.controlPlane, nil
	}
	if s.controlPlane, err = client.New(cfg, client.Options{Scheme: kube.NewScheme()}); err != nil {
		return nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	return s.controlPlane, nil
}

// controlPlaneAndInputs returns a client of the control plane, and what the objects of the phases are made of.
func (s *State) controlPlaneAndInputs(ctx context.Context) (client.Client, *Inputs, error) {
	in, err := s.Inputs()
	if err != nil {
		return nil, nil, err
	}
	cp, err := s.ControlPlane(ctx)
	return cp, in, err
}

// apply writes objects that are not as wanted, namespaces before what is in them.
func (s *State) apply(ctx context.Context, to client.Client, objects []client.Object) (ssa.ChangeSet, error) {
	n := slices.IndexFunc(objects, func(o client.Object) bool { _, ok := o.(*corev1.Namespace); return !ok })
	if n < 0 {
		n = len(objects)
	}
	changes, err := write.Apply(ctx, to, objects[:n])
	if err != nil {
		err = fmt.Errorf("create namespace %s failed: %w", objects[0].GetName(), err)
	} else {
		var more ssa.ChangeSet
		more, err = write.Apply(ctx, to, objects[n:])
		changes = append(changes, more...)
	}
	s.Outcome.add(changes)
	return changes, err
}

// workloadReady waits for a workload.
func (s *State) workloadReady(ctx context.Context, phase, workload string) error {
	err := s.Tracker.Wait(ctx, workload, s.Config.Timeout(), func(what string) { s.Progress.Waiting(phase, what) })
	all := components.WorkloadNames()
	if !slices.Contains(all, workload) {
		all = []string{workload}
	}
	return s.Tracker.Explain(ctx, err, s.TimeoutFlag, s.Config.Timeout(), all...)
}

// wait calls check until it succeeds, for limit at most, and publishes what is waited for.
func (s *State) wait(ctx context.Context, limit time.Duration, phase, what string, check func(context.Context) error) error {
	return wait.Until(ctx, wait.Options{Timeout: limit, Publish: func(reason error) {
		text := what
		if reason != nil {
			text += ": " + rollout.FirstLine(reason.Error())
		}
		s.Progress.Waiting(phase, text)
	}}, check)
}

// waitAfterReady is wait with a limit that begins when what is needed was last seen not ready: after a restart of its
// node the host cluster takes a pod for ready, and only later finds out.
func (s *State) waitAfterReady(ctx context.Context, limit time.Duration, phase, what string, unready func() string, check func(context.Context) error) error {
	last := s.Now()
	return s.wait(ctx, s.Config.Timeout(), phase, what, func(ctx context.Context) error {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if left := unready(); left != "" {
			last = s.Now()
			return fmt.Errorf("%s: %w", left, err)
		}
		if s.Now().Sub(last) < limit {
			return err
		}
		return wait.Terminal(fmt.Errorf("after %s: %w", limit, err))
	})
}

// Inputs are what the objects of the phases are made of.
type Inputs struct {
	*components.Config
	// Server is the URL of the API server for those outside the host cluster.
	Server string
	// CRDs are the APIs of the federation; nil means those that are built in.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// AllInOneRuns reports whether the installation that is there has the compact layout.
	AllInOneRuns bool
}

// ComponentsConfig returns what the objects in the host cluster are made of.
func ComponentsConfig(r *config.Configuration, f *hostcluster.Facts, c *credentials.Credentials) *components.Config {
	cfg := &components.Config{
		Namespace: r.APIServer.Namespace, Domain: r.Host.Domain, Compact: r.Compact, IPv6: components.IPv6(f.IPv6),
		Names: r.Names, Labels: r.Labels, SystemNamespace: r.SystemNamespace,
		PullSecrets: r.Images.PullSecrets, NodePort: r.APIServer.NodePort, ServiceAnnotations: r.APIServer.ServiceAnnotations,
		ServiceType: r.APIServer.ServiceType, LoadBalancerClass: r.APIServer.LoadBalancerClass,
		Workloads: map[string]components.Workload{},
		Etcd: components.EtcdConfig{
			StorageMode: r.Etcd.StorageMode, DataPath: r.Etcd.DataPath, StorageClass: r.Etcd.StorageClass, Size: r.Etcd.PVCSize, Claim: r.Etcd.Claim,
			NodeSelector: r.Etcd.NodeLabels, ExternalServers: r.Etcd.External.Servers.String(), KeyPrefix: r.Etcd.External.KeyPrefix,
		},
		Certificates: c.Data,
		Kubeconfigs:  c.Internal,
	}
	if f.Etcd != nil {
		cfg.Etcd.PodManagement = f.Etcd.Spec.PodManagementPolicy
		if cfg.Etcd.StorageMode == components.StorageEmptyDir {
			cfg.Etcd.ContentHash = f.Etcd.Spec.Template.Annotations[components.ContentHashAnnotation]
		}
	}
	cfg.Selectors = f.Selectors(r)
	if len(cfg.Etcd.NodeSelector) == 0 {
		cfg.Etcd.NodeSelector = map[string]string{components.EtcdNodeLabel: ""}
	}
	for _, part := range r.AllParts() {
		w := WorkloadOf(r, part)
		if components.OfKubernetes(part.Name) {
			w.PullPolicy = cmp.Or(part.Further.PullPolicy, corev1.PullIfNotPresent)
		}
		if n, scaled := f.Scaled(part.Name); scaled && r.KeepScale {
			w.Replicas = n
		}
		cfg.Workloads[part.Name] = w
	}
	if f.FormerEtcd() {
		w := cfg.Workloads[components.Etcd]
		w.Replicas, cfg.Etcd.Kept = *f.Etcd.Spec.Replicas, true
		cfg.Workloads[components.Etcd] = w
	}
	return cfg
}

// WorkloadOf returns the pods of a part.
func WorkloadOf(r *config.Configuration, part config.Part) components.Workload {
	w := part.Further
	w.Image, w.PullPolicy, w.Replicas = r.ImageOf(part), cmp.Or(w.PullPolicy, r.Images.PullPolicy), part.Replicas
	w.PriorityClass, w.ExtraArgs, w.PodSettings = part.PriorityClass, part.ExtraArgs.Strings(), part.PodSettings
	return w
}
