package member

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/wait"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// Names of what registering makes in a member, in the namespace of the agent.
const (
	// AgentName is the Deployment of the agent, and its cluster role.
	AgentName = "karmada-agent"
	// AgentAccount is its service account.
	AgentAccount = "karmada-agent-sa"
	// AgentKubeconfig is the Secret with its kubeconfig, under a key of the same
	// name.
	AgentKubeconfig = "karmada-kubeconfig"

	agentMount     = "/etc/kubeconfig"
	agentProgram   = "/bin/karmada-agent"
	kubeconfigFlag = "--karmada-kubeconfig="
	contextFlag    = "--karmada-context="
	nameFlag       = "--cluster-name="
	// kubeconfigHash, on pods of the agent, starts them again with another identity.
	kubeconfigHash = "cluster.karmada.io/kubeconfig-hash"
)

// AgentSpec specifies the agent of a member.
type AgentSpec struct {
	// Cluster whose agent it is.
	Cluster string
	// Namespace of the agent.
	Namespace string
	// ClusterNamespace of the accounts in the member and of the credentials in the
	// control plane.
	ClusterNamespace string
	// Endpoint of the member's API server, ProxyServer the proxy on the way to it;
	// both may be empty.
	Endpoint, ProxyServer string
	// Provider, Region and Zones describe the cluster.
	Provider, Region string
	Zones            []string
	// Image and Replicas of the agent.
	Image    string
	Replicas int32
	// Rotate enables the renewal of its certificate.
	Rotate bool
	// Kubeconfig is its identity in the control plane.
	Kubeconfig []byte
	// Args are arguments after those of the specification, which the last of a name overrides.
	Args []string
}

// Objects are what the agent needs in its member, in the order to write them. Its
// namespace is not among them.
func (s AgentSpec) Objects() []client.Object {
	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: s.Namespace, Name: name, Labels: systemLabels()}
	}
	role := metav1.ObjectMeta{Name: AgentName, Labels: systemLabels()}
	return []client.Object{
		opaque(s.Namespace, AgentKubeconfig, map[string][]byte{AgentKubeconfig: s.Kubeconfig}),
		&rbacv1.ClusterRole{ObjectMeta: role, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
			{NonResourceURLs: []string{"*"}, Verbs: []string{"get"}},
		}},
		&corev1.ServiceAccount{ObjectMeta: named(AgentAccount)},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: role,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: AgentName},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.Namespace, Name: AgentAccount}},
		},
		s.deployment(),
	}
}

// Command returns the command line of the agent, without Args.
func (s AgentSpec) Command() []string {
	controllers := "*"
	if s.Rotate {
		controllers = "*,certRotation"
	}
	args := []string{
		agentProgram,
		kubeconfigFlag + agentMount + "/" + AgentKubeconfig,
		nameFlag + s.Cluster,
		"--cluster-api-endpoint=" + s.Endpoint,
		"--cluster-provider=" + s.Provider,
		"--cluster-region=" + s.Region,
		"--cluster-zones=" + strings.Join(s.Zones, ","),
		"--controllers=" + controllers,
		"--proxy-server-address=" + s.ProxyServer,
		// This namespace is one of the control plane, where an agent has a lease.
		"--leader-elect-resource-namespace=" + clusterv1alpha1.NamespaceKarmadaSystem,
		"--cluster-namespace=" + s.ClusterNamespace,
		"--cluster-status-update-frequency=10s",
		"--metrics-bind-address=:8080",
		"--health-probe-bind-address=0.0.0.0:10357",
		"--v=2",
	}
	if s.Namespace != clusterv1alpha1.NamespaceKarmadaSystem {
		args = append(args, "--karmada-kubeconfig-namespace="+s.Namespace)
	}
	return args
}

func (s AgentSpec) deployment() *appsv1.Deployment {
	labels := map[string]string{"app": AgentName}
	sum := sha256.Sum256(s.Kubeconfig)
	const volume = "kubeconfig"
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: AgentName, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(s.Replicas),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{kubeconfigHash: hex.EncodeToString(sum[:8])}},
				Spec: corev1.PodSpec{
					ServiceAccountName: AgentAccount,
					SecurityContext:    kube.PodSecurity(),
					Tolerations: []corev1.Toleration{
						{Key: "node-role.kubernetes.io/master", Operator: corev1.TolerationOpExists},
						{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists},
					},
					Volumes: []corev1.Volume{{Name: volume, VolumeSource: corev1.VolumeSource{
						Secret: &corev1.SecretVolumeSource{SecretName: AgentKubeconfig},
					}}},
					Containers: []corev1.Container{{
						Name: AgentName, Image: s.Image, ImagePullPolicy: corev1.PullIfNotPresent,
						Command:      s.Command(),
						Args:         s.Args,
						Ports:        []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
						VolumeMounts: []corev1.VolumeMount{{Name: volume, MountPath: agentMount, ReadOnly: true}},

						SecurityContext: kube.ContainerSecurity(),
					}},
				},
			},
		},
	}
}

// clusterOfAgent returns the name that an agent registers its cluster under, or "".
func clusterOfAgent(d *appsv1.Deployment) string { return agentFlag(d, nameFlag) }

// agentFlag returns the value of a flag of an agent, or "".
func agentFlag(d *appsv1.Deployment, flag string) string {
	if len(d.Spec.Template.Spec.Containers) == 0 {
		return ""
	}
	c := &d.Spec.Template.Spec.Containers[0]
	for _, arg := range append(append([]string{}, c.Command...), c.Args...) {
		if value, ok := strings.CutPrefix(arg, flag); ok {
			return value
		}
	}
	return ""
}

// kubeconfigOf returns the Secret, its key, and the context that an agent reaches
// the control plane with.
func kubeconfigOf(d *appsv1.Deployment) (secret, file, kubecontext string, err error) {
	path := agentFlag(d, kubeconfigFlag)
	dir, file := path[:max(0, strings.LastIndex(path, "/"))], path[strings.LastIndex(path, "/")+1:]
	if dir == "" {
		return "", "", "", fmt.Errorf("the agent %s has no flag %s<path>", key(d), kubeconfigFlag)
	}
	pod := &d.Spec.Template.Spec
	for _, mount := range pod.Containers[0].VolumeMounts {
		if strings.TrimRight(mount.MountPath, "/") != dir {
			continue
		}
		for _, volume := range pod.Volumes {
			if volume.Name == mount.Name && volume.Secret != nil {
				return volume.Secret.SecretName, file, agentFlag(d, contextFlag), nil
			}
		}
	}
	return "", "", "", fmt.Errorf("the agent %s has no Secret at %s, where its flag %s%s points to", key(d), dir, kubeconfigFlag, path)
}

// WaitReachable waits until the user of a kubeconfig reaches a member through the
// control plane: the permissions of users are created some time after the cluster.
// After the limit it returns the last response.
func WaitReachable(ctx context.Context, controlPlane *rest.Config, name string, report Reporter, limit time.Duration) (string, error) {
	client, err := rest.HTTPClientFor(controlPlane)
	if err != nil {
		return "", fmt.Errorf("connecting to the control plane: %w", err)
	}
	url := controlPlane.Host + "/apis/cluster.karmada.io/v1alpha1/clusters/" + name + "/proxy/api/v1/namespaces?limit=1"
	state := "no answer yet"
	what := func() string {
		return fmt.Sprintf("cluster %q to be reached through the control plane (%s)", name, state)
	}
	err = await(ctx, limit, report, what, func(ctx context.Context) (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return false, fmt.Errorf("requesting cluster %q: %w", name, err)
		}
		resp, err := client.Do(req)
		if err != nil {
			state = err.Error()
			return false, nil
		}
		defer resp.Body.Close() //nolint:errcheck // only the status counts
		state = resp.Status
		return resp.StatusCode == http.StatusOK, nil
	})
	if errors.Is(err, wait.ErrTimeout) {
		return state, nil
	}
	return "", err
}
