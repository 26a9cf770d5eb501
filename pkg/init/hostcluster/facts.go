// Package hostcluster reads what an installation needs to know of its host cluster.
package hostcluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/wait"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

// reachTimeout is how long the host cluster may take to answer.
const reachTimeout = 10 * time.Second

const (
	// nodeTimeout is how long the first node may take to be ready.
	nodeTimeout = 30 * time.Second
	// nodeInterval is the time between two lists of the nodes.
	nodeInterval = 500 * time.Millisecond
)

// Facts are what an installation needs to know of the host cluster. What could not be read is empty.
type Facts struct {
	Version *apiversion.Info
	// ID is the UID of the namespace kube-system.
	ID string
	// IPv6 reports whether pods have IPv6 addresses first.
	IPv6  bool
	Nodes []corev1.Node
	// NodesErr is why the nodes could not be listed.
	NodesErr error
	Services []corev1.Service
	// Namespace of the control plane, or nil.
	Namespace *corev1.Namespace
	// Certificates of the installation in the namespace.
	Certificates map[string][]byte
	// Etcd of the installation in the namespace, or nil.
	Etcd *appsv1.StatefulSet
	// Deployments in the namespace.
	Deployments []appsv1.Deployment

	// names are those of the objects of the installation.
	names components.Config
}

// Obsolete returns the names of the Deployments of the layout that a configuration does not have.
func (f *Facts) Obsolete(c *config.Configuration) []string {
	var out []string
	for _, workload := range append(components.CompactParts(), components.AllInOne) {
		if !c.Installs(workload) && f.Runs(workload) {
			out = append(out, workload)
		}
	}
	return out
}

// Runs reports whether there is a Deployment with a name in the namespace.
func (f *Facts) Runs(workload string) bool {
	return slices.ContainsFunc(f.Deployments, func(d appsv1.Deployment) bool { return d.Name == f.names.Name(workload) })
}

// Scaled returns the replicas of a Deployment that something has set through its scale, such as an autoscaler.
func (f *Facts) Scaled(workload string) (replicas int32, scaled bool) {
	i := slices.IndexFunc(f.Deployments, func(d appsv1.Deployment) bool { return d.Name == f.names.Name(workload) })
	if i < 0 || f.Deployments[i].Spec.Replicas == nil {
		return 0, false
	}
	return *f.Deployments[i].Spec.Replicas, slices.ContainsFunc(f.Deployments[i].ManagedFields, func(m metav1.ManagedFieldsEntry) bool {
		return m.Subresource == "scale" && m.FieldsV1 != nil && strings.Contains(m.FieldsV1.GetRawString(), `"f:replicas"`)
	})
}

// Selectors returns the labels by which workloads of the operator select their pods, if they were made by another operator than that of
// this project; nil if there are none.
func (f *Facts) Selectors(c *config.Configuration) map[string]map[string]string {
	var out map[string]map[string]string
	for _, part := range c.AllParts() {
		name := f.names.Name(part.Name)
		meta, selector := metav1.ObjectMeta{}, (*metav1.LabelSelector)(nil)
		if i := slices.IndexFunc(f.Deployments, func(d appsv1.Deployment) bool { return d.Name == name }); i >= 0 {
			meta, selector = f.Deployments[i].ObjectMeta, f.Deployments[i].Spec.Selector
		} else if part.Name == components.Etcd && f.Etcd != nil {
			meta, selector = f.Etcd.ObjectMeta, f.Etcd.Spec.Selector
		}
		operated := meta.Labels[components.ManagedByLabel] == components.ManagedByOperator && c.Labels[components.ManagedByLabel] == components.ManagedByOperator
		if !operated || selector == nil || selector.MatchLabels["app"] == name {
			continue
		}
		if out == nil {
			out = map[string]map[string]string{}
		}
		out[part.Name] = selector.MatchLabels
	}
	return out
}

// FormerEtcd reports whether etcd is one of Karmada's operator, whose members do not speak TLS to each other. It stays as it is: another
// command would make it lose its data, or its members each other.
func (f *Facts) FormerEtcd() bool {
	return f.Etcd != nil && f.Etcd.Spec.Replicas != nil && slices.ContainsFunc(f.Etcd.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(slices.Concat(c.Command, c.Args), func(arg string) bool {
			return strings.Contains(arg, "initial-cluster=") && strings.Contains(arg, "=http://")
		})
	})
}

// Selects reports whether a Service of the same name is there, and leads to other pods.
func (f *Facts) Selects(wanted *corev1.Service) bool {
	return slices.ContainsFunc(f.Services, func(s corev1.Service) bool {
		return s.Namespace == wanted.Namespace && s.Name == wanted.Name && !maps.Equal(s.Spec.Selector, wanted.Spec.Selector)
	})
}

// Host is a host cluster, and what an installation needs to know of it.
type Host struct {
	API    kubernetes.Interface
	Client client.Client
	Facts  *Facts
}

// Connect connects to a host cluster and reads the facts for a control plane in a namespace, whose objects have names; nil for those of
// init. A control plane is no host cluster.
func Connect(ctx context.Context, cfg *rest.Config, namespace string, names components.Naming) (*Host, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = -1, 0
	h := &Host{}
	var err error
	if h.API, err = kubernetes.NewForConfig(cfg); err != nil {
		return nil, fmt.Errorf("connecting to the host cluster: %w", err)
	}
	if err := RefuseControlPlane(cfg.Host, h.API.Discovery()); err != nil {
		return nil, err
	}
	if h.Client, err = client.New(cfg, client.Options{Scheme: kube.NewScheme()}); err != nil {
		return nil, fmt.Errorf("connecting to the host cluster: %w", err)
	}
	h.Facts, err = Gather(ctx, h.API, namespace, names)
	return h, err
}

// Gather reads the facts for a control plane in a namespace, as Connect does. Only a host that does not answer is an error.
func Gather(ctx context.Context, host kubernetes.Interface, namespace string, names components.Naming) (*Facts, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, reachTimeout, fmt.Errorf("no answer after %s", reachTimeout))
	defer cancel()
	f := &Facts{names: components.Config{Names: names}}
	var err error
	if f.Version, err = serverVersion(ctx, host); err != nil {
		return nil, fmt.Errorf("the host cluster cannot be reached: %w; choose another with --kubeconfig and --context", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		ns, err := host.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err == nil {
			f.ID = string(ns.UID)
		}
		return ConnectionError(err)
	})
	g.Go(func() error { return ConnectionError(f.readNamespace(ctx, host, namespace)) })
	g.Go(func() error {
		list, err := host.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if f.NodesErr = err; err == nil {
			f.Nodes = list.Items
		}
		return ConnectionError(err)
	})
	g.Go(func() error {
		list, err := host.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err == nil {
			f.Services = list.Items
		}
		return ConnectionError(err)
	})
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("reading the host cluster: %w", errors.Join(err, context.Cause(ctx)))
	}
	f.IPv6 = onlyIPv6(f)
	return f, nil
}

// serverVersion returns the version of a server, until ctx ends.
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

// ConnectionError returns err unless it is an answer of the server: what is not allowed or does not exist is reported
// where it is needed.
func ConnectionError(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return nil
	}
	return err
}

func (f *Facts) readNamespace(ctx context.Context, host kubernetes.Interface, name string) error {
	ns, err := host.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	f.Namespace = ns
	secret, err := host.CoreV1().Secrets(name).Get(ctx, f.names.Name(components.CertSecret), metav1.GetOptions{})
	if err == nil {
		f.Certificates = secret.Data
	}
	if err := ConnectionError(err); err != nil {
		return err
	}
	deployments, err := host.AppsV1().Deployments(name).List(ctx, metav1.ListOptions{})
	if err == nil {
		f.Deployments = deployments.Items
	}
	if err := ConnectionError(err); err != nil {
		return err
	}
	etcd, err := host.AppsV1().StatefulSets(name).Get(ctx, f.names.Name(components.Etcd), metav1.GetOptions{})
	if err == nil {
		f.Etcd = etcd
	}
	return err
}

// onlyIPv6 reports whether Services, and so pods, have IPv6 addresses first.
func onlyIPv6(f *Facts) bool {
	for _, s := range f.Services {
		if s.Namespace == metav1.NamespaceDefault && s.Name == "kubernetes" {
			ip := net.ParseIP(s.Spec.ClusterIP)
			return ip != nil && ip.To4() == nil
		}
	}
	return false
}

// Addresses are those of the API server of a control plane.
type Addresses struct {
	// IPs are its IP addresses.
	IPs []string
	// Server is its URL for the administrator.
	Server string
	IPv6   bool
}

// Addresses returns the addresses of the API server: the one that was given, or those
// of the nodes that hold a control plane, or of the first three.
func (f *Facts) Addresses(server config.APIServer) (Addresses, error) {
	out := Addresses{IPv6: f.IPv6}
	if server.Server != "" {
		out.Server = server.Server
		if server.ServiceType == corev1.ServiceTypeNodePort {
			out.IPs = nodeAddresses(servingNodes(f.Nodes))
		}
		return out, nil
	}
	if a := server.AdvertiseAddress; a != "" {
		// The nodes' addresses lead there as well.
		out.IPs = append([]string{a}, nodeAddresses(servingNodes(f.Nodes))...)
		out.Server = serverURL(a, server.NodePort)
		return out, nil
	}
	if f.NodesErr != nil {
		return out, fmt.Errorf("the nodes of the host cluster cannot be listed (%w): give the address of the API server with --karmada-apiserver-advertise-address", f.NodesErr)
	}
	if out.IPs = nodeAddresses(servingNodes(f.Nodes)); len(out.IPs) == 0 {
		return out, errors.New("karmada apiserver ip is empty: no node of the host cluster has an IP address; give one with --karmada-apiserver-advertise-address")
	}
	first := out.IPs[0]
	for _, a := range out.IPs { // the family of the pods first
		if (strings.Contains(a, ":")) == f.IPv6 {
			first = a
			break
		}
	}
	out.Server = serverURL(first, server.NodePort)
	return out, nil
}

// serverURL is the URL of an API server at an address.
func serverURL(address string, port int32) string {
	return "https://" + net.JoinHostPort(address, fmt.Sprint(port))
}

// Images returns the names of the images that the nodes report.
func (f *Facts) Images() []string {
	var out []string
	for i := range f.Nodes {
		for _, image := range f.Nodes[i].Status.Images {
			out = append(out, image.Names...)
		}
	}
	return out
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

// EtcdNode returns the node whose disk etcd uses: the one that is labelled
// already, or the first healthy one, those without taints first. It is empty when
// the user chose by labels.
func (f *Facts) EtcdNode(e *config.Etcd) (name string, labelled bool, err error) {
	if f.NodesErr != nil {
		return "", false, fmt.Errorf("the nodes of the host cluster cannot be listed: %w", f.NodesErr)
	}
	if len(e.NodeLabels) > 0 {
		return "", true, f.matchNodes(e.NodeLabels)
	}
	for _, n := range f.Nodes {
		if _, ok := n.Labels[components.EtcdNodeLabel]; ok {
			return n.Name, true, nil
		}
	}
	for _, tainted := range []bool{false, true} {
		for _, n := range f.Nodes {
			if (len(n.Spec.Taints) > 0) == tainted && healthy(&n) && tolerated(n.Spec.Taints, e.Tolerations) {
				return n.Name, false, nil
			}
		}
	}
	return "", false, errors.New("failed to find a healthy node for karmada-etcd: name one with --etcd-node-selector-labels, or use --etcd-storage-mode=emptyDir or PVC")
}

// starting reports whether a node is not ready yet.
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

// NodeExpected reports whether etcd needs a node and there is none, but may be one soon: a
// cluster that was just made has nodes that are starting, or none yet.
func (f *Facts) NodeExpected(e *config.Etcd) bool {
	if !e.OnNode() || f.NodesErr != nil {
		return false
	}
	if _, _, err := f.EtcdNode(e); err == nil {
		return false
	}
	return len(f.Nodes) == 0 || slices.ContainsFunc(f.Nodes, func(n corev1.Node) bool { return starting(&n) })
}

// AwaitNode waits for a node that etcd can use, if there may be one soon. That there
// is none in the end is a finding of the checks.
func (f *Facts) AwaitNode(ctx context.Context, host kubernetes.Interface, e *config.Etcd) error {
	if !f.NodeExpected(e) {
		return nil
	}
	err := wait.Until(ctx, wait.Options{Interval: nodeInterval, Timeout: nodeTimeout}, func(ctx context.Context) error {
		list, err := host.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		switch {
		case ConnectionError(err) != nil:
			return wait.Terminal(err)
		case err != nil:
			return nil //nolint:nilerr // a finding of the checks
		}
		if f.Nodes = list.Items; f.NodeExpected(e) {
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
func (f *Facts) matchNodes(wanted config.Labels) error {
	for key, value := range wanted {
		if !slices.ContainsFunc(f.Nodes, func(n corev1.Node) bool { v, ok := n.Labels[key]; return ok && v == value }) {
			return fmt.Errorf("no node found by label %s=%s: label a node, or change --etcd-node-selector-labels", key, value)
		}
	}
	if !slices.ContainsFunc(f.Nodes, func(n corev1.Node) bool {
		for key, value := range wanted {
			if v, ok := n.Labels[key]; !ok || v != value {
				return false
			}
		}
		return true
	}) {
		return fmt.Errorf("no node has all the labels %s: label a node, or change --etcd-node-selector-labels", wanted.String())
	}
	return nil
}

// healthy reports whether a node is ready and under no pressure.
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

// groupsLister is the part of a discovery client that lists API groups.
type groupsLister interface {
	ServerGroups() (*metav1.APIGroupList, error)
}

// RefuseControlPlane returns an error when a server is itself a control plane of a
// federation: it runs no pods, and what it holds would be propagated.
func RefuseControlPlane(server string, api groupsLister) error {
	groups, err := api.ServerGroups()
	if err != nil {
		return fmt.Errorf("reading the APIs of the host cluster: %w", err)
	}
	if isControlPlane(groups) {
		return fmt.Errorf("%s: %w; name the host cluster with --kubeconfig and --context (is $KUBECONFIG still that of a control plane?)", server, member.ErrIsControlPlane)
	}
	return nil
}

// NotInstalled returns the error about a namespace of the host cluster without a control plane.
func NotInstalled(namespace string) error {
	return fmt.Errorf("there is no control plane in namespace %s of the host cluster; name its namespace with --namespace, or install one with \"init\"", namespace)
}

// RequireInstalled returns NotInstalled if a namespace of the host cluster has neither the API server of a control plane nor its
// certificates.
func RequireInstalled(ctx context.Context, host client.Reader, namespace string) error {
	for name, part := range map[string]client.Object{components.APIServer: &appsv1.Deployment{}, components.CertSecret: &corev1.Secret{}} {
		if err := host.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, part); !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
			return nil // other requests report why the host cluster cannot be read
		}
	}
	return NotInstalled(namespace)
}

// isControlPlane reports whether a server with these API groups is a control plane.
// The Cluster API may be away with its server; that of policies is the API
// server's own.
func isControlPlane(groups *metav1.APIGroupList) bool {
	return slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool {
		return g.Name == clusterv1alpha1.GroupName || g.Name == policyv1alpha1.GroupName
	})
}
