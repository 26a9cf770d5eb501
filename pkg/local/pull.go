package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kubelite/ready"
	"github.com/karmada-toolkit/karmada/internal/pki"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
)

const (
	// agentSuffix ends the name of the agent process of a member.
	agentSuffix = "-agent"
	// agentKubeconfig is the file, beside the state of a federation, by which an agent
	// reaches the control plane.
	agentKubeconfig = "control-plane.kubeconfig"
	// agentTokenLife is how long the token of a registration is good for.
	agentTokenLife = 10 * time.Minute
	// agentCertificateLeft is the least time that the certificate of an agent is to
	// be good for when it starts.
	agentCertificateLeft = time.Minute
)

// agentName returns the name of the agent process of a member.
func agentName(member string) string { return member + agentSuffix }

// agentHealth returns the name of the port of an agent's health probes.
func agentHealth(member string) string { return agentName(member) + "-" + portHealth }

// agentMetrics returns the name of the port of an agent's metrics.
func agentMetrics(member string) string { return agentName(member) + "-" + portMetrics }

func (f *Federation) agentDir(member string) string { return filepath.Join(f.dir, agentName(member)) }

// pulls says whether a member is in Pull mode.
func (f *Federation) pulls(member string) bool { return slices.Contains(f.Pull, member) }

// choosePull has n members pull: those that did, and the last of the new ones.
// before is how many members there were.
func (f *Federation) choosePull(d Deps, n, before int) error {
	want := n - len(f.Pull)
	fresh := f.Members[before:]
	switch {
	case n > len(f.Members):
		return fmt.Errorf("--pull %d: the federation has only %d members; add some with --members", n, len(f.Members))
	case want < 0:
		return fmt.Errorf("%d members of federation %q are in Pull mode, not %d: take members out, with their data, with %q", len(f.Pull), f.Name, n, f.command(d, "down")+" --member "+strings.Join(f.Pull[n:], ","))
	case want > len(fresh):
		return fmt.Errorf("--pull %d: members of federation %q that are there keep their mode; add %d members with --members %d", n, f.Name, want-len(fresh), len(f.Members)+want-len(fresh))
	}
	f.Pull = append(f.Pull, fresh[len(fresh)-want:]...)
	return nil
}

// register makes sure that a member in Pull mode belongs to the federation, that
// its agent runs, and waits until it is Ready.
func (s *starter) register(ctx context.Context, name string, control, info ready.Info) error {
	step := "register " + name
	s.Progress.Begin(step)
	cfg, cp, err := connect(control.Kubeconfig)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(s.f.agentDir(name), agentKubeconfig)
	fresh, err := s.enrol(ctx, step, name, control, info, cfg, cp, kubeconfig)
	if err != nil {
		return fmt.Errorf("registering %s: %w", name, err)
	}
	p := s.f.process(agentName(name))
	if _, alive := p.running(); alive && fresh {
		// It would go on with what it has got.
		if err := p.stop(ctx); err != nil {
			return err
		}
	}
	_, alive, err := s.running(ctx, p, append(s.agentArgs(name, kubeconfig, info), s.f.settingArgs(true)...))
	if err != nil {
		return err
	}
	if !alive {
		if err := s.choosePorts(agentHealth(name), agentMetrics(name)); err != nil {
			return err
		}
		c, err := s.start(ctx, p, s.bin.karmada, append(s.agentArgs(name, kubeconfig, info), s.f.settingArgs(true)...)...)
		if err != nil {
			return err
		}
		var stop context.CancelFunc
		ctx, stop = c.during(ctx)
		defer stop()
	}
	if err := s.waitAgent(ctx, step, name); err != nil {
		return fmt.Errorf("registering %s: %w", name, cause(ctx, err))
	}
	deps := member.Deps{Program: s.Program, ControlPlane: cp, Report: s.reporter(step)}
	if err := settle(ctx, deps, cfg, name, "the log of the agent is "+s.f.log(agentName(name))); err != nil {
		return fmt.Errorf("registering %s: %w", name, cause(ctx, err))
	}
	s.Progress.Done(step, "Ready, in Pull mode")
	return nil
}

// waitAgent returns when the agent of a member works.
func (s *starter) waitAgent(ctx context.Context, step, name string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, joinLimit, fmt.Errorf("its agent is not ready after %s; its log is %s", joinLimit, s.f.log(agentName(name))))
	defer cancel()
	defer s.remind(ctx, step, func() string { return "its agent to be ready" })()
	url := "http://" + s.f.address(agentHealth(name)) + "/readyz"
	// It notes in its log every time that it is not ready.
	return pollEvery(ctx, 100*time.Millisecond, func() error { return askOK(ctx, http.DefaultClient, url) })
}

// enrol makes sure that there is a kubeconfig for the agent that works, and says
// whether it is another one than before.
func (s *starter) enrol(ctx context.Context, step, name string, control, info ready.Info, cfg *rest.Config, cp client.Client, path string) (bool, error) {
	cluster := &clusterv1alpha1.Cluster{}
	err := cp.Get(ctx, client.ObjectKey{Name: name}, cluster)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading cluster %q: %w", name, err)
	}
	if err == nil && cluster.Spec.APIEndpoint != "" && cluster.Spec.APIEndpoint != info.Server {
		// The member has another port than before, which its agent may not say.
		base := cluster.DeepCopy()
		cluster.Spec.APIEndpoint = info.Server
		if err := cp.Patch(ctx, cluster, client.MergeFrom(base)); err != nil {
			return false, fmt.Errorf("writing the endpoint of cluster %q: %w", name, err)
		}
	}
	if err == nil && s.identityGood(path, control.Server) {
		return false, nil
	}
	_, m, err := connect(info.Kubeconfig)
	if err != nil {
		return false, err
	}
	identity, err := s.identity(ctx, step, name, cfg, cp, m)
	if err != nil {
		return false, err
	}
	if err := pki.WriteFile(path, identity.Kubeconfig, 0o600); err != nil {
		return false, fmt.Errorf("storing the kubeconfig of the agent: %w", err)
	}
	return true, nil
}

// identity registers a member with the control plane, as "register" does.
func (d Deps) identity(ctx context.Context, step, name string, cfg *rest.Config, cp, m client.Client) (*member.Identity, error) {
	id, err := member.ID(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("reading the identity of the cluster: %w", err)
	}
	token, err := member.NewToken(d.Now().Add(agentTokenLife))
	if err != nil {
		return nil, err
	}
	if err := member.CreateToken(ctx, cp, token); err != nil {
		return nil, err
	}
	defer func() {
		_ = cp.Delete(context.WithoutCancel(ctx), registration.TokenSecret(token)) // else it expires
	}()
	if err := rest.LoadTLSFiles(cfg); err != nil {
		return nil, fmt.Errorf("reading the authority of the control plane: %w", err)
	}
	server := member.Server{URL: cfg.Host, CABundle: cfg.CAData}
	return member.Enrol(ctx, server, member.EnrolRequest{Name: name, ID: id, Token: token.ID + "." + token.Secret, Timeout: joinLimit}, d.reporter(step))
}

// identityGood says whether the kubeconfig of an agent is for this control plane,
// with a certificate that is valid.
func (s *starter) identityGood(path, server string) bool {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil || cfg.Host != server {
		return false
	}
	chain, err := cert.ParseCertsPEM(cfg.CertData)
	return err == nil && s.Now().Add(agentCertificateLeft).Before(chain[0].NotAfter)
}

// agentArgs are the arguments of the agent of a member.
func (s *starter) agentArgs(name, kubeconfig string, info ready.Info) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []string{
		"agent",
		"--karmada-kubeconfig=" + kubeconfig,
		"--kubeconfig=" + info.Kubeconfig,
		"--cluster-name=" + name,
		"--cluster-api-endpoint=" + info.Server,
		"--controllers=*,certRotation",
		"--leader-elect=false",
		"--health-probe-bind-address=" + s.f.address(agentHealth(name)),
		"--metrics-bind-address=" + s.f.address(agentMetrics(name)),
		// On one machine a cluster that answers again is well at once.
		"--cluster-success-threshold=1s",
		"--cluster-failure-threshold=10s",
	}
}

// choosePorts gives processes ports, and remembers them.
func (s *starter) choosePorts(names ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.f.choosePorts(names...); err != nil {
		return err
	}
	return s.f.save()
}
