package hostcluster

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
)

func node(name string, labels map[string]string, change ...func(*corev1.Node)) corev1.Node {
	n := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: "10.0.0." + name[1:]}},
		},
	}
	for _, c := range change {
		c(&n)
	}
	return n
}

func address(kind corev1.NodeAddressType, value string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: kind, Address: value})
	}
}

func noAddress(n *corev1.Node) { n.Status.Addresses = n.Status.Addresses[:1] }

func taint(key string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: effect}) }
}

func condition(kind corev1.NodeConditionType, status corev1.ConditionStatus) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status})
	}
}

// etcd is the default one with a node selector.
func etcd(t *testing.T, selector string) *config.Etcd {
	t.Helper()
	o := config.New()
	if err := o.Etcd.NodeLabels.Set(selector); err != nil {
		t.Fatal(err)
	}
	return &o.Etcd
}

const cpLabel = "node-role.kubernetes.io/control-plane"

func TestAddresses(t *testing.T) {
	cp := map[string]string{cpLabel: ""}
	for name, tc := range map[string]struct {
		nodes     []corev1.Node
		advertise string
		ipv6      bool
		addresses []string
		server    string
		err       string
	}{
		"the first three nodes":                 {nodes: []corev1.Node{node("n1", nil), node("n2", nil), node("n3", nil), node("n4", nil)}, addresses: []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, server: "https://10.0.0.1:32443"},
		"nodes of a control plane":              {nodes: []corev1.Node{node("n1", nil), node("n2", cp)}, addresses: []string{"10.0.0.2"}, server: "https://10.0.0.2:32443"},
		"the internal address, both families":   {nodes: []corev1.Node{node("n1", nil, address(corev1.NodeExternalIP, "1.1.1.1"), address(corev1.NodeInternalIP, "fd00::1"))}, addresses: []string{"10.0.0.1", "fd00::1"}, server: "https://10.0.0.1:32443"},
		"IPv6 first where pods have it":         {nodes: []corev1.Node{node("n1", nil, address(corev1.NodeInternalIP, "fd00::1"))}, ipv6: true, addresses: []string{"10.0.0.1", "fd00::1"}, server: "https://[fd00::1]:32443"},
		"the external one if there is no other": {nodes: []corev1.Node{node("n1", nil, noAddress, address(corev1.NodeExternalIP, "1.1.1.1"))}, addresses: []string{"1.1.1.1"}, server: "https://1.1.1.1:32443"},
		"a given address comes first":           {nodes: []corev1.Node{node("n1", nil)}, advertise: "9.9.9.9", addresses: []string{"9.9.9.9", "10.0.0.1"}, server: "https://9.9.9.9:32443"},
		"names are no addresses":                {nodes: []corev1.Node{node("n1", nil, noAddress)}, err: "karmada apiserver ip is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := (&Facts{Nodes: tc.nodes, IPv6: tc.ipv6}).Addresses(config.APIServer{AdvertiseAddress: tc.advertise, Networking: config.Networking{NodePort: config.DefaultNodePort}})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if diff := cmp.Diff(tc.addresses, got.IPs); diff != "" || got.Server != tc.server || err != nil {
				t.Errorf("%s, %v\n%s", got.Server, err, diff)
			}
		})
	}
}

func TestEtcdNode(t *testing.T) {
	control := taint(cpLabel, corev1.TaintEffectNoSchedule)
	for name, tc := range map[string]struct {
		nodes    []corev1.Node
		selector string
		want     string
		labelled bool
		err      string
	}{
		"the first healthy one":                   {nodes: []corev1.Node{node("n1", nil, condition(corev1.NodeDiskPressure, corev1.ConditionTrue)), node("n2", nil)}, want: "n2"},
		"the one that is labelled":                {nodes: []corev1.Node{node("n1", nil), node("n2", map[string]string{components.EtcdNodeLabel: ""})}, want: "n2", labelled: true},
		"without taints before with":              {nodes: []corev1.Node{node("n1", nil, control), node("n2", nil)}, want: "n2"},
		"a control plane's if there is only that": {nodes: []corev1.Node{node("n1", nil, control)}, want: "n1"},
		"none with a strange taint":               {nodes: []corev1.Node{node("n1", nil, taint("x", corev1.TaintEffectNoSchedule))}, err: "failed to find a healthy node for karmada-etcd"},
		"none that is not ready":                  {nodes: []corev1.Node{node("n1", nil, func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse })}, err: "failed to find a healthy node"},
		"labels of the user":                      {nodes: []corev1.Node{node("n1", map[string]string{"a": "1", "b": "2"})}, selector: "a=1,b=2", labelled: true},
		"labels of no node":                       {nodes: []corev1.Node{node("n1", nil)}, selector: "a=1", err: "no node found by label a=1"},
		"labels that no node has together":        {nodes: []corev1.Node{node("n1", map[string]string{"a": "1"}), node("n2", map[string]string{"b": "2"})}, selector: "a=1,b=2", err: "no node has all the labels"},
	} {
		t.Run(name, func(t *testing.T) {
			got, labelled, err := (&Facts{Nodes: tc.nodes}).EtcdNode(etcd(t, tc.selector))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if got != tc.want || labelled != tc.labelled || err != nil {
				t.Errorf("got %q, %t, %v", got, labelled, err)
			}
		})
	}
}

func TestAwaitNode(t *testing.T) {
	notReady := node("n1", nil, taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule), func(n *corev1.Node) {
		n.Status.Conditions[0].Status = corev1.ConditionFalse
	})
	for name, tc := range map[string]struct {
		before, after []corev1.Node
		found         bool
		lists         int
	}{
		"ready at once":                  {before: []corev1.Node{node("n1", nil)}, found: true},
		"ready in a moment":              {before: []corev1.Node{notReady}, after: []corev1.Node{node("n1", nil)}, found: true, lists: 3},
		"registered in a moment":         {after: []corev1.Node{node("n1", nil)}, found: true, lists: 3},
		"never ready":                    {before: []corev1.Node{notReady}, after: []corev1.Node{notReady}, lists: int(nodeTimeout / nodeInterval)},
		"none will be without its taint": {before: []corev1.Node{node("n1", nil, taint("x", corev1.TaintEffectNoSchedule))}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lists := 0
				host := fake.NewClientset()
				host.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
					if lists++; lists < 3 {
						return true, &corev1.NodeList{Items: tc.before}, nil
					}
					return true, &corev1.NodeList{Items: tc.after}, nil
				})
				e := etcd(t, "")
				f := &Facts{Nodes: tc.before}
				if err := f.AwaitNode(t.Context(), host, e); err != nil {
					t.Fatal(err)
				}
				if _, _, err := f.EtcdNode(e); tc.found != (err == nil) {
					t.Errorf("afterwards: %v", err)
				}
				if lists < tc.lists || lists > tc.lists+1 {
					t.Errorf("it listed the nodes %d times, not %d", lists, tc.lists)
				}
			})
		})
	}
}

func TestGather_AnUnreachableHost(t *testing.T) {
	host := fake.NewClientset()
	host.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("connection lost")
	})
	if _, err := Gather(t.Context(), host, config.DefaultNamespace, nil); err == nil || !strings.Contains(err.Error(), "connection lost") {
		t.Errorf("got %v", err)
	}
}

func TestRefuseControlPlane(t *testing.T) {
	for group, refused := range map[string]bool{"cluster.karmada.io": true, "policy.karmada.io": true, "apps": false, "operator.karmada.io": false} {
		err := RefuseControlPlane("https://10.0.0.1:5443", groups{group})
		if refused != (err != nil) || refused && !strings.Contains(err.Error(), "this is a Karmada control plane, not a host cluster") {
			t.Errorf("%s: %v", group, err)
		}
	}
}

// groups are the API groups of a server.
type groups []string

func (g groups) ServerGroups() (*metav1.APIGroupList, error) {
	out := &metav1.APIGroupList{}
	for _, name := range g {
		out.Groups = append(out.Groups, metav1.APIGroup{Name: name})
	}
	return out, nil
}

// What Karmada's operator made keeps its labels and its etcd; what the operator of this project made has none to keep.
func TestFacts_Former(t *testing.T) {
	operated := map[string]string{components.ManagedByLabel: components.ManagedByOperator}
	of := func(labels, selector map[string]string) appsv1.Deployment {
		return appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: components.Scheduler, Labels: labels}, Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: selector}}}
	}
	named, other := map[string]string{"app": components.Scheduler}, map[string]string{"app.kubernetes.io/name": "scheduler"}
	for name, tc := range map[string]struct {
		deployment appsv1.Deployment
		labels     map[string]string
		want       map[string]map[string]string
	}{
		"of Karmada's operator": {of(operated, other), operated, map[string]map[string]string{components.Scheduler: other}},
		"of the operator":       {of(operated, named), operated, nil},
		"of others":             {of(nil, other), operated, nil},
		"init":                  {of(operated, other), nil, nil},
	} {
		c := config.New()
		c.Labels = tc.labels
		if diff := cmp.Diff(tc.want, (&Facts{Deployments: []appsv1.Deployment{tc.deployment}}).Selectors(&c)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for argument, want := range map[string]bool{"--initial-cluster=a=http://a:2380": true, "--initial-cluster=a=https://a:2380": false, "--listen-metrics-urls=http://a": false} {
		etcd := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: new(int32(1))}}
		etcd.Spec.Template.Spec.Containers = []corev1.Container{{Command: []string{"etcd", argument}}}
		if got := (&Facts{Etcd: etcd}).FormerEtcd(); got != want {
			t.Errorf("%s: %t", argument, got)
		}
	}
}
