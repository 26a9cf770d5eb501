package member

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

func agentSpec(cluster string) AgentSpec {
	return AgentSpec{
		Cluster: cluster, Namespace: "karmada-system", ClusterNamespace: "karmada-cluster", Endpoint: "https://member:6443",
		Provider: "p", Region: "r", Zones: []string{"a", "b"}, Image: "image:1", Replicas: 1, Kubeconfig: []byte("kubeconfig"),
	}
}

func TestAgentSpec_Command(t *testing.T) {
	want := []string{
		"/bin/karmada-agent", "--karmada-kubeconfig=/etc/kubeconfig/karmada-kubeconfig", "--cluster-name=m3",
		"--cluster-api-endpoint=https://member:6443", "--cluster-provider=p", "--cluster-region=r", "--cluster-zones=a,b",
		"--controllers=*", "--proxy-server-address=", "--leader-elect-resource-namespace=karmada-system",
		"--cluster-namespace=karmada-cluster", "--cluster-status-update-frequency=10s", "--metrics-bind-address=:8080",
		"--health-probe-bind-address=0.0.0.0:10357", "--v=2",
	}
	if diff := cmp.Diff(want, agentSpec("m3").Command()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	elsewhere := agentSpec("m3")
	elsewhere.Namespace, elsewhere.Rotate = "agents", true
	for _, arg := range []string{"--controllers=*,certRotation", "--karmada-kubeconfig-namespace=agents", "--leader-elect-resource-namespace=karmada-system"} {
		if !slices.Contains(elsewhere.Command(), arg) {
			t.Errorf("no %s in %v", arg, elsewhere.Command())
		}
	}
}

func TestAgentSpec_AnotherIdentityStartsThePodsAgain(t *testing.T) {
	one, two := agentSpec("m3"), agentSpec("m3")
	two.Kubeconfig = []byte("another")
	if cmp.Equal(one.deployment().Spec.Template, two.deployment().Spec.Template) {
		t.Error("the pods are the same")
	}
}

func TestPreflight(t *testing.T) {
	deployed := func(cluster string) client.Object { return agentSpec(cluster).deployment() }
	meta := metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-agent-sa"}
	own := meta
	own.Labels = systemLabels()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-kubeconfig"}}
	kubeconfig := func(server string) client.Object {
		s := secret.DeepCopy()
		s.Data = map[string][]byte{"karmada-kubeconfig": []byte("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: " + server + "}}]\ncontexts: [{name: c, context: {cluster: c}}]\n")}
		return s
	}
	for name, tc := range map[string]struct {
		objects []client.Object
		want    Preflight
	}{
		"an empty member":                    {nil, nil},
		"an agent that lost its Secret":      {[]client.Object{deployed("m3"), &corev1.ServiceAccount{ObjectMeta: own}}, nil},
		"an agent of the control plane":      {[]client.Object{deployed("m3"), &corev1.ServiceAccount{ObjectMeta: own}, kubeconfig("https://192.0.2.1:5443")}, nil},
		"the agent of another cluster of it": {[]client.Object{deployed("m4"), kubeconfig("https://192.0.2.1:5443")}, Preflight{"karmada-system/karmada-kubeconfig Secret already exists", "karmada-system/karmada-agent Deployment already exists"}},
		"its kubeconfig without an agent":    {[]client.Object{kubeconfig("https://192.0.2.1:5443")}, Preflight{"karmada-system/karmada-kubeconfig Secret already exists"}},
		"an agent of another control plane": {
			[]client.Object{deployed("m3"), &corev1.ServiceAccount{ObjectMeta: own}, kubeconfig("https://192.0.2.2:5443")},
			Preflight{"karmada-system/karmada-kubeconfig Secret already exists", "karmada-system/karmada-agent-sa ServiceAccount already exists", "karmada-system/karmada-agent Deployment already exists"},
		},
		"an agent": {
			[]client.Object{deployed("m3"), &corev1.ServiceAccount{ObjectMeta: own}, secret},
			Preflight{"karmada-system/karmada-kubeconfig Secret already exists", "karmada-system/karmada-agent-sa ServiceAccount already exists", "karmada-system/karmada-agent Deployment already exists"},
		},
		"the agent of another name": {[]client.Object{deployed("m4")}, Preflight{"karmada-system/karmada-agent Deployment already exists"}},
		"a foreign service account": {[]client.Object{&corev1.ServiceAccount{ObjectMeta: meta}}, Preflight{"karmada-system/karmada-agent-sa ServiceAccount already exists"}},
		"a Secret alone":            {[]client.Object{secret}, Preflight{"karmada-system/karmada-kubeconfig Secret already exists"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got Preflight
			_, err := preflight(t.Context(), memberServer(t, "id", tc.objects...), agentSpec("m3"), "192.0.2.1:5443")
			if err != nil && !errors.As(err, &got) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestPreflight_Text(t *testing.T) {
	want := "error execution phase preflight: [preflight] Some fatal errors occurred:\n\t[ERROR]: ns/a Secret already exists\n\n[preflight] Please check the above errors"
	if got := (Preflight{"ns/a Secret already exists"}).Error(); got != want {
		t.Errorf("got %q", got)
	}
}

// running makes a Deployment available the moment it is read.
type running struct{ *fakeServer }

func (r running) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if err := r.fakeServer.Get(ctx, key, obj, opts...); err != nil {
		return err
	}
	if d, ok := obj.(*appsv1.Deployment); ok {
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, UpdatedReplicas: 1, AvailableReplicas: 1}
	}
	return nil
}

func TestStartAgent(t *testing.T) {
	request := RegisterRequest{Agent: agentSpec("m3"), Discovery: Discovery{Timeout: time.Minute}}
	quiet := func(string) {}
	t.Run("it makes what the agent needs", func(t *testing.T) {
		m := memberServer(t, "id")
		if err := startAgent(t.Context(), Deps{Member: running{m}}, request, quiet); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"create Namespace karmada-system", "create Secret karmada-system/karmada-kubeconfig", "create ClusterRole karmada-agent",
			"create ServiceAccount karmada-system/karmada-agent-sa", "create ClusterRoleBinding karmada-agent", "create Deployment karmada-system/karmada-agent",
		}
		if diff := cmp.Diff(want, m.writes); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("an agent that lost its Secret gets another", func(t *testing.T) {
		old := agentSpec("m3")
		old.Kubeconfig = []byte("old")
		m := memberServer(t, "id", old.Objects()[1:]...)
		if err := startAgent(t.Context(), Deps{Member: running{m}}, request, quiet); err != nil {
			t.Fatal(err)
		}
		got := &appsv1.Deployment{}
		if err := m.Get(t.Context(), client.ObjectKey{Namespace: "karmada-system", Name: "karmada-agent"}, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(request.Agent.deployment().Spec.Template.Annotations, got.Spec.Template.Annotations); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("one that does not start leaves nothing, and its pods say why", func(t *testing.T) {
		m := memberServer(t, "id", &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-agent-1", Labels: map[string]string{"app": "karmada-agent"}},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}},
			}}},
		})
		short := request
		short.Discovery.Timeout = 50 * time.Millisecond
		err := startAgent(t.Context(), Deps{Member: m}, short, quiet)
		if err == nil || !strings.Contains(err.Error(), "pod karmada-agent-1: ImagePullBackOff: no such image") {
			t.Errorf("got %v", err)
		}
		for _, obj := range []client.Object{&appsv1.Deployment{}, &corev1.Secret{}, &corev1.ServiceAccount{}, &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}} {
			for _, key := range []client.ObjectKey{{Namespace: "karmada-system", Name: "karmada-agent"}, {Name: "karmada-agent"}, {Namespace: "karmada-system", Name: "karmada-kubeconfig"}, {Namespace: "karmada-system", Name: "karmada-agent-sa"}} {
				if err := m.Get(t.Context(), key, obj); err == nil {
					t.Errorf("%T %s is left", obj, key)
				}
			}
		}
	})
}

func TestKubeconfigOf(t *testing.T) {
	secret, file, kubecontext, err := kubeconfigOf(agentSpec("m3").deployment())
	if err != nil || secret != "karmada-kubeconfig" || file != "karmada-kubeconfig" || kubecontext != "" {
		t.Errorf("got %s, %s, %s, %v", secret, file, kubecontext, err)
	}
	other := agentSpec("m3").deployment()
	other.Spec.Template.Spec.Containers[0].Command = []string{"agent", "--karmada-context=c", "--karmada-kubeconfig=/elsewhere/file"}
	if _, _, _, err := kubeconfigOf(other); err == nil {
		t.Error("a path that nothing is mounted at is accepted")
	}
	other.Spec.Template.Spec.Containers[0].VolumeMounts[0].MountPath = "/elsewhere/"
	if secret, file, kubecontext, err = kubeconfigOf(other); err != nil || secret != "karmada-kubeconfig" || file != "file" || kubecontext != "c" {
		t.Errorf("got %s, %s, %s, %v", secret, file, kubecontext, err)
	}
}

func pulled(name, id string) *clusterv1alpha1.Cluster {
	c := clusterObject(name, id)
	c.Spec.SyncMode = clusterv1alpha1.Pull
	return c
}

func TestUnregister(t *testing.T) {
	request := UnregisterRequest{Name: "m3", Namespace: "karmada-system", Agent: "karmada-agent", ClusterNamespace: "karmada-cluster", Wait: time.Minute}
	t.Run("the cluster goes first, then the agent and all it made", func(t *testing.T) {
		cp, m := newServer(t, pulled("m3", "id")), memberServer(t, "id", agentSpec("m3").Objects()...)
		if _, err := Unregister(t.Context(), Deps{ControlPlane: cp, Member: m, Program: "karmadactl"}, request); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"delete Cluster m3"}, cp.writes); diff != "" {
			t.Errorf("control plane (-want +got)\n%s", diff)
		}
		if m.writes[0] != "delete Deployment karmada-system/karmada-agent" || !slices.Contains(m.writes, "delete Secret karmada-system/karmada-kubeconfig") {
			t.Errorf("member: %v", m.writes)
		}
	})
	for name, tc := range map[string]struct {
		cluster *clusterv1alpha1.Cluster
		id      string
		want    string
	}{
		"a cluster that is pushed to": {clusterObject("m3", "id"), "id", "use command `unjoin`"},
		"another member's kubeconfig": {pulled("m3", "id"), "other", "is not that of cluster"},
	} {
		t.Run(name+" is refused, and nothing touched", func(t *testing.T) {
			cp, m := newServer(t, tc.cluster), memberServer(t, tc.id, agentSpec("m3").Objects()...)
			_, err := Unregister(t.Context(), Deps{ControlPlane: cp, Member: m, Program: "karmadactl"}, request)
			if err == nil || !strings.Contains(err.Error(), tc.want) || len(cp.writes)+len(m.writes) > 0 {
				t.Errorf("got %v; wrote %v %v", err, cp.writes, m.writes)
			}
		})
	}
	t.Run("one that does not go within the time says so and leaves the agent", func(t *testing.T) {
		c := pulled("m3", "id")
		c.Finalizers = []string{"karmada.io/cluster-controller"}
		cp, m := newServer(t, c), memberServer(t, "id", agentSpec("m3").Objects()...)
		short := request
		short.Wait = 50 * time.Millisecond
		_, err := Unregister(t.Context(), Deps{ControlPlane: cp, Member: m, Program: "karmadactl"}, short)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "unjoin m3 --abandon") || len(m.writes) > 0 {
			t.Errorf("got %v; wrote %v", err, m.writes)
		}
	})
}

func TestUnregister_LeavesNothingOfItsOwn(t *testing.T) {
	request := UnregisterRequest{Name: "m3", Namespace: "karmada-system", Agent: "karmada-agent", ClusterNamespace: "karmada-cluster", Wait: time.Minute}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "karmada-system", Name: name} }
	for name, tc := range map[string]struct {
		labels map[string]string
		other  client.Object
		kept   bool
	}{
		"a namespace that registering made": {systemLabels(), &corev1.ConfigMap{ObjectMeta: meta("kube-root-ca.crt")}, false},
		"one with an agent of another name": {systemLabels(), &appsv1.Deployment{ObjectMeta: meta("other")}, true},
		"one with a Secret of a user":       {systemLabels(), &corev1.Secret{ObjectMeta: meta("mine")}, true},
		"one that was there before":         {nil, &corev1.ConfigMap{ObjectMeta: meta("kube-root-ca.crt")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-system", Labels: tc.labels}}
			cp, m := newServer(t, pulled("m3", "id")), memberServer(t, "id", append(agentSpec("m3").Objects(), ns, tc.other)...)
			if _, err := Unregister(t.Context(), Deps{ControlPlane: cp, Member: m, Program: "karmadactl"}, request); err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(m.writes, func(w string) bool { return strings.HasSuffix(w, " karmada-system/karmada-agent-m3") }) {
				t.Errorf("the lease stays: %v", m.writes)
			}
			if kept := !slices.Contains(m.writes, "delete Namespace karmada-system"); kept != tc.kept {
				t.Errorf("kept %v: %v", kept, m.writes)
			}
		})
	}
}
