// Package membership makes clusters members of a local federation.
package membership

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/progress"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
	"github.com/karmada-toolkit/karmada/pkg/member"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
)

// FieldManager owns what the start of a federation writes.
const FieldManager = "karmadactl-local"

// Timeout bounds how long a member may take to be Ready.
const Timeout = 90 * time.Second

// tokenTTL is how long the token of a registration is valid.
const tokenTTL = 10 * time.Minute

// Member is a cluster that is to belong to the federation.
type Member struct {
	Name string
	// ControlPlane and Kubeconfig are the paths of the kubeconfigs of the control
	// plane and of the member.
	ControlPlane, Kubeconfig string
	// Endpoint is where the control plane reaches the member; empty means at the same
	// address as the user.
	Endpoint string
	// Known reports whether the member belonged to the federation at the end of an earlier start.
	Known bool
	// Remove is the command that takes the member out of the federation.
	Remove string
	// Hint is the next step for the user if the member does not become Ready.
	Hint string
}

// Clients are clients of both sides.
type Clients struct {
	Config               *rest.Config // of the control plane
	ControlPlane, Member client.Client
}

// Connect returns clients of the cluster of a kubeconfig, without rate limits.
func Connect(kubeconfig string) (*rest.Config, client.Client, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nil, fmt.Errorf("reading kubeconfig %s: %w", kubeconfig, err)
	}
	cfg.QPS, cfg.Burst = -1, 0
	c, err := client.New(cfg, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to %s: %w", cfg.Host, err)
	}
	return cfg, c, nil
}

// Reporter shows what the member package waits for as what a step waits for.
func Reporter(p progress.Reporter, step string) member.Reporter {
	return func(line string) { p.Waiting(step, strings.TrimPrefix(line, member.WaitingFor)) }
}

// Join makes sure that a member in Push mode belongs to the federation and returns
// when it is Ready.
func Join(ctx context.Context, d federation.Deps, m Member) error {
	return enter(ctx, d, m, "join", "Ready", func(e *entry) error {
		if !e.belongs || member.LacksCredentials(ctx, e.deps, m.Name) {
			if _, err := member.Join(ctx, e.deps, member.JoinRequest{
				Name: m.Name, Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Config: e.member, Endpoint: m.Endpoint,
			}); err != nil {
				return err
			}
		}
		return waitReady(ctx, e.deps, e.clients.Config, m)
	})
}

// Register makes sure that a member in Pull mode belongs to the federation and
// returns when it is Ready. runAgent makes sure that its agent runs; the context
// that it returns ends with the agent.
func Register(ctx context.Context, d federation.Deps, m Member, runAgent func(ctx context.Context, step string, c Clients) (context.Context, context.CancelFunc, error)) error {
	return enter(ctx, d, m, "register", "Ready, in Pull mode", func(e *entry) error {
		alive, stop, err := runAgent(ctx, e.step, e.clients)
		if err != nil {
			return err
		}
		defer stop()
		if err = waitReady(alive, e.deps, e.clients.Config, m); err != nil {
			return federation.Cause(alive, err)
		}
		return nil
	})
}

// entry is a member that joins a federation.
type entry struct {
	step    string
	clients Clients
	// member is the configuration of the member.
	member *rest.Config
	deps   member.Deps
	// belongs reports whether the control plane has its Cluster.
	belongs bool
}

// enter checks that a member can join, does so, and reports it.
func enter(ctx context.Context, d federation.Deps, m Member, verb, done string, join func(*entry) error) (err error) {
	e := &entry{step: verb + " " + m.Name}
	defer progress.Begin(ctx, d.Progress, e.step, &err)()
	if e.clients.Config, e.clients.ControlPlane, err = Connect(m.ControlPlane); err != nil {
		return err
	}
	if e.member, e.clients.Member, err = Connect(m.Kubeconfig); err != nil {
		return err
	}
	e.deps = member.Deps{Program: d.Program, ControlPlane: e.clients.ControlPlane, Member: e.clients.Member, Report: Reporter(d.Progress, e.step)}
	if err = member.RequireDiscovery(ctx, e.clients.Config, Timeout, e.deps.Report); err == nil {
		err = member.CheckLeaving(ctx, e.deps, m.Name)
	}
	if err == nil {
		err = checkIdentity(ctx, e.clients, m)
	}
	if err == nil {
		e.belongs, err = exists(ctx, e.clients.ControlPlane, m.Name)
	}
	if err == nil {
		err = join(e)
	}
	if err != nil {
		return fmt.Errorf("%sing %s: %w", verb, m.Name, err)
	}
	d.Progress.Done(e.step, done+again(m, e.belongs))
	return nil
}

// exists reports whether the control plane has a cluster.
func exists(ctx context.Context, controlPlane client.Client, name string) (bool, error) {
	err := controlPlane.Get(ctx, client.ObjectKey{Name: name}, &clusterv1alpha1.Cluster{})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading cluster %q: %w", name, err)
	}
	return err == nil, nil
}

// again returns the text for a member that joins anew: a user took it out of the control plane, and a start makes it a
// member again.
func again(m Member, belongs bool) string {
	if belongs || !m.Known {
		return ""
	}
	return "; it had left the control plane and joined again"
}

// checkIdentity returns an error if a member is another cluster than the one that joined under its name: it has lost its
// data, and with them the rights of the control plane.
func checkIdentity(ctx context.Context, c Clients, m Member) error {
	lost, err := Replaced(ctx, c, m.Name)
	if err != nil || !lost {
		return err
	}
	return fmt.Errorf("it is not the cluster that joined under this name: its data was lost, or another cluster joined in its place, and the control plane has no access to it; take it out with %q and start again with as many members as before", m.Remove)
}

// Replaced reports whether the control plane has a cluster with the name of a member, and it has another identity.
func Replaced(ctx context.Context, c Clients, name string) (bool, error) {
	cluster := &clusterv1alpha1.Cluster{}
	err := c.ControlPlane.Get(ctx, client.ObjectKey{Name: name}, cluster)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading cluster %q: %w", name, err)
	}
	id, err := member.ID(ctx, c.Member)
	if err != nil {
		return false, fmt.Errorf("reading the identity of %s: %w", name, err)
	}
	return cluster.Spec.ID != "" && cluster.Spec.ID != id, nil
}

// waitReady waits until a member is Ready and reached through the control plane.
func waitReady(ctx context.Context, deps member.Deps, control *rest.Config, m Member) error {
	problem, err := member.WaitReady(ctx, deps, m.Name, Timeout)
	if err != nil {
		return err
	}
	if problem != "" {
		return fmt.Errorf("it is not Ready after %s: %s; %s", Timeout, problem, m.Hint)
	}
	problem, err = member.WaitReachable(ctx, control, m.Name, deps.Report, Timeout)
	if err != nil {
		return err
	}
	if problem != "" {
		return fmt.Errorf("it is not reached through the control plane after %s: %s; %s", Timeout, problem, m.Hint)
	}
	return nil
}

// Enrol registers a member with the control plane, as "register" does, and returns
// the identity of its agent.
func Enrol(ctx context.Context, d federation.Deps, step, name string, c Clients) (*member.Identity, error) {
	id, err := member.ID(ctx, c.Member)
	if err != nil {
		return nil, fmt.Errorf("reading the identity of the cluster: %w", err)
	}
	token, err := member.NewToken(d.Now().Add(tokenTTL))
	if err != nil {
		return nil, err
	}
	if err := member.CreateToken(ctx, c.ControlPlane, token); err != nil {
		return nil, err
	}
	defer func() {
		_ = c.ControlPlane.Delete(context.WithoutCancel(ctx), registration.TokenSecret(token)) // else it expires
	}()
	if err := rest.LoadTLSFiles(c.Config); err != nil {
		return nil, fmt.Errorf("reading the authority of the control plane: %w", err)
	}
	server := member.Server{URL: c.Config.Host, CABundle: c.Config.CAData}
	return member.Enrol(ctx, server, member.EnrolRequest{Name: name, ID: id, Token: token.String(), Timeout: Timeout}, Reporter(d.Progress, step))
}
