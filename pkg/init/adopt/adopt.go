package adopt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/forward"
	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/progress"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/phases"
	"github.com/karmada-toolkit/karmada/pkg/init/rollout"
)

// Adoption takes a control plane over.
type Adoption struct {
	// Program is what the user types, for the next steps that errors name.
	Program string
	// Namespace of the control plane in the host cluster.
	Namespace string
	Images    Images
	// Etcd replaces etcd too.
	Etcd bool
	// Timeout is how long a component may take to be ready.
	Timeout  time.Duration
	Progress progress.Reporter
	Now      func() time.Time

	host    client.Client
	api     kubernetes.Interface
	admin   *rest.Config
	plane   client.Client
	tracker *rollout.Tracker
}

// apiServerProgram is the program of an API server.
const apiServerProgram = "kube-apiserver"

// webhookConfigurations are the names of those of the control plane.
var webhookConfigurations = [...]string{"mutating-config", "validating-config"}

// Connect connects to the host cluster, and through it to the control plane, with the credentials of its controller-manager.
func (a *Adoption) Connect(ctx context.Context, cfg *rest.Config) (err error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = -1, 0
	if a.api, err = kubernetes.NewForConfig(cfg); err == nil {
		a.host, err = client.New(cfg, client.Options{Scheme: kube.NewScheme()})
	}
	if err != nil {
		return fmt.Errorf("connecting to the host cluster: %w", err)
	}
	a.tracker = rollout.NewTracker(a.api, a.Namespace, a.Now, nil)
	plan, err := discover(ctx, a.host, a.Namespace, a.Images, a.Etcd)
	if err != nil {
		return err
	}
	manager := plan.manager()
	if manager == nil {
		return plan.Err()
	}
	kubeconfig, err := a.kubeconfigOf(ctx, manager)
	if err != nil {
		return err
	}
	if a.admin, err = clientcmd.RESTConfigFromKubeConfig(kubeconfig); err != nil {
		return fmt.Errorf("the kubeconfig of %s: %w", manager.Name, err)
	}
	through, err := forward.NewHost(cfg, nil)
	if err != nil {
		return fmt.Errorf("connecting to the host cluster: %w", err)
	}
	a.admin.QPS, a.admin.Burst, a.admin.Dial = -1, 0, func(ctx context.Context, _, address string) (net.Conn, error) { return through.Dial(ctx, address) }
	if a.plane, err = client.New(a.admin, client.Options{Scheme: kube.NewScheme()}); err != nil {
		return fmt.Errorf("connecting to the control plane: %w", err)
	}
	return nil
}

// lastFlag returns the value of a flag of a container that is in effect; empty without one.
func lastFlag(c *corev1.Container, flag string) string {
	values := append([]string{""}, components.FlagValues(slices.Concat(c.Command, c.Args), flag)...)
	return values[len(values)-1]
}

// kubeconfigOf returns the kubeconfig that a component reads, from the Secret that it mounts.
func (a *Adoption) kubeconfigOf(ctx context.Context, c *Component) ([]byte, error) {
	pod, container := c.pod, &c.pod.Containers[c.container]
	path := lastFlag(container, "--kubeconfig")
	for _, m := range container.VolumeMounts {
		file, below := strings.CutPrefix(path, m.MountPath)
		i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name && v.Secret != nil })
		if !below || path == "" || i < 0 {
			continue
		}
		key := strings.TrimPrefix(file, "/")
		if m.SubPath != "" {
			key = m.SubPath
		}
		for _, item := range pod.Volumes[i].Secret.Items {
			if item.Path == key {
				key = item.Key
			}
		}
		secret := &corev1.Secret{}
		if err := a.host.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: pod.Volumes[i].Secret.SecretName}, secret); err != nil {
			return nil, fmt.Errorf("reading the kubeconfig of %s: %w", c.Name, err)
		}
		if content := secret.Data[key]; len(content) > 0 {
			return content, nil
		}
	}
	return nil, fmt.Errorf("the kubeconfig of %s, %q, is in no Secret that it mounts", c.Name, path)
}

// Plan returns what Run would do.
func (a *Adoption) Plan(ctx context.Context) (*Plan, error) {
	p, err := discover(ctx, a.host, a.Namespace, a.Images, a.Etcd)
	if err != nil {
		return nil, err
	}
	if p.Agents, err = agents(ctx, a.plane); err != nil {
		return nil, err
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "*", Resource: "*", Verb: "*"}}}
	if err := a.plane.Create(ctx, review); err != nil {
		return nil, fmt.Errorf("reading the rights of %s: %w", components.ControllerManager, err)
	}
	if !review.Status.Allowed {
		p.Refusals = append(p.Refusals, components.ControllerManager+" is no administrator of the control plane, as that of Karmada is: this one was installed by this project; upgrade it as it was installed")
	}
	p.Purges, err = renamePurgeModes(ctx, a.plane, purgingKinds(), current(), true)
	return p, err
}

// agents returns those of the clusters in Pull mode of a control plane.
func agents(ctx context.Context, plane client.Client) ([]Agent, error) {
	clusters := &clusterv1alpha1.ClusterList{}
	if err := plane.List(ctx, clusters); err != nil {
		return nil, fmt.Errorf("listing the clusters of the control plane: %w", err)
	}
	var out []Agent
	for i := range clusters.Items {
		if clusters.Items[i].Spec.SyncMode != clusterv1alpha1.Pull {
			continue
		}
		agent := Agent{Cluster: clusters.Items[i].Name, Rights: RightsOfRegistration}
		if err := plane.Get(ctx, client.ObjectKey{Name: names.AgentRole(agent.Cluster)}, &rbacv1.ClusterRoleBinding{}); apierrors.IsNotFound(err) {
			agent.Rights = RightsUnknown
		} else if err != nil {
			return nil, fmt.Errorf("reading the rights of the agent of cluster %s: %w", agent.Cluster, err)
		}
		out = append(out, agent)
	}
	return out, nil
}

// Run takes the control plane over. It can be run again after it was interrupted. With prepare, it does what comes before the images.
func (a *Adoption) Run(ctx context.Context, prepare bool) (*Plan, error) {
	p, err := a.Plan(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.Err(); err != nil && !prepare {
		return p, err
	}
	if err := a.step(ctx, "record", func() (string, error) { return a.record(ctx, p) }); err != nil {
		return p, err
	}
	if err := a.definitions(ctx, p); err != nil || prepare && p.Release == "" {
		return p, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go a.tracker.Run(ctx)
	if prepare {
		return p, a.step(ctx, apiServerProgram, func() (string, error) { return a.bridge(ctx) })
	}
	for i := range p.Components {
		c := &p.Components[i]
		if err := a.step(ctx, c.Name, func() (string, error) { return a.replace(ctx, c) }); err != nil {
			return p, fmt.Errorf("%s: %w; the others stay as they are: run the command again, or go back with %q", c.Name, err, a.Program+" adopt --rollback -n "+a.Namespace)
		}
		if c.Role == components.Webhook {
			if err := a.serve(ctx, p); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// step reports a step.
func (a *Adoption) step(ctx context.Context, name string, do func() (string, error)) (err error) {
	defer progress.Begin(ctx, a.Progress, name, &err)()
	text, err := do()
	if err == nil {
		a.Progress.Done(name, text)
	}
	return err
}

// definitions writes the APIs of the federation, and gives purge modes their present names. Some API servers accept these before, some
// after.
func (a *Adoption) definitions(ctx context.Context, p *Plan) error {
	_, early := renamePurgeModes(ctx, a.plane, purgingKinds(), current(), false)
	if err := a.phases(ctx, p, phases.CRDs); err != nil {
		return err
	}
	if early == nil {
		return nil
	}
	_, err := renamePurgeModes(ctx, a.plane, purgingKinds(), current(), false)
	return err
}

// serve writes what needs the webhook server.
func (a *Adoption) serve(ctx context.Context, p *Plan) error {
	return a.phases(ctx, p, phases.RBAC, phases.Webhooks, phases.Check)
}

// phases runs phases of an installation in the control plane.
func (a *Adoption) phases(ctx context.Context, p *Plan, names ...string) error {
	in, err := a.inputs(ctx, p)
	if err != nil {
		return err
	}
	var chosen []phases.Phase
	for _, phase := range phases.All() {
		if slices.Contains(names, phase.Name) {
			chosen = append(chosen, phase)
		}
	}
	return phases.RunControlPlane(ctx, in, a.admin, chosen, a.Timeout, a.Progress, a.Now)
}

// inputs returns what the objects of the control plane are made of: the webhook server is where it is called now.
func (a *Adoption) inputs(ctx context.Context, p *Plan) (*phases.Inputs, error) {
	called := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := a.plane.Get(ctx, client.ObjectKey{Name: webhookConfigurations[1]}, called); err != nil {
		return nil, fmt.Errorf("reading the webhooks of the control plane: %w", err)
	}
	if len(called.Webhooks) == 0 || called.Webhooks[0].ClientConfig.URL == nil {
		return nil, errors.New("the webhooks of the control plane have no URL: their server is not known")
	}
	u, err := url.Parse(*called.Webhooks[0].ClientConfig.URL)
	if err != nil {
		return nil, fmt.Errorf("the URL of the webhooks: %w", err)
	}
	service, rest, _ := strings.Cut(u.Hostname(), ".")
	namespace, _, _ := strings.Cut(rest, ".")
	c := &components.Config{
		Namespace: namespace, SystemNamespace: clusterv1alpha1.NamespaceKarmadaSystem,
		Names: func(name string) string {
			if name == components.Webhook {
				return service
			}
			return name
		},
		Certificates: components.Certificates{"ca.crt": called.Webhooks[0].ClientConfig.CABundle},
		Workloads:    map[string]components.Workload{},
	}
	if manager := p.manager(); manager != nil {
		container := manager.pod.Containers[manager.container]
		c.Workloads[components.ControllerManager] = components.Workload{ExtraArgs: slices.Concat(container.Command, container.Args)}
	}
	return &phases.Inputs{Config: c, Server: a.admin.Host}, nil
}

// replace gives a component its image, and waits for it.
func (a *Adoption) replace(ctx context.Context, c *Component) (string, error) {
	text := "has the image"
	if !c.Adopted() {
		change := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":%q,"image":%q}]}}}}`, c.pod.Containers[c.container].Name, c.Target)
		if err := a.host.Patch(ctx, c.workload.DeepCopyObject().(client.Object), client.RawPatch("application/strategic-merge-patch+json", []byte(change))); err != nil {
			return "", err
		}
		text = c.Version + " -> " + c.Target
	}
	if err := a.await(ctx, c.Name); err != nil || c.Role != components.Etcd {
		return text, err
	}
	return text, a.awaitAnswer(ctx)
}

// await returns when a workload is ready.
func (a *Adoption) await(ctx context.Context, name string) error {
	err := a.tracker.Wait(ctx, name, a.Timeout, func(what string) { a.Progress.Waiting(name, what) })
	return a.tracker.Explain(ctx, err, "--timeout", a.Timeout, name)
}
