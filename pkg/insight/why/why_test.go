package why

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karmada-toolkit/karmada/internal/kube"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/override"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
)

func cluster(name string, change func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "ClusterReady"}}
	c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}}}
	if change != nil {
		change(c)
	}
	return c
}

// world is a Deployment that a policy has, scheduled to m1, and applied there.
func world() (template *unstructured.Unstructured, objects []client.Object) {
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p"}}}
	p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}
	template = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "ns", "name": "web", "generation": int64(2)},
		"status": map[string]any{"observedGeneration": int64(2), "readyReplicas": int64(1)},
	}}
	policy.For(p).Take(template).Apply(template)
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-deployment"}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "web"}
	b.Spec.Placement, b.Spec.Replicas = &policyv1alpha1.Placement{}, 2
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}}
	b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionTrue, Reason: "Success", LastTransitionTime: metav1.Unix(900, 0)}}
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Applied: true, Health: workv1alpha2.ResourceUnhealthy}}
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: names.Work("Deployment", "web", "ns"), Generation: 1}}
	w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, ObservedGeneration: 1, LastTransitionTime: metav1.Unix(940, 0)}}
	return template, []client.Object{p, b, w, cluster("m1", nil)}
}

// account explains a world after a change, for a user who may not list some types.
func account(t *testing.T, change func(template *unstructured.Unstructured, objects []client.Object), forbidden ...string) *Account {
	t.Helper()
	template, objects := world()
	change(template, objects)
	c := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			gvk, _ := c.GroupVersionKindFor(list)
			for _, kind := range forbidden {
				if gvk.Kind == kind+"List" {
					return apierrors.NewForbidden(schema.GroupResource{Resource: strings.ToLower(kind)}, "", errors.New("no"))
				}
			}
			return c.List(ctx, list, o...)
		},
	}).Build()
	r := &snapshot.Reader{
		ControlPlane: c, Now: func() time.Time { return time.Unix(1000, 0) }, Deadline: 50 * time.Millisecond,
		Member: func(string) (dynamic.Interface, error) { return nil, errors.New("no connection") },
	}
	facts, err := r.Template(t.Context(), template, &meta.RESTMapping{Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}})
	if err != nil {
		t.Fatal(err)
	}
	return Template(facts, "karmadactl")
}

// TestTemplate has what an end-to-end test cannot make quickly: clusters that are not Ready, and users without rights.
func TestTemplate(t *testing.T) {
	notReady := func(change func(*clusterv1alpha1.Cluster)) func(*unstructured.Unstructured, []client.Object) {
		return func(_ *unstructured.Unstructured, objects []client.Object) {
			objects[3].(*clusterv1alpha1.Cluster).Status.Conditions[0] = metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "ClusterNotReachable", Message: "cluster is not reachable"}
			objects[2].SetGeneration(2)
			if change != nil {
				change(objects[3].(*clusterv1alpha1.Cluster))
			}
		}
	}
	nothing := func(*unstructured.Unstructured, []client.Object) {}
	for name, tc := range map[string]struct {
		change    func(*unstructured.Unstructured, []client.Object)
		forbidden []string
		cause     Cause
		answer    string
		gap       string
	}{
		"unhealthy, and the member cannot be read": {nothing, nil, Unhealthy, "1 of 2 replicas ready in 0 of 1 clusters; cluster m1: Unhealthy, its pods cannot be read: no connection", ""},
		"a cluster that is not Ready":              {notReady(nil), nil, ClusterNotReady, "cluster m1 is not Ready: ClusterNotReachable: cluster is not reachable", ""},
		"an agent that does not report": {notReady(func(c *clusterv1alpha1.Cluster) {
			c.Spec.SyncMode, c.Status.Conditions[0].Status = clusterv1alpha1.Pull, metav1.ConditionUnknown
		}), nil, ClusterNotReady, "cluster m1 is not Ready: its agent does not report: ClusterNotReachable: cluster is not reachable", ""},
		"a work that is not applied": {func(_ *unstructured.Unstructured, o []client.Object) { o[2].SetGeneration(2) }, nil, NotYetDelivered, "not applied in cluster m1 yet", ""},
		"a status of an earlier generation": {func(u *unstructured.Unstructured, o []client.Object) {
			u.SetGeneration(3)
			o[1].(*workv1alpha2.ResourceBinding).Status.AggregatedStatus[0].Health = workv1alpha2.ResourceHealthy
		}, nil, StatusOutdated, "1 of 2 replicas ready in 1 of 1 clusters; its status is of an earlier generation", ""},
		"no rights to read policies": {func(u *unstructured.Unstructured, _ []client.Object) { u.SetLabels(nil); u.SetAnnotations(nil) }, []string{"ClusterPropagationPolicy", "PropagationPolicy"},
			Unreadable, "no policy has it; whether one selects it cannot be read", "ClusterPropagationPolicies: clusterpropagationpolicy is forbidden: no"},
		"no rights to read clusters": {nothing, []string{"Cluster"}, Unhealthy, "1 of 2 replicas ready in 0 of 1 clusters; cluster m1: Unhealthy", "Clusters: cluster is forbidden: no"},
		"a reserved namespace": {func(u *unstructured.Unstructured, _ []client.Object) { u.SetNamespace("karmada-system") }, nil, NamespaceSkipped,
			"it stays in the control plane, as all in namespace karmada-system", ""},
		"a template that must not be delivered": {func(_ *unstructured.Unstructured, o []client.Object) {
			b := o[1].(*workv1alpha2.ResourceBinding)
			b.Status.Conditions = append(b.Status.Conditions, metav1.Condition{Type: workv1alpha2.Deliverable, Status: metav1.ConditionFalse, Reason: "WorkTooLarge", Message: "it is too large"})
		}, nil, NotDeliverable, "WorkTooLarge: it is too large", ""},
		"other node ports": {func(_ *unstructured.Unstructured, o []client.Object) {
			w := o[2].(*workv1alpha1.Work)
			w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: workv1alpha1.WorkContested, Status: metav1.ConditionTrue, Reason: workv1alpha1.WorkNodePortTakenReason, Message: "30001 is 30002 there"})
		}, nil, NodePortTaken, "applied with other node ports in cluster m1: 30001 is 30002 there", ""},
		"suspended scheduling": {func(_ *unstructured.Unstructured, o []client.Object) {
			o[1].(*workv1alpha2.ResourceBinding).Spec.Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
		}, nil, SchedulingSuspended, "not scheduled: scheduling is suspended in its binding", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := account(t, tc.change, tc.forbidden...)
			if _, answer, _ := strings.Cut(a.Answer, ": "); a.Cause != tc.cause || answer != tc.answer {
				t.Errorf("%s: %s", a.Cause, a.Answer)
			}
			if gaps := strings.Join(a.Gaps, "\n"); !strings.Contains(gaps, tc.gap) || tc.gap == "" && gaps != "" {
				t.Errorf("gaps %q", gaps)
			}
		})
	}
}

func TestPodProblem(t *testing.T) {
	container := func(state corev1.ContainerState) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "c", Image: "nginx:1.99", State: state}}}}
	}
	for want, pod := range map[string]*corev1.Pod{
		"ImagePullBackOff (nginx:1.99)":               container(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}),
		"container c ended: OOMKilled, exit code 137": container(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}}),
		"Unschedulable: 0/3 nodes are available": {Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available",
		}}}},
		"Failed: Evicted the node was low on memory": {Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "the node was low on memory"}},
		"": container(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}),
	} {
		if got := PodProblem(pod); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestTemplate_ShowsNoSecrets explains an object in a cluster whose proxy has credentials, with overrides for Secrets.
func TestTemplate_ShowsNoSecrets(t *testing.T) {
	a := account(t, func(_ *unstructured.Unstructured, objects []client.Object) {
		c := objects[3].(*clusterv1alpha1.Cluster)
		c.Spec.ProxyURL, c.Spec.ProxyHeader = "http://user:hunter2@proxy", map[string]string{"Authorization": "hunter2"}
	})
	secret := apiextensionsv1.JSON{Raw: []byte(`"hunter2"`)}
	rule := &override.AppliedRule{Overriders: policyv1alpha1.Overriders{
		Plaintext:      []policyv1alpha1.PlaintextOverrider{{Path: "/data/a", Operator: policyv1alpha1.OverriderOpAdd, Value: secret}},
		FieldOverrider: []policyv1alpha1.FieldOverrider{{FieldPath: "/data/b", JSON: []policyv1alpha1.JSONPatchOperation{{SubPath: "/c", Operator: policyv1alpha1.OverriderOpAdd, Value: secret}}}},
	}}
	text, err := json.Marshal(a)
	if shown := string(text) + overriders(rule); err != nil || strings.Contains(shown, "hunter2") || !strings.Contains(shown, "/data/a") {
		t.Errorf("%v, %s", err, shown)
	}
}
