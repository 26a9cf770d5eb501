package phases

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	// Host and HostAPI are clients of the host cluster.
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

	// given and admin are what a State without a host cluster works with.
	given *Inputs
	admin *rest.Config

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
	if len(have) == 0 {
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
	if s.given != nil {
		return s.given, nil
	}
	creds, err := s.Credentials()
	if err != nil {
		return nil, err
	}
	return &Inputs{Config: componentsConfig(s.Config, s.Facts, creds), Server: s.Addresses.Server, CRDs: s.CRDs}, nil
}

// ControlPlaneConfig returns how the new control plane is reached.
func (s *State) ControlPlaneConfig() (*rest.Config, error) {
	if s.admin != nil {
		return s.admin, nil
	}
	creds, err := s.Credentials()
	if err != nil {
		return nil, err
	}
	return creds.RESTConfig()
}

// ControlPlane returns a client of the new control plane.
func (s *State) ControlPlane() (client.Client, error) {
	s.mu.Lock()
	cp := s.controlPlane
	s.mu.Unlock()
	if cp != nil {
		return cp, nil
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

// apply writes objects that are not as wanted and returns a summary.
func (s *State) apply(ctx context.Context, to client.Client, objects []client.Object) (string, error) {
	changes, err := write.Apply(ctx, to, objects)
	s.Outcome.add(changes)
	return write.Summary(changes), err
}

// applyHost writes the objects of a phase in the host cluster.
func (s *State) applyHost(ctx context.Context, p Phase) (string, error) {
	in, err := s.Inputs()
	if err != nil {
		return "", err
	}
	objects, err := p.Host(in)
	if err != nil {
		return "", err
	}
	return s.apply(ctx, s.Host, objects)
}

// controlPlaneObjects returns the objects of a phase in the control plane, what they are made of, and a client.
func (s *State) controlPlaneObjects(p Phase) (client.Client, *Inputs, []client.Object, error) {
	in, err := s.Inputs()
	if err != nil {
		return nil, nil, nil, err
	}
	cp, err := s.ControlPlane()
	if err != nil {
		return nil, nil, nil, err
	}
	objects, err := p.ControlPlane(in)
	return cp, in, objects, err
}

// ready waits for a workload.
func (s *State) ready(ctx context.Context, phase, workload string) error {
	err := s.Tracker.Wait(ctx, workload, s.Config.Timeout(), func(what string) { s.Progress.Waiting(phase, what) })
	return s.Tracker.Explain(ctx, err, "--wait-component-ready-timeout", s.Config.Timeout(), components.WorkloadNames()...)
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

// deploy returns the run of a phase that writes its objects in the host cluster and waits until a workload is ready.
func deploy(workload string) func(context.Context, *State, Phase) error {
	return func(ctx context.Context, s *State, p Phase) error {
		result, err := s.applyHost(ctx, p)
		if err != nil {
			return err
		}
		if err := s.ready(ctx, p.Name, workload); err != nil {
			return err
		}
		s.Progress.Done(p.Name, "ready, "+result)
		return nil
	}
}

// writeObjects is the run of a phase that writes its objects in the control plane.
func writeObjects(ctx context.Context, s *State, p Phase) error {
	return writeThen(func(context.Context, *State, Phase, client.Client, *Inputs) (string, error) { return "", nil })(ctx, s, p)
}

// writeThen returns the run of a phase that writes its objects in the control plane, namespaces first, as what is in them
// follows, and then calls then, whose text precedes the summary.
func writeThen(then func(context.Context, *State, Phase, client.Client, *Inputs) (string, error)) func(context.Context, *State, Phase) error {
	return func(ctx context.Context, s *State, p Phase) error {
		cp, in, objects, err := s.controlPlaneObjects(p)
		if err != nil {
			return err
		}
		n := 0
		for n < len(objects) {
			if _, ok := objects[n].(*corev1.Namespace); !ok {
				break
			}
			n++
		}
		if _, err := s.apply(ctx, cp, objects[:n]); err != nil {
			return err
		}
		result, err := s.apply(ctx, cp, objects[n:])
		if err != nil {
			return err
		}
		text, err := then(ctx, s, p, cp, in)
		if err == nil {
			s.Progress.Done(p.Name, text+result)
		}
		return err
	}
}

// Inputs are what the objects of the phases are made of.
type Inputs struct {
	*components.Config
	// Server is the URL of the API server for those outside the host cluster.
	Server string
	// CRDs are the APIs of the federation; nil means those that are built in.
	CRDs []*apiextensionsv1.CustomResourceDefinition
}

// componentsConfig returns what the objects in the host cluster are made of.
func componentsConfig(r *config.Configuration, f *hostcluster.Facts, c *credentials.Credentials) *components.Config {
	cfg := &components.Config{
		Namespace: r.APIServer.Namespace, Domain: r.Host.Domain, IPv6: components.IPv6(f.IPv6),
		PullSecrets: r.Images.PullSecrets, NodePort: r.APIServer.NodePort, ServiceAnnotations: r.APIServer.ServiceAnnotations,
		Workloads: map[string]components.Workload{},
		Etcd: components.EtcdConfig{
			StorageMode: r.Etcd.StorageMode, DataPath: r.Etcd.DataPath, StorageClass: r.Etcd.StorageClass, Size: r.Etcd.PVCSize,
			NodeSelector: r.Etcd.NodeLabels, ExternalServers: r.Etcd.External.Servers.String(), KeyPrefix: r.Etcd.External.KeyPrefix,
		},
		Certificates: c.Data,
		Kubeconfigs:  c.Internal,
	}
	if f.Etcd != nil {
		cfg.Etcd.PodManagement = f.Etcd.Spec.PodManagementPolicy
	}
	if len(cfg.Etcd.NodeSelector) == 0 {
		cfg.Etcd.NodeSelector = map[string]string{components.EtcdNodeLabel: ""}
	}
	for _, part := range r.Parts() {
		w := WorkloadOf(r, part)
		if components.OfKubernetes(part.Name) {
			w.PullPolicy = corev1.PullIfNotPresent
		}
		cfg.Workloads[part.Name] = w
	}
	return cfg
}

// WorkloadOf returns the pods of a part.
func WorkloadOf(r *config.Configuration, part config.Part) components.Workload {
	return components.Workload{
		Image: r.ImageOf(part), PullPolicy: r.Images.PullPolicy, Replicas: part.Replicas,
		PriorityClass: part.PriorityClass, ExtraArgs: part.ExtraArgs.Strings(), PodSettings: part.PodSettings,
	}
}
