package member

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/wait"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// UnregisterRequest specifies the cluster in Pull mode to remove.
type UnregisterRequest struct {
	// Name of the cluster.
	Name string
	// Namespace and Agent are where the agent runs in the member.
	Namespace, Agent string
	// ClusterNamespace of the accounts in the member.
	ClusterNamespace string
	// Wait is how long to wait until the cluster is deleted.
	Wait time.Duration
	// DryRun checks and writes nothing.
	DryRun bool
}

// AgentConfig returns the agent's configuration for the control plane, for users who
// have no kubeconfig of it. A non-empty kubecontext replaces the agent's.
func AgentConfig(ctx context.Context, member client.Client, r UnregisterRequest) (*rest.Config, error) {
	deployment := &appsv1.Deployment{}
	err := member.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Agent}, deployment)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no agent %s/%s in the member; say where it is with --namespace and --agent-name, or give a kubeconfig of the control plane with --karmada-config. A cluster in Push mode has no agent: `unjoin` removes it", r.Namespace, r.Agent)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the agent %s/%s of the member: %w", r.Namespace, r.Agent, err)
	}
	if name := clusterOfAgent(deployment); name != "" && name != r.Name {
		return nil, fmt.Errorf("the agent %s/%s is that of cluster %q, not of %q", r.Namespace, r.Agent, name, r.Name)
	}
	name, file, kubecontext, err := kubeconfigOf(deployment)
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{}
	if err := member.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, secret); err != nil {
		return nil, fmt.Errorf("reading secret %s/%s, the identity of the agent: %w; give a kubeconfig of the control plane with --karmada-config", r.Namespace, name, err)
	}
	raw, err := clientcmd.Load(secret.Data[file])
	if err != nil || len(secret.Data[file]) == 0 {
		return nil, fmt.Errorf("secret %s/%s has no kubeconfig under %q", r.Namespace, name, file)
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*raw, kubecontext, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig in secret %s/%s: %w", r.Namespace, name, err)
	}
	config.Timeout = 10 * time.Second
	return config, nil
}

// Unregister makes a member in Pull mode leave, either with the rights of an
// administrator of the control plane or with those of its own agent. The agent
// cleans the member up before it is removed itself. It returns what it had to leave
// behind, a line each.
func Unregister(ctx context.Context, d Deps, r UnregisterRequest) ([]string, error) {
	cluster := &clusterv1alpha1.Cluster{}
	err := d.ControlPlane.Get(ctx, client.ObjectKey{Name: r.Name}, cluster)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return unregisterRest(ctx, d, r, err)
	case err != nil:
		return nil, fmt.Errorf("reading cluster %q: %w", r.Name, err)
	case cluster.Spec.SyncMode == clusterv1alpha1.Push:
		return nil, fmt.Errorf("cluster %s is a Push mode member cluster, please use command `unjoin` if you want to continue unjoining the cluster", r.Name)
	}
	if err := sameCluster(ctx, d, cluster); err != nil {
		return nil, err
	}
	if r.DryRun {
		return nil, nil
	}
	left, _ := inventory(ctx, d.ControlPlane, r.Name)
	if err := client.IgnoreNotFound(d.ControlPlane.Delete(ctx, cluster)); err != nil {
		return nil, fmt.Errorf("deleting cluster %q: %w", r.Name, err)
	}
	if err := awaitGone(ctx, d, r.Name, r.Wait); err != nil {
		if !errors.Is(err, wait.ErrTimeout) {
			return nil, err
		}
		return nil, fmt.Errorf("cluster %q is still being removed after %s: %s; the removal goes on, and another %q waits for it again; to give the cluster up use %q: %w",
			r.Name, r.Wait, strings.Join(remaining(ctx, d, r.Name), ", "), d.Program+" unregister "+r.Name, d.Program+" unjoin "+r.Name+" --abandon", context.DeadlineExceeded)
	}
	if cluster.Ready() {
		left = nil // the agent was there to clean up
	}
	return left.lines(), cleanRegistered(ctx, d, r)
}

// unregisterRest handles a cluster that the control plane does not have, or does
// not show any more: an earlier run may have been interrupted before it came to the
// member.
func unregisterRest(ctx context.Context, d Deps, r UnregisterRequest, notFound error) ([]string, error) {
	if APIMissing(notFound) {
		return nil, notFederation(notFound)
	}
	deployment := &appsv1.Deployment{}
	err := d.Member.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Agent}, deployment)
	if err != nil || clusterOfAgent(deployment) != r.Name {
		return nil, fmt.Errorf("no cluster object %s found in karmada control Plane; %q lists those that are", r.Name, d.Program+" get clusters")
	}
	if r.DryRun {
		return nil, nil
	}
	return nil, cleanRegistered(ctx, d, r)
}

// sameCluster refuses to clean a member that is not the one of that name.
func sameCluster(ctx context.Context, d Deps, cluster *clusterv1alpha1.Cluster) error {
	id, err := ID(ctx, d.Member)
	if err != nil {
		return fmt.Errorf("reading the id of the member: %w; a cluster that is lost for good is given up with %q", err, d.Program+" unjoin "+cluster.Name+" --abandon")
	}
	return checkID(cluster, id)
}

// notAnother refuses a member that answers and is not the one of that name. One that does not answer is found when it is
// cleaned.
func notAnother(ctx context.Context, d Deps, cluster *clusterv1alpha1.Cluster) error {
	if d.Member == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, forceLimit/2)
	defer cancel()
	id, err := ID(ctx, d.Member)
	if err != nil {
		return nil // it does not answer
	}
	return checkID(cluster, id)
}

// checkID returns an error if the id of a member is not that of a Cluster.
func checkID(cluster *clusterv1alpha1.Cluster, id string) error {
	if cluster.Spec.ID != "" && cluster.Spec.ID != id {
		return fmt.Errorf("the kubeconfig of --cluster-kubeconfig is not that of cluster %q: its id is %s, that of the cluster %s; choose its context with --cluster-context", cluster.Name, id, cluster.Spec.ID)
	}
	return nil
}

// cleanRegistered removes from the member what registering and the agent made
// there.
func cleanRegistered(ctx context.Context, d Deps, r UnregisterRequest) error {
	ctx, cancel := context.WithTimeout(ctx, forceLimit)
	defer cancel()
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: r.Namespace, Name: name} }
	unjoin := UnjoinRequest{Name: r.Name, Namespace: r.ClusterNamespace}
	agent := []client.Object{
		// First, or it makes the others again.
		&appsv1.Deployment{ObjectMeta: named(r.Agent)},
	}
	agent = append(agent, memberObjects(unjoin)...)
	agent = append(agent,
		&corev1.ServiceAccount{ObjectMeta: named(AgentAccount)},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: AgentName}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: AgentName}},
		&corev1.Secret{ObjectMeta: named(AgentKubeconfig)},
	)
	err := forEach(agent, func(obj client.Object) error {
		err := d.Member.Delete(ctx, obj, client.PropagationPolicy(propagation(obj)))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing %T %s from cluster %q: %w", obj, key(obj), r.Name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := cleanNamespace(ctx, d, unjoin); err != nil {
		return err
	}
	return cleanAgentNamespace(ctx, d, r)
}

// propagation has a Deployment wait for the end of its pods.
func propagation(obj client.Object) metav1.DeletionPropagation {
	if _, ok := obj.(*appsv1.Deployment); ok {
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

// cleanAgentNamespace removes from the member the Lease of the agent, which the agent would make again while it ends, and
// the namespace of the agent if registering made it and nothing else uses it.
func cleanAgentNamespace(ctx context.Context, d Deps, r UnregisterRequest) error {
	agent := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Agent}}
	what := func() string { return fmt.Sprintf("the agent %s/%s to end", r.Namespace, r.Agent) }
	err := await(ctx, forceLimit/2, d.Report, what, func(ctx context.Context) (bool, error) {
		err := d.Member.Get(ctx, client.ObjectKeyFromObject(agent), agent)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("waiting for the end of the agent of cluster %q: %w", r.Name, err)
	}
	lease := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: names.AgentLease(r.Name)}}
	lease.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	if err := d.Member.Delete(ctx, lease); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing lease %s from cluster %q: %w", key(lease), r.Name, err)
	}
	ns := &corev1.Namespace{}
	if err := d.Member.Get(ctx, client.ObjectKey{Name: r.Namespace}, ns); err != nil {
		return client.IgnoreNotFound(err)
	}
	if ns.Labels[workv1alpha2.SystemLabel] != workv1alpha2.SystemLabelValue {
		return nil
	}
	used, err := inUse(ctx, d.Member, r.Namespace)
	if err != nil || used {
		return err
	}
	if err := d.Member.Delete(ctx, ns, client.Preconditions{UID: &ns.UID}); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("removing namespace %s from cluster %q: %w", ns.Name, r.Name, err)
	}
	return nil
}

// inUse reports whether a namespace has objects that Kubernetes does not make in each one by itself.
func inUse(ctx context.Context, c client.Client, namespace string) (bool, error) {
	for _, gvk := range []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion.WithKind("StatefulSet"), appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
		corev1.SchemeGroupVersion.WithKind("Service"), corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		corev1.SchemeGroupVersion.WithKind("ServiceAccount"), corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return false, fmt.Errorf("listing the %ss in namespace %s: %w", gvk.Kind, namespace, err)
		}
		for i := range list.Items {
			if name := list.Items[i].Name; name != "kube-root-ca.crt" && name != "default" {
				return true, nil
			}
		}
	}
	return false, nil
}

func forEach(objs []client.Object, fn func(client.Object) error) error {
	for _, obj := range objs {
		if err := fn(obj); err != nil {
			return err
		}
	}
	return nil
}
