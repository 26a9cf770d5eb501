package kubelite

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/utils/clock"
	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/controllers"
	kwokclient "sigs.k8s.io/kwok/pkg/utils/client"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
)

const (
	// A node's lease is renewed after a quarter of this.
	nodeLeaseSeconds = 120
	nodeReadyTimeout = time.Minute
	nodePollInterval = 20 * time.Millisecond
	nodeParallelism  = 4
	// nodeIP is the address that all nodes report.
	nodeIP = "10.0.0.1"
	// labelNode marks the nodes of this package.
	labelNode = "kwok.x-k8s.io/node"
)

// stagePodReadyAgain makes pods Ready again that the node lifecycle controller made not Ready, as a kubelet does: the
// lease of their node was not renewed for a time. The delay lets that controller observe that the node is ready
// again. A condition with a reason was set by a user to simulate a failure, and is kept.
const stagePodReadyAgain = `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-ready-again
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: .status.phase, operator: In, values: [Running]}
    - {key: '.metadata.ownerReferences.[].kind', operator: NotIn, values: [Job]}
    - {key: '.status.conditions.[] | select( .type == "Ready" and .reason == null ) | .status', operator: In, values: ["False"]}
  delay:
    durationMilliseconds: 1000
  next:
    statusTemplate: |
      conditions:
      - lastTransitionTime: {{ Now | Quote }}
        status: "True"
        type: Ready
`

// startNodes makes the simulated nodes and acts as their kubelets until ctx ends. It returns when all are ready.
func startNodes(ctx context.Context, cfg Config, kubeconfig string) error {
	clients, err := kwokclient.NewClientset("", kubeconfig)
	if err != nil {
		return err
	}
	restConfig, err := clients.ToRESTConfig()
	if err != nil {
		return err
	}
	typed := rest.CopyConfig(restConfig)
	typed.AcceptContentTypes, typed.ContentType = protobuf+",application/json", protobuf
	client, err := kubernetes.NewForConfig(typed)
	if err != nil {
		return err
	}
	addresses, err := newPodAddresses(ctx, client, cfg.ClusterCIDR)
	if err != nil {
		return err
	}
	controller, err := newSimulator(clients, client, restConfig, cfg, addresses)
	if err != nil {
		return fmt.Errorf("making the node simulator: %w", err)
	}
	if err := reconcileNodes(ctx, client, cfg); err != nil {
		return err
	}
	if err := controller.Start(ctx); err != nil {
		return fmt.Errorf("starting the node simulator: %w", err)
	}
	return waitNodes(ctx, client, cfg)
}

func newSimulator(clients kwokclient.Clientset, client kubernetes.Interface, restConfig *rest.Config, cfg Config, addresses *podAddresses) (*kwok.Controller, error) {
	stages, err := parseStages(nodefast.DefaultNodeInit, nodeheartbeat.DefaultNodeHeartbeatWithLease,
		podfast.DefaultPodReady, stagePodReadyAgain, podfast.DefaultPodComplete, podfast.DefaultPodDelete)
	if err != nil {
		return nil, err
	}
	dynamicClient, err := clients.ToDynamicClient()
	if err != nil {
		return nil, err
	}
	mapper, err := clients.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	restClient, err := rest.RESTClientFor(restConfig)
	if err != nil {
		return nil, err
	}
	return kwok.NewController(kwok.Config{
		Clock:                      clock.RealClock{},
		DynamicClient:              dynamicClient,
		RESTClient:                 restClient,
		RESTMapper:                 mapper,
		ImpersonatingDynamicClient: clients.ToImpersonatingDynamicClient(),
		ImpersonatingTypedClient:   clients.ToImpersonatingTypedClient(),
		TypedClient:                client,
		ManageAllNodes:             true,
		CIDR:                       cfg.ClusterCIDR,
		NodeIP:                     nodeIP,
		LocalStages:                stages,
		PodPlayStageParallelism:    nodeParallelism,
		NodePlayStageParallelism:   nodeParallelism,
		PodsOnNodeSyncParallelism:  nodeParallelism,
		NodeLeaseDurationSeconds:   nodeLeaseSeconds,
		NodeLeaseParallelism:       nodeParallelism,
		ID:                         cfg.Name,
		FuncMap:                    gotpl.FuncMap{"PodIPsWith": addresses.ofPod},
	})
}

// parseStages reads kwok's stages: the transitions of a simulated node or pod.
func parseStages(manifests ...string) (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	stages := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, manifest := range manifests {
		stage, err := kwokconfig.UnmarshalWithType[*internalversion.Stage](manifest)
		if err != nil {
			return nil, fmt.Errorf("reading a stage: %w", err)
		}
		stages[stage.Spec.ResourceRef] = append(stages[stage.Spec.ResourceRef], stage)
	}
	return stages, nil
}

// desiredNodes are the nodes that the configuration asks for.
func desiredNodes(cfg Config) ([]*corev1.Node, error) {
	capacity := corev1.ResourceList{}
	for name, value := range map[corev1.ResourceName]string{
		corev1.ResourceCPU: cfg.NodeCPU, corev1.ResourceMemory: cfg.NodeMemory, corev1.ResourcePods: strconv.Itoa(cfg.NodePods),
	} {
		quantity, err := resource.ParseQuantity(value)
		if err != nil {
			return nil, fmt.Errorf("reading a node's %s: %w", name, err)
		}
		capacity[name] = quantity
	}
	nodes := make([]*corev1.Node, 0, cfg.Nodes)
	for i := range cfg.Nodes {
		name := fmt.Sprintf("%s-node-%d", cfg.Name, i)
		nodes = append(nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: name,
				Labels: map[string]string{
					corev1.LabelHostname:   name,
					corev1.LabelArchStable: "amd64",
					corev1.LabelOSStable:   "linux",
					labelNode:              "",
				},
				Annotations: map[string]string{"node.alpha.kubernetes.io/ttl": "0"},
			},
			Status: corev1.NodeStatus{
				Capacity: capacity, Allocatable: capacity,
				NodeInfo: corev1.NodeSystemInfo{KubeletVersion: kubernetesVersion(), KubeProxyVersion: kubernetesVersion()}, //nolint:staticcheck // kubectl shows it,
			},
		})
	}
	return nodes, nil
}

// reconcileNodes makes the nodes that are missing, corrects the capacity of the others, and removes those that an
// earlier run with more nodes left.
func reconcileNodes(ctx context.Context, client kubernetes.Interface, cfg Config) error {
	desired, err := desiredNodes(cfg)
	if err != nil {
		return err
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: labelNode})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	existing := map[string]*corev1.Node{}
	for i := range list.Items {
		existing[list.Items[i].Name] = &list.Items[i]
	}
	var group errgroup.Group
	group.SetLimit(nodeParallelism)
	for _, node := range desired {
		have := existing[node.Name]
		delete(existing, node.Name)
		group.Go(func() error { return applyNode(ctx, client, node, have) })
	}
	for name := range existing {
		group.Go(func() error { return removeNode(ctx, client, name) })
	}
	return group.Wait()
}

func applyNode(ctx context.Context, client kubernetes.Interface, node, have *corev1.Node) error {
	if have == nil {
		if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating node %q: %w", node.Name, err)
		}
		return nil
	}
	if sameResources(have.Status.Capacity, node.Status.Capacity) && sameResources(have.Status.Allocatable, node.Status.Allocatable) {
		return nil
	}
	have.Status.Capacity, have.Status.Allocatable = node.Status.Capacity, node.Status.Allocatable
	if _, err := client.CoreV1().Nodes().UpdateStatus(ctx, have, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("updating the capacity of node %q: %w", node.Name, err)
	}
	return nil
}

func removeNode(ctx context.Context, client kubernetes.Interface, name string) error {
	if err := client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing node %q: %w", name, err)
	}
	return nil
}

func sameResources(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

// waitNodes returns when all nodes are ready.
func waitNodes(ctx context.Context, client kubernetes.Interface, cfg Config) error {
	var waiting []string
	err := wait.PollUntilContextTimeout(ctx, nodePollInterval, nodeReadyTimeout, true, func(ctx context.Context) (bool, error) {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: labelNode, ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		waiting = notReady(list.Items)
		return len(list.Items) >= cfg.Nodes && len(waiting) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for nodes to be ready (not yet: %s): %w", strings.Join(waiting, ", "), err)
	}
	return nil
}

func notReady(nodes []corev1.Node) []string {
	var names []string
	for _, node := range nodes {
		if !nodeReady(node) {
			names = append(names, node.Name)
		}
	}
	return names
}

func nodeReady(node corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// reasonNotImplemented is the reason of the answer to requests that need a real container.
const reasonNotImplemented metav1.StatusReason = "NotImplemented"

// missing returns what a simulated pod lacks for a subresource, or nothing for one that needs no container.
func missing(subresource string) string {
	switch subresource {
	case "log":
		return "logs"
	case "exec", "attach":
		return "processes"
	case "portforward", "proxy":
		return "ports"
	default:
		return ""
	}
}

// refuseContainers answers requests for the containers of pods on simulated nodes, which would end in an error about
// the address of the node. Others, those for pods that do not exist or have no node among them, are for api.
func refuseContainers(api http.Handler, client kubernetes.Interface) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || !info.IsResourceRequest || info.APIGroup != "" || info.Resource != "pods" || missing(info.Subresource) == "" {
			api.ServeHTTP(w, r)
			return
		}
		if !hasNode(r.Context(), client, info.Namespace, info.Name) {
			api.ServeHTTP(w, r)
			return
		}
		err := &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Reason: reasonNotImplemented,
			Message: "simulated pods have no " + missing(info.Subresource) + "; use --runtime kind",
			Details: &metav1.StatusDetails{Kind: info.Resource, Name: info.Name},
		}}
		responsewriters.ErrorNegotiated(err, legacyscheme.Codecs, corev1.SchemeGroupVersion, w, r)
	})
}

func hasNode(ctx context.Context, client kubernetes.Interface, namespace, name string) bool {
	pod, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	return err == nil && pod.Spec.NodeName != ""
}
