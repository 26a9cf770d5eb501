package policy

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/karmada-toolkit/karmada/internal/build"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

func deployment(labels map[string]string) *unstructured.Unstructured {
	obj := build.Object("apps/v1", "Deployment", "default", "nginx")
	obj.SetLabels(labels)
	return obj
}

func pp(name string, priority *int32, selectors ...policyv1alpha1.ResourceSelector) policyv1alpha1.Policy {
	return &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name,
			Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-" + name},
		},
		Spec: policyv1alpha1.PropagationSpec{Priority: priority, ResourceSelectors: selectors},
	}
}

func cpp(name string) policyv1alpha1.Policy {
	return &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id-" + name},
	}}
}

func selector(name string, labels map[string]string) policyv1alpha1.ResourceSelector {
	rs := policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Name: name}
	if labels != nil {
		rs.LabelSelector = &metav1.LabelSelector{MatchLabels: labels}
	}
	return rs
}

func TestBest(t *testing.T) {
	byKind, byLabel, byName := selector("", nil), selector("", map[string]string{"app": "nginx"}), selector("nginx", nil)
	deleted := pp("a-deleted", ptr.To[int32](100), byName)
	deleted.SetDeletionTimestamp(&metav1.Time{})
	elsewhere := pp("a-elsewhere", ptr.To[int32](100), byName)
	elsewhere.SetNamespace("other")
	for name, tc := range map[string]struct {
		candidates []policyv1alpha1.Policy
		want       string
	}{
		"no candidates": {},
		"none matches":  {[]policyv1alpha1.Policy{pp("a", nil, selector("other", nil))}, ""},
		"explicit priority beats a more specific selector": {
			[]policyv1alpha1.Policy{pp("a", nil, byName), pp("b", ptr.To[int32](1), byKind)}, "b"},
		"no priority is priority 0": {
			[]policyv1alpha1.Policy{pp("b", nil, byKind), pp("c", ptr.To[int32](-1), byName), pp("a", ptr.To[int32](0), byKind)}, "a"},
		"name beats labels beats kind": {
			[]policyv1alpha1.Policy{pp("a", nil, byKind), pp("b", nil, byLabel), pp("c", nil, byName)}, "c"},
		"the best selector of a policy counts": {
			[]policyv1alpha1.Policy{pp("a", nil, byLabel), pp("b", nil, byKind, byName)}, "b"},
		"the smallest name wins a tie":           {[]policyv1alpha1.Policy{pp("b", nil, byKind), pp("a", nil, byKind)}, "a"},
		"a policy that is being deleted is out":  {[]policyv1alpha1.Policy{deleted, pp("b", nil, byKind)}, "b"},
		"a policy of another namespace is out":   {[]policyv1alpha1.Policy{elsewhere, pp("b", nil, byKind)}, "b"},
		"an empty label selector matches as one": {[]policyv1alpha1.Policy{pp("a", nil, byKind), pp("b", nil, selector("", map[string]string{}))}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if best := Best(deployment(map[string]string{"app": "nginx"}), tc.candidates); best != nil {
				got = best.GetName()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestBest_InputOrderIsIrrelevant(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	selectors := []policyv1alpha1.ResourceSelector{selector("", nil), selector("nginx", nil), selector("", map[string]string{"app": "nginx"})}
	for range 200 {
		var candidates []policyv1alpha1.Policy
		for i := range 6 {
			candidates = append(candidates, pp(string(rune('a'+i)), new(rnd.Int32N(3)), selectors[rnd.IntN(3)]))
		}
		obj := deployment(map[string]string{"app": "nginx"})
		first := Best(obj, candidates)
		rnd.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
		if second := Best(obj, candidates); first.GetName() != second.GetName() {
			t.Fatalf("got %s, then %s", first.GetName(), second.GetName())
		}
	}
}

func TestClaim_TakenThenHeld(t *testing.T) {
	for _, p := range []policyv1alpha1.Policy{pp("p", nil), cpp("c")} {
		obj := deployment(map[string]string{"app": "nginx"})
		claim := For(p)
		claim.Take(obj).Apply(obj)
		got, ok := Of(obj)
		if !ok || got != claim {
			t.Errorf("got %+v, %v, want %+v", got, ok, claim)
		}
		if change := claim.Take(obj); !change.Empty() {
			t.Errorf("taking again changes %+v", change)
		}
		if diff := cmp.Diff([]string{claim.ID}, IDs(obj)); diff != "" {
			t.Error(diff)
		}
		claim.Drop(obj).Apply(obj)
		if diff := cmp.Diff(map[string]string{"app": "nginx"}, obj.GetLabels()); diff != "" {
			t.Error(diff)
		}
		if len(obj.GetAnnotations()) != 0 {
			t.Errorf("annotations stay: %v", obj.GetAnnotations())
		}
	}
}

func TestClaim_PolicyDropsTheClaimOfAClusterPolicy(t *testing.T) {
	obj := deployment(nil)
	For(cpp("c")).Take(obj).Apply(obj)
	For(pp("p", nil)).Take(obj).Apply(obj)
	if _, ok := in(scope.ClusterPolicy(), obj); ok {
		t.Error("the cluster policy still holds the object")
	}
	if got, _ := Of(obj); got.Name != "p" {
		t.Errorf("got %+v", got)
	}
}

func TestClaim_ClusterPolicyLeavesTheClaimOfAPolicy(t *testing.T) {
	obj := deployment(nil)
	For(pp("p", nil)).Take(obj).Apply(obj)
	For(cpp("c")).Take(obj).Apply(obj)
	if got, _ := Of(obj); got.Name != "p" {
		t.Errorf("the policy lost the object to %+v", got)
	}
}

func TestClaim_OtherIDIsNotDropped(t *testing.T) {
	obj := deployment(nil)
	For(pp("p", nil)).Take(obj).Apply(obj)
	old := For(pp("p", nil))
	old.ID = "an earlier policy of that name"
	if change := old.Drop(obj); !change.Empty() {
		t.Errorf("drops %+v", change)
	}
}

func TestOf_IncompleteClaimDoesNotCount(t *testing.T) {
	obj := deployment(map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"})
	obj.SetAnnotations(map[string]string{policyv1alpha1.PropagationPolicyNameAnnotation: "p"})
	if got, ok := Of(obj); ok {
		t.Errorf("got %+v", got)
	}
}

func TestOwn(t *testing.T) {
	for name, tc := range map[string]struct {
		apiVersion, kind, name string
		spec                   map[string]any
		labels                 map[string]string
		annotations            map[string]string
		want                   bool
	}{
		"the webhooks":                {"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validating-config", nil, nil, nil, true},
		"webhooks of a chart":         {"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "ingress.karmada.io", nil, nil, nil, false},
		"an admission policy":         {"admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "agents.karmada.io", nil, map[string]string{"karmada.io/system": "true"}, nil, true},
		"one of a user":               {"admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "teams.karmada.io", nil, nil, nil, false},
		"a CRD":                       {"apiextensions.k8s.io/v1", "CustomResourceDefinition", "works.work.karmada.io", nil, nil, nil, true},
		"a CRD of a user":             {"apiextensions.k8s.io/v1", "CustomResourceDefinition", "foos.example.karmada.io", nil, nil, nil, false},
		"a CRD that members need":     {"apiextensions.k8s.io/v1", "CustomResourceDefinition", "serviceexports.multicluster.x-k8s.io", nil, nil, nil, false},
		"an APIService of a CRD":      {"apiregistration.k8s.io/v1", "APIService", "v1.example.io", map[string]any{}, nil, nil, true},
		"the metrics adapter":         {"apiregistration.k8s.io/v1", "APIService", "v1beta1.metrics.k8s.io", map[string]any{"service": map[string]any{"namespace": "karmada-system"}}, nil, nil, true},
		"an APIService of a chart":    {"apiregistration.k8s.io/v1", "APIService", "v1.example.io", map[string]any{"service": map[string]any{"namespace": "a"}}, nil, nil, false},
		"one that does not act":       {"apiregistration.k8s.io/v1", "APIService", "v1.example.io", map[string]any{}, nil, map[string]string{"propagation.karmada.io/inert": "{}"}, false},
		"a default role":              {"rbac.authorization.k8s.io/v1", "ClusterRole", "edit", nil, map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"}, nil, true},
		"a role of a chart":           {"rbac.authorization.k8s.io/v1", "ClusterRole", "karmada-dashboard", nil, nil, nil, false},
		"a role of metrics-server":    {"rbac.authorization.k8s.io/v1", "ClusterRole", "system:metrics-server", nil, nil, nil, false},
		"its aggregated role":         {"rbac.authorization.k8s.io/v1", "ClusterRole", "system:aggregated-metrics-reader", nil, map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}, nil, false},
		"its binding":                 {"rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "metrics-server:system:auth-delegator", nil, nil, nil, false},
		"a built-in priority":         {"scheduling.k8s.io/v1", "PriorityClass", "system-node-critical", nil, nil, nil, true},
		"a priority of a user":        {"scheduling.k8s.io/v1", "PriorityClass", "system-batch", nil, nil, nil, false},
		"a built-in namespace":        {"v1", "Namespace", "kube-node-lease", nil, nil, nil, true},
		"a namespace of a network":    {"v1", "Namespace", "kube-flannel", nil, nil, nil, false},
		"a namespace":                 {"v1", "Namespace", "karmada-es-member1", nil, nil, nil, true},
		"a namespace of a user":       {"v1", "Namespace", "default", nil, nil, nil, false},
		"the CA of the control plane": {"v1", "ConfigMap", "kube-root-ca.crt", nil, nil, nil, true},
		"a marked object":             {"v1", "Secret", "a", nil, map[string]string{"karmada.io/system": "true"}, nil, true},
		"a built-in flow schema":      {"flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "probes", nil, nil, map[string]string{"apf.kubernetes.io/autoupdate-spec": "true"}, true},
		"a workload":                  {"apps/v1", "Deployment", "system-a", nil, nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			obj := build.Object(tc.apiVersion, tc.kind, "", tc.name)
			obj.SetLabels(tc.labels)
			obj.SetAnnotations(tc.annotations)
			if tc.spec != nil {
				obj.Object["spec"] = tc.spec
			}
			if got := Own(obj); (got != "") != tc.want {
				t.Errorf("got %q", got)
			}
			all := cpp("all")
			all.PropagationSpec().ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: tc.apiVersion, Kind: tc.kind}}
			if Matches(obj, all) == tc.want || MatchesOwn(obj, all) != tc.want {
				t.Error("a policy for all objects of the kind takes it, or not")
			}
		})
	}
}
