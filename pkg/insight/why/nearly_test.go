package why

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
)

func TestOneLetter(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{{"web", "wbe", true}, {"web", "wep", true}, {"web", "we", true}, {"web", "webs", true}, {"web", "web", false}, {"web", "api", false}, {"", "a", true}, {"aa", "bb", false}} {
		if got := oneLetter(tc.a, tc.b); got != tc.want || oneLetter(tc.b, tc.a) != tc.want {
			t.Errorf("%s, %s: got %v", tc.a, tc.b, got)
		}
	}
}

// TestTemplate_Healthy explains objects that were taken for healthy, or for lacking a policy only.
func TestTemplate_Healthy(t *testing.T) {
	unclaimed := func(u *unstructured.Unstructured) { u.SetLabels(nil); u.SetAnnotations(nil) }
	selector := func(o []client.Object) *policyv1alpha1.ResourceSelector {
		return &o[0].(*policyv1alpha1.PropagationPolicy).Spec.ResourceSelectors[0]
	}
	for name, tc := range map[string]struct {
		change       func(f *snapshot.Facts, o []client.Object)
		cause        Cause
		answer, next string
	}{
		"a duplicated Deployment": {func(f *snapshot.Facts, _ []client.Object) {
			f.Binding.GetSpec().Replicas = 1
			f.Binding.GetSpec().Clusters[0].Replicas = 1
		}, Working, "Deployment ns/web: 1 of 1 replicas ready in 1 of 1 clusters", ""},
		"a finished Job": {func(f *snapshot.Facts, o []client.Object) {
			selector(o).APIVersion, selector(o).Kind = "batch/v1", "Job"
			f.Template.Object["apiVersion"], f.Template.Object["kind"] = "batch/v1", "Job"
			f.Template.Object["spec"], f.Template.Object["status"] = map[string]any{"completions": int64(4)}, map[string]any{"succeeded": int64(4)}
		}, Working, "Job ns/web: 4 of 4 completions in 1 of 1 clusters", ""},
		"a policy that does not select it any more": {func(_ *snapshot.Facts, o []client.Object) { selector(o).Name = "other" }, NotSelectedAnyMore,
			"Deployment ns/web: PropagationPolicy ns/web has it and does not select it any more: its changes do not reach the clusters",
			"compare the names and labels: karmadactl get propagationpolicy web -n ns -o yaml"},
		"a policy that was deleted": {func(f *snapshot.Facts, _ []client.Object) { unclaimed(f.Template); f.Policies = nil }, PolicyDeleted,
			"Deployment ns/web: no policy has it any more: it stays in 1 cluster as it was delivered, and changes do not reach them",
			"create a policy that selects it; to remove it from the clusters, too, delete it: karmadactl delete deployment web -n ns"},
		"a mistyped name": {func(f *snapshot.Facts, o []client.Object) {
			unclaimed(f.Template)
			f.Binding, selector(o).Name = nil, "wbe"
		}, NoPolicy, "Deployment ns/web: not propagated: no policy selects it; PropagationPolicy ns/web selects the name wbe",
			"compare the names and labels: karmadactl get propagationpolicy web -n ns -o yaml"},
		"a mistyped label": {func(f *snapshot.Facts, o []client.Object) {
			unclaimed(f.Template)
			f.Binding, selector(o).Name, selector(o).LabelSelector = nil, "", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "wbe"}}
		}, NoPolicy, "Deployment ns/web: not propagated: no policy selects it; PropagationPolicy ns/web selects labels that it does not have: app=wbe",
			"compare the names and labels: karmadactl get propagationpolicy web -n ns -o yaml"},
		"a missing Secret": {func(f *snapshot.Facts, _ []client.Object) {
			f.Missing = []configv1alpha1.DependentObjectReference{{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "s"}}
		}, MissingDependency, "Deployment ns/web: 1 of 2 replicas ready in 1 of 1 clusters, but it refers to what does not exist: Secret ns/s",
			"create it in the control plane, or leave it out of the template: karmadactl get secret -n ns"},
		"a kind without rules that is not Ready": {func(f *snapshot.Facts, o []client.Object) {
			selector(o).APIVersion = "example.io/v1"
			f.Ruled, f.Template.Object["apiVersion"] = false, "example.io/v1"
			f.Binding.GetSpec().Clusters[0].Replicas, f.Template.Object["status"] = 0, nil
			f.Binding.GetStatus().AggregatedStatus[0].Status = &runtime.RawExtension{Raw: []byte(`{"conditions":[{"type":"Ready","status":"False","reason":"R","message":"m"}]}`)}
		}, Unhealthy, "Deployment ns/web: applied and Ready in 0 of 1 clusters; there are no rules for the health of its kind; cluster m1: Ready is False: R: m",
			"karmadactl describe deployment.example.io web -C m1 -n ns"},
		"a kind without rules and without a condition Ready": {func(f *snapshot.Facts, _ []client.Object) {
			f.Ruled, f.Binding.GetSpec().Clusters[0].Replicas, f.Template.Object["status"] = false, 0, nil
			f.Binding.GetStatus().AggregatedStatus[0].Status = &runtime.RawExtension{Raw: []byte(`{"phase":"x"}`)}
		}, Working, "Deployment ns/web: applied and Ready in 0 of 1 clusters; there are no rules for the health of its kind", ""},
		"an object that names its namespace": {func(_ *snapshot.Facts, o []client.Object) {
			w := o[2].(*workv1alpha1.Work)
			w.Status.Conditions[0].Status, w.Status.Conditions[0].Message = metav1.ConditionFalse, `namespaces "ns" not found`
		}, ApplyFailed, `Deployment ns/web: not applied in cluster m1: namespaces "ns" not found`, "see why the cluster does not have the namespace: karmadactl why namespace ns"},
		"replicas that an autoscaler sets": {func(_ *snapshot.Facts, o []client.Object) {
			w := o[2].(*workv1alpha1.Work)
			w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: workv1alpha1.WorkContested, Status: metav1.ConditionTrue, Message: "spec.replicas of Deployment ns/web by kube-controller-manager"})
		}, Contested, "Deployment ns/web: changed in cluster m1: spec.replicas of Deployment ns/web by kube-controller-manager",
			"if an autoscaler of the cluster sets the replicas, propagate it with a policy and start karmada-controller-manager with --controllers=*,hpaScaleTargetMarker: karmadactl get hpa -n ns"},
		"a namespace": {func(f *snapshot.Facts, _ []client.Object) {
			f.Template = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "team"}}}
			f.Binding = nil
		}, Working, "Namespace team: every cluster gets it: applied in 1 cluster", ""},
		"a namespace that opts out": {func(f *snapshot.Facts, _ []client.Object) {
			f.Template = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "team"}}}
			f.Template.SetLabels(map[string]string{policyv1alpha1.NamespaceSkipAutoPropagationLabel: "true"})
			f.Binding = nil
		}, NamespaceSkipped, "Namespace team: not created in clusters, by its label namespace.karmada.io/skip-auto-propagation", "karmadactl label namespace team namespace.karmada.io/skip-auto-propagation-"},
	} {
		t.Run(name, func(t *testing.T) {
			template, o := world()
			b := o[1].(*workv1alpha2.ResourceBinding)
			b.Status.AggregatedStatus[0].Health = workv1alpha2.ResourceHealthy
			f := &snapshot.Facts{
				Template: template, Binding: b, Ruled: true, Policies: []policyv1alpha1.Policy{o[0].(*policyv1alpha1.PropagationPolicy)},
				Works: map[string]*workv1alpha1.Work{"m1": o[2].(*workv1alpha1.Work)}, Clusters: []*clusterv1alpha1.Cluster{o[3].(*clusterv1alpha1.Cluster)},
			}
			tc.change(f, o)
			a := Template(f, "karmadactl")
			if a.Cause != tc.cause || a.Answer != tc.answer || a.Next != tc.next {
				t.Errorf("%s: %s\nnext %s", a.Cause, a.Answer, a.Next)
			}
		})
	}
}

// TestTemplate_SpreadConstraints names the constraint that cannot be met.
func TestTemplate_SpreadConstraints(t *testing.T) {
	for want, c := range map[string]policyv1alpha1.SpreadConstraint{
		"spreadConstraints[0] needs 3 clusters, and 1 fit":                          {SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 3, MaxGroups: 5},
		"spreadConstraints[0] has no maxGroups, which is the most that is selected": {SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1},
		"spreadConstraints[0] needs 2 regions, and 0 have clusters that fit":        {SpreadByField: policyv1alpha1.SpreadByFieldRegion, MinGroups: 2, MaxGroups: 2},
	} {
		template, o := world()
		b := o[1].(*workv1alpha2.ResourceBinding)
		b.Spec.Clusters, b.Status.AggregatedStatus = nil, nil
		b.Spec.Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{c}
		b.Status.Conditions[0].Status, b.Status.Conditions[0].Reason = metav1.ConditionFalse, "SchedulerError"
		a := Template(&snapshot.Facts{
			Template: template, Binding: b, Ruled: true, Policies: []policyv1alpha1.Policy{o[0].(*policyv1alpha1.PropagationPolicy)}, Clusters: []*clusterv1alpha1.Cluster{o[3].(*clusterv1alpha1.Cluster)},
		}, "karmadactl")
		if a.Answer != "Deployment ns/web: not scheduled: "+want {
			t.Errorf("got %s, want %s", a.Answer, want)
		}
	}
}
