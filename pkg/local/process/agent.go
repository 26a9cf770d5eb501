package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/kubelite/ready"
	"github.com/karmada-toolkit/karmada/internal/patch"
	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/wait"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
	"github.com/karmada-toolkit/karmada/pkg/local/membership"
	"github.com/karmada-toolkit/karmada/pkg/local/settings"
)

const (
	// agentKubeconfig is the file, beside the state of a federation, by which an agent
	// reaches the control plane.
	agentKubeconfig = "control-plane.kubeconfig"
	// minCertificateTTL is the least time for which the certificate of an agent must be
	// valid when the agent starts.
	minCertificateTTL = time.Minute
)

// agents starts the agents of members in Pull mode.
type agents struct {
	federation.Deps
	f        *federation.Federation
	program  string
	launcher *launcher
}

// agent is the agent of a member that is to run.
type agent struct {
	member, step string
	// control and info are the clusters of the control plane and of the member.
	control, info ready.Info
	clients       membership.Clients
}

// run makes sure that an agent runs and is ready. The context that it returns ends
// with the agent's process.
func (s *agents) run(ctx context.Context, a agent) (alive context.Context, stop context.CancelFunc, err error) {
	err = retryEnded(func() error {
		var ensured error
		alive, stop, ensured = s.ensure(ctx, a) //nolint:fatcontext // at most two attempts
		return ensured
	})
	return alive, stop, err
}

// ensure starts an agent unless it runs, and returns when it is ready.
func (s *agents) ensure(ctx context.Context, a agent) (context.Context, context.CancelFunc, error) {
	p := process{federation.Agent(a.member), s.f.Dir()}
	kubeconfig := filepath.Join(s.f.Dir().Data(p.name), agentKubeconfig)
	fresh, err := s.enrol(ctx, a, kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	if r, alive := p.running(); alive && fresh {
		// It does not read its kubeconfig again.
		if err := s.launcher.stop(ctx, p, r); err != nil {
			return nil, nil, err
		}
	}
	found, running, err := s.launcher.running(ctx, p, s.args(a, kubeconfig))
	if err != nil {
		return nil, nil, err
	}
	var stop context.CancelFunc
	if running {
		ctx, stop = p.during(ctx, found)
	} else {
		if err := s.f.ChoosePorts(federation.AgentHealthPort(a.member), federation.AgentMetricsPort(a.member)); err != nil {
			return nil, nil, err
		}
		c, err := s.launcher.start(ctx, p, s.program, s.args(a, kubeconfig))
		if err != nil {
			return nil, nil, err
		}
		ctx, stop = c.during(ctx)
	}
	if err := s.awaitReady(ctx, a); err != nil {
		stop()
		return nil, nil, err
	}
	s.launcher.done(p.name)
	return ctx, stop, nil
}

// awaitReady returns when the agent of a member is ready.
func (s *agents) awaitReady(ctx context.Context, a agent) error {
	ctx, cancel := context.WithTimeoutCause(ctx, membership.Timeout, fmt.Errorf("its agent is not ready after %s; its log is %s", membership.Timeout, s.f.Dir().Log(federation.Agent(a.member))))
	defer cancel()
	url := "http://" + federation.Address(s.f.Port(federation.AgentHealthPort(a.member))) + "/readyz"
	// The agent logs each check that fails: not every 20 ms.
	err := wait.Until(ctx, wait.Options{
		Interval: 100 * time.Millisecond,
		Publish:  func(error) { s.Progress.Waiting(a.step, "its agent to be ready") },
	}, func(ctx context.Context) error { return kube.CheckOK(ctx, http.DefaultClient, url) })
	if err != nil {
		return federation.Cause(ctx, err)
	}
	return nil
}

// enrol makes sure that the agent has a valid kubeconfig, and reports whether it is a
// new one.
func (s *agents) enrol(ctx context.Context, a agent, path string) (bool, error) {
	cluster := &clusterv1alpha1.Cluster{}
	err := a.clients.ControlPlane.Get(ctx, client.ObjectKey{Name: a.member}, cluster)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading cluster %q: %w", a.member, err)
	}
	if err == nil && cluster.Spec.APIEndpoint != "" && cluster.Spec.APIEndpoint != a.info.Server {
		// The member has another port than before, which its agent must not write.
		if err := patch.Change(ctx, a.clients.ControlPlane, cluster, func() { cluster.Spec.APIEndpoint = a.info.Server }); err != nil {
			return false, fmt.Errorf("writing the endpoint of cluster %q: %w", a.member, err)
		}
	}
	if err == nil && s.valid(path, a.control.Server) {
		return false, nil
	}
	identity, err := membership.Enrol(ctx, s.Deps, a.step, a.member, a.clients)
	if err != nil {
		return false, err
	}
	if err := pki.WriteFile(path, identity.Kubeconfig, 0o600); err != nil {
		return false, fmt.Errorf("storing the kubeconfig of the agent: %w", err)
	}
	return true, nil
}

// valid reports whether the kubeconfig of an agent is for this control plane, with a
// certificate that is valid.
func (s *agents) valid(path, server string) bool {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil || cfg.Host != server {
		return false
	}
	chain, err := cert.ParseCertsPEM(cfg.CertData)
	// It is not valid yet when the clock was set back.
	return err == nil && !s.Now().Before(chain[0].NotBefore) && s.Now().Add(minCertificateTTL).Before(chain[0].NotAfter)
}

// args are the arguments of an agent.
func (s *agents) args(a agent, kubeconfig string) []string {
	return append(agentArgs(s.f, a.member, kubeconfig, a.info), settings.Args(s.f.Settings, settings.AgentRole, "")...)
}

// agentArgs are the arguments of an agent without the settings of the user.
func agentArgs(f *federation.Federation, member, kubeconfig string, info ready.Info) []string {
	return []string{
		"agent",
		"--karmada-kubeconfig=" + kubeconfig,
		"--kubeconfig=" + info.Kubeconfig,
		"--cluster-name=" + member,
		"--cluster-api-endpoint=" + info.Server,
		"--controllers=*,certRotation",
		"--leader-elect=false",
		"--health-probe-bind-address=" + federation.Address(f.Port(federation.AgentHealthPort(member))),
		"--metrics-bind-address=" + federation.Address(f.Port(federation.AgentMetricsPort(member))),
		// On one machine a cluster that answers again is healthy at once.
		"--cluster-success-threshold=1s",
		"--cluster-failure-threshold=10s",
	}
}
