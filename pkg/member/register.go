package member

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/wait"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/member/registration/agentcert"
)

// RegisterRequest specifies the cluster to register in Pull mode, and the control plane.
type RegisterRequest struct {
	// Discovery of the control plane.
	Discovery Discovery
	// Agent that the member is to run. Its Kubeconfig is not set.
	Agent AgentSpec
	// Lifetime of the agent's certificate.
	Lifetime time.Duration
	// DryRun checks and writes nothing.
	DryRun bool
}

// Preflight lists, a line each, the objects in a member that prevent the
// installation of an agent.
type Preflight []string

// Error implements error.
func (p Preflight) Error() string {
	var b strings.Builder
	b.WriteString("error execution phase preflight: [preflight] Some fatal errors occurred:\n")
	for _, line := range p {
		b.WriteString("\t[ERROR]: " + line + "\n")
	}
	b.WriteString("\n[preflight] Please check the above errors")
	return b.String()
}

// Register makes the member that d gives access to a member in Pull mode: it gets
// the identity of its agent from the control plane, starts the agent and waits
// until the cluster is Ready. Step is called with one line for each step. If it fails
// before the agent runs, the objects it created are deleted.
func Register(ctx context.Context, d Deps, r RegisterRequest, step func(line string)) error {
	name := r.Agent.Cluster
	if err := ValidatePullName(name); err != nil {
		return err
	}
	step("[preflight] Running pre-flight checks")
	renewed, err := preflight(ctx, d.Member, r.Agent, r.Discovery.Endpoint)
	if err != nil {
		return err
	}
	if renewed {
		step("[preflight] The agent of cluster " + name + " is there: it gets new credentials, and nothing else changes")
	}
	id, err := ID(ctx, d.Member)
	if err != nil {
		return err
	}
	step("[preflight] All pre-flight checks were passed")
	if r.DryRun {
		return nil
	}
	step("[karmada-agent-start] Waiting to perform the TLS Bootstrap")
	server, err := Discover(ctx, r.Discovery, d.Report)
	if err != nil {
		return err
	}
	step("[karmada-agent-start] Waiting to construct karmada-agent kubeconfig")
	agent, err := Enrol(ctx, *server, EnrolRequest{
		Name: name, ID: id, Namespace: r.Agent.ClusterNamespace, Token: r.Discovery.Token,
		Description: agentcert.Description{Provider: r.Agent.Provider, Region: r.Agent.Region, Zones: r.Agent.Zones},
		Lifetime:    r.Lifetime, Timeout: r.Discovery.Timeout,
	}, d.Report)
	if err != nil {
		return fmt.Errorf("registering cluster %q: %w", name, err)
	}
	r.Agent.Kubeconfig = agent.Kubeconfig
	if err := startAgent(ctx, d, r, step); err != nil {
		return errors.Join(err, agent.Forget(ctx))
	}
	step("[karmada-agent-start] Waiting for cluster " + name + " to be Ready")
	return awaitReady(ctx, d, agent, r)
}

// preflight looks for what an earlier agent left. Its own cluster may register again at the same control plane: the agent may
// have lost its identity, or that has ended. It reports whether there is an agent with an identity.
func preflight(ctx context.Context, c client.Client, s AgentSpec, endpoint string) (renewed bool, err error) {
	found := map[string]client.Object{}
	var problems Preflight
	for _, want := range []struct {
		kind, name string
		obj        client.Object
	}{
		{"Secret", AgentKubeconfig, &corev1.Secret{}},
		{"ServiceAccount", AgentAccount, &corev1.ServiceAccount{}},
		{"Deployment", AgentName, &appsv1.Deployment{}},
	} {
		err := c.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: want.name}, want.obj)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("looking for %s %s/%s in the member: %w", want.kind, s.Namespace, want.name, err)
		}
		found[want.kind] = want.obj
		problems = append(problems, fmt.Sprintf("%s/%s %s already exists", s.Namespace, want.name, want.kind))
	}
	secret, _ := found["Secret"].(*corev1.Secret)
	switch own := ours(found, s.Cluster); {
	case len(problems) == 0 || secret == nil && own:
		return false, nil
	case own && found["Deployment"] != nil && serverOf(secret) == endpoint:
		return true, nil
	}
	return false, problems
}

// serverOf returns HOST:PORT of the control plane of an agent, by the Secret with its kubeconfig; empty if it is not readable.
func serverOf(secret *corev1.Secret) string {
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[AgentKubeconfig])
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(config.Host, "https://")
}

// ours reports whether what was found is what registering the cluster made.
func ours(found map[string]client.Object, cluster string) bool {
	if account := found["ServiceAccount"]; account != nil && account.GetLabels()[workv1alpha2.SystemLabel] != workv1alpha2.SystemLabelValue {
		return false
	}
	deployment, ok := found["Deployment"].(*appsv1.Deployment)
	return !ok || clusterOfAgent(deployment) == cluster
}

// startAgent writes what the agent needs and waits until it runs. If it does not,
// what was made is taken back.
func startAgent(ctx context.Context, d Deps, r RegisterRequest, step func(string)) (err error) {
	j := &journal{client: d.Member}
	defer func() {
		if err == nil {
			return
		}
		step("karmadactl register failed and started deleting the created resources")
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
		defer cancel()
		err = errors.Join(err, j.undo(undo))
	}()
	step("[karmada-agent-start] Waiting the necessary secret and RBAC")
	if err := ensureNamespace(ctx, j, r.Agent.Namespace, d.Report); err != nil {
		return err
	}
	objects := r.Agent.Objects()
	for i, obj := range objects {
		if i == len(objects)-1 {
			step("[karmada-agent-start] Waiting karmada-agent Deployment")
		}
		if err := put(ctx, j, obj); err != nil {
			return err
		}
	}
	return awaitRollout(ctx, d, r)
}

// put creates an object, or replaces what an earlier run left of it.
func put(ctx context.Context, j *journal, obj client.Object) error {
	created, err := j.create(ctx, obj)
	if err != nil || created {
		return err
	}
	have, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no object", obj)
	}
	if err := j.client.Get(ctx, client.ObjectKeyFromObject(obj), have); err != nil {
		return fmt.Errorf("reading %T %s: %w", obj, key(obj), err)
	}
	obj.SetResourceVersion(have.GetResourceVersion())
	if err := j.client.Update(ctx, obj); err != nil {
		return fmt.Errorf("updating %T %s: %w", obj, key(obj), err)
	}
	return nil
}

// awaitRollout waits until the agent is available. After the timeout the error has
// the state of its pods.
func awaitRollout(ctx context.Context, d Deps, r RegisterRequest) error {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: r.Agent.Namespace, Name: AgentName}}
	state := func() string {
		stateCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait.PublishInterval)
		defer cancel()
		return podState(stateCtx, d.Member, deployment)
	}
	what := func() string { return fmt.Sprintf("deployment %s of the member: %s", key(deployment), state()) }
	err := await(ctx, r.Discovery.Timeout, d.Report, what, func(ctx context.Context) (bool, error) {
		if err := d.Member.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return false, fmt.Errorf("reading deployment %s of the member: %w", key(deployment), err)
		}
		s := &deployment.Status
		return s.ObservedGeneration >= deployment.Generation && s.UpdatedReplicas >= r.Agent.Replicas && s.AvailableReplicas >= r.Agent.Replicas, nil
	})
	if errors.Is(err, wait.ErrTimeout) {
		return fmt.Errorf("the agent of cluster %q does not run after %s: %s", r.Agent.Cluster, r.Discovery.Timeout, state())
	}
	return err
}

// podState describes the pods of a deployment that are not ready.
func podState(ctx context.Context, c client.Client, d *appsv1.Deployment) string {
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace(d.Namespace), client.MatchingLabels(map[string]string{"app": AgentName})); err != nil {
		return err.Error()
	}
	var out []string
	for i := range pods.Items {
		if problem := podProblem(&pods.Items[i]); problem != "" {
			out = append(out, "pod "+pods.Items[i].Name+": "+problem)
		}
	}
	if len(out) == 0 {
		return fmt.Sprintf("%d of %d pods are available", d.Status.AvailableReplicas, *d.Spec.Replicas)
	}
	return strings.Join(out, "; ")
}

func podProblem(pod *corev1.Pod) string {
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		switch {
		case s.Ready:
			return ""
		case s.State.Waiting != nil && s.State.Waiting.Reason != "":
			return strings.TrimRight(s.State.Waiting.Reason+": "+s.State.Waiting.Message, ": ")
		case s.State.Terminated != nil:
			return fmt.Sprintf("it ended with code %d (%s)", s.State.Terminated.ExitCode, s.State.Terminated.Reason)
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Status == corev1.ConditionFalse && c.Message != "" {
			return c.Message
		}
	}
	return ""
}

// awaitReady waits until the control plane has the cluster as Ready. By then the
// agent runs, and goes on trying whatever comes of it here.
func awaitReady(ctx context.Context, d Deps, i *Identity, r RegisterRequest) error {
	asAgent := d
	asAgent.ControlPlane = i.Client
	state, err := WaitReady(ctx, asAgent, r.Agent.Cluster, r.Discovery.Timeout)
	if err != nil {
		return fmt.Errorf("cluster %q is registered, but not Ready yet: %w", r.Agent.Cluster, err)
	}
	if state != "" {
		return fmt.Errorf("cluster %q is registered, but not Ready after %s: %s; see what its agent says with: kubectl --namespace %s logs deployment/%s",
			r.Agent.Cluster, r.Discovery.Timeout, state, r.Agent.Namespace, AgentName)
	}
	return nil
}
