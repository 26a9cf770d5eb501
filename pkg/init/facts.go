package installer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"

	"github.com/karmada-toolkit/karmada/internal/wait"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// reachTimeout is how long the host cluster may take to answer.
const reachTimeout = 10 * time.Second

const (
	// nodeTimeout is how long the first node may take to be ready.
	nodeTimeout = 30 * time.Second
	// nodeInterval is the time between two lists of the nodes.
	nodeInterval = 500 * time.Millisecond
)

// facts are what an installation needs to know of the host cluster. What could
// not be read is empty, and the error is kept for those who need it.
type facts struct {
	version  *apiversion.Info
	id       string
	ipv6     bool
	nodes    []corev1.Node
	nodesErr error
	services []corev1.Service
	svcErr   error
	// namespace is nil when there is none.
	namespace *corev1.Namespace
	// certificates of the installation that is there.
	certificates map[string][]byte
	// etcd of the installation that is there.
	etcd *appsv1.StatefulSet
}

// gather reads the facts. Only a host that does not answer is an error.
func gather(ctx context.Context, host kubernetes.Interface, o *Options) (*facts, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, reachTimeout, fmt.Errorf("no answer after %s", reachTimeout))
	defer cancel()
	f := &facts{}
	var err error
	if f.version, err = serverVersion(ctx, host); err != nil {
		return nil, fmt.Errorf("the host cluster cannot be reached: %w; choose another with --kubeconfig and --context", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		ns, err := host.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err == nil {
			f.id = string(ns.UID)
		}
		return connectionOnly(err)
	})
	g.Go(func() error { return connectionOnly(f.readNamespace(ctx, host, o.Namespace)) })
	g.Go(func() error {
		list, err := host.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if f.nodesErr = err; err == nil {
			f.nodes = list.Items
		}
		return connectionOnly(err)
	})
	g.Go(func() error {
		list, err := host.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if f.svcErr = err; err == nil {
			f.services = list.Items
		}
		return connectionOnly(err)
	})
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("reading the host cluster: %w", errors.Join(err, context.Cause(ctx)))
	}
	f.ipv6 = onlyIPv6(f)
	return f, nil
}

// serverVersion asks a server which version it is, for as long as ctx lasts.
func serverVersion(ctx context.Context, host kubernetes.Interface) (*apiversion.Info, error) {
	type answer struct {
		version *apiversion.Info
		err     error
	}
	got := make(chan answer, 1)
	go func() { // the call takes no context
		v, err := host.Discovery().ServerVersion()
		got <- answer{v, err}
	}()
	select {
	case a := <-got:
		return a.version, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// connectionOnly drops answers of the server: what is not allowed or not there is
// reported by those who need it.
func connectionOnly(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return nil
	}
	return err
}

func (f *facts) readNamespace(ctx context.Context, host kubernetes.Interface, name string) error {
	ns, err := host.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	f.namespace = ns
	secret, err := host.CoreV1().Secrets(name).Get(ctx, components.CertSecret, metav1.GetOptions{})
	if err == nil {
		f.certificates = secret.Data
	}
	if err := connectionOnly(err); err != nil {
		return err
	}
	etcd, err := host.AppsV1().StatefulSets(name).Get(ctx, components.Etcd, metav1.GetOptions{})
	if err == nil {
		f.etcd = etcd
	}
	return err
}

// onlyIPv6 says whether Services, and so pods, have IPv6 addresses first.
func onlyIPv6(f *facts) bool {
	for _, s := range f.services {
		if s.Namespace == metav1.NamespaceDefault && s.Name == "kubernetes" {
			ip := net.ParseIP(s.Spec.ClusterIP)
			return ip != nil && ip.To4() == nil
		}
	}
	return false
}

// sites returns the addresses of the API server: the one that was given, or those
// of the nodes that hold a control plane, or of the first three.
func (f *facts) sites(o *Options) (sites, error) {
	s := sites{ipv6: f.ipv6}
	if a := o.APIServer.AdvertiseAddress; a != "" {
		s.addresses = []string{a}
		s.server = serverURL(a, o.APIServer.NodePort)
		// The nodes' addresses lead there as well.
		s.addresses = append(s.addresses, nodeAddresses(servingNodes(f.nodes))...)
		return s, nil
	}
	if f.nodesErr != nil {
		return s, fmt.Errorf("the nodes of the host cluster cannot be listed (%w): give the address of the API server with --karmada-apiserver-advertise-address", f.nodesErr)
	}
	if s.addresses = nodeAddresses(servingNodes(f.nodes)); len(s.addresses) == 0 {
		return s, errors.New("karmada apiserver ip is empty: no node of the host cluster has an IP address; give one with --karmada-apiserver-advertise-address")
	}
	first := s.addresses[0]
	for _, a := range s.addresses { // the family of the pods first
		if (strings.Contains(a, ":")) == f.ipv6 {
			first = a
			break
		}
	}
	s.server = serverURL(first, o.APIServer.NodePort)
	return s, nil
}

// servingNodes are those whose addresses are published.
func servingNodes(nodes []corev1.Node) []corev1.Node {
	for _, label := range []string{"node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"} {
		var out []corev1.Node
		for _, n := range nodes {
			if _, ok := n.Labels[label]; ok {
				out = append(out, n)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nodes[:min(3, len(nodes))]
}

// nodeAddresses returns the IP addresses of nodes: of each node the internal ones,
// or the external ones if there are no others.
func nodeAddresses(nodes []corev1.Node) []string {
	var out []string
	for _, n := range nodes {
		for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP} {
			before := len(out)
			for _, a := range n.Status.Addresses {
				if a.Type == kind && net.ParseIP(a.Address) != nil && !slices.Contains(out, a.Address) {
					out = append(out, a.Address)
				}
			}
			if len(out) > before {
				break
			}
		}
	}
	return out
}

// etcdNode returns the node whose disk etcd uses: the one that is labelled
// already, or the first healthy one, those without taints first. It is empty when
// the user chose by labels.
func (f *facts) etcdNode(o *Options) (name string, labelled bool, err error) {
	if f.nodesErr != nil {
		return "", false, fmt.Errorf("the nodes of the host cluster cannot be listed: %w", f.nodesErr)
	}
	wanted, err := parseLabels(o.Etcd.NodeSelector)
	if err != nil {
		return "", false, err
	}
	if len(wanted) > 0 {
		return "", true, f.matchNodes(wanted)
	}
	for _, n := range f.nodes {
		if _, ok := n.Labels[components.EtcdNodeLabel]; ok {
			return n.Name, true, nil
		}
	}
	for _, tainted := range []bool{false, true} {
		for _, n := range f.nodes {
			if (len(n.Spec.Taints) > 0) == tainted && healthy(&n) && tolerated(n.Spec.Taints, o.Etcd.Pod.Tolerations) {
				return n.Name, false, nil
			}
		}
	}
	return "", false, errors.New("failed to find a healthy node for karmada-etcd: name one with --etcd-node-selector-labels, or use --etcd-storage-mode=emptyDir or PVC")
}

// starting says of a node that is about to be one for pods.
func starting(n *corev1.Node) bool {
	for _, taint := range n.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady {
			return true
		}
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status != corev1.ConditionTrue
		}
	}
	return true
}

// nodeWanted says that etcd needs a node and there is none, but may be one soon: a
// cluster that was just made has nodes that are starting, or none yet.
func (f *facts) nodeWanted(o *Options) bool {
	if o.external() || o.Etcd.StorageMode != components.StorageHostPath || f.nodesErr != nil {
		return false
	}
	if _, _, err := f.etcdNode(o); err == nil {
		return false
	}
	return len(f.nodes) == 0 || slices.ContainsFunc(f.nodes, func(n corev1.Node) bool { return starting(&n) })
}

// awaitNode waits for a node that etcd can use, if there may be one soon. That there
// is none in the end is a finding of the checks.
func (f *facts) awaitNode(ctx context.Context, host kubernetes.Interface, o *Options) error {
	if !f.nodeWanted(o) {
		return nil
	}
	err := wait.Until(ctx, wait.Options{Interval: nodeInterval, Timeout: nodeTimeout}, func(ctx context.Context) error {
		list, err := host.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		switch {
		case connectionOnly(err) != nil:
			return wait.Terminal(err)
		case err != nil:
			return nil //nolint:nilerr // a finding of the checks
		}
		if f.nodes = list.Items; f.nodeWanted(o) {
			return errors.New("no node is ready")
		}
		return nil
	})
	if errors.Is(err, wait.ErrTimeout) {
		return nil
	}
	return err
}

// matchNodes checks that there is a node with all the labels.
func (f *facts) matchNodes(wanted map[string]string) error {
	for key, value := range wanted {
		if !slices.ContainsFunc(f.nodes, func(n corev1.Node) bool { v, ok := n.Labels[key]; return ok && v == value }) {
			return fmt.Errorf("no node found by label %s=%s: label a node, or change --etcd-node-selector-labels", key, value)
		}
	}
	if !slices.ContainsFunc(f.nodes, func(n corev1.Node) bool {
		for key, value := range wanted {
			if v, ok := n.Labels[key]; !ok || v != value {
				return false
			}
		}
		return true
	}) {
		return fmt.Errorf("no node has all the labels %s: label a node, or change --etcd-node-selector-labels", formatLabels(wanted))
	}
	return nil
}

// healthy says whether a node is ready and under no pressure.
func healthy(n *corev1.Node) bool {
	ready := false
	for _, c := range n.Status.Conditions {
		switch c.Type {
		case corev1.NodeReady:
			ready = c.Status == corev1.ConditionTrue
		case corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable:
			if c.Status == corev1.ConditionTrue {
				return false
			}
		}
	}
	return ready && !n.Spec.Unschedulable
}

func tolerated(taints []corev1.Taint, more []corev1.Toleration) bool {
	tolerations := append(components.DefaultTolerations(), more...)
	for _, taint := range taints {
		if taint.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		if !slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool { return tolerates(t, taint) }) {
			return false
		}
	}
	return true
}

func tolerates(t corev1.Toleration, taint corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	return t.Operator == corev1.TolerationOpExists || t.Value == taint.Value
}
