package webhook

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
)

// bound returns the binding of a Deployment that a policy holds.
func bound(name string, holder policy.Claim) client.Object {
	return &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name + "-deployment", Labels: holder.Labels(), Annotations: holder.Annotations(),
		},
		Spec: workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: name}},
	}
}

// A ClusterPropagationPolicy takes limits and rights over from the policies of a namespace.
func TestPolicy_DoesNotWarnOfWhatItTakesOver(t *testing.T) {
	quota := bound("limits", policy.Claim{Namespace: "default", Name: "first", ID: "1"}).(*workv1alpha2.ResourceBinding)
	quota.Name, quota.Spec.Resource.APIVersion, quota.Spec.Resource.Kind = "limits-resourcequota", "v1", "ResourceQuota"
	const (
		acts = "spec.resourceSelectors[0]: objects of kind ResourceQuota act in the control plane too, on its users and on what they store there"
		held = `spec.resourceSelectors[0]: ResourceQuota "limits" is claimed by PropagationPolicy "default/first": this policy does not apply to it`
	)
	for _, tc := range []struct {
		path, kind, namespace string
		warnings              []string
	}{
		{"/validate-clusterpropagationpolicy", "ClusterPropagationPolicy", "", []string{acts}},
		{"/validate-propagationpolicy", "PropagationPolicy", "default", []string{acts, held}},
	} {
		resp := ask(t, deps(quota), question{path: tc.path, namespace: tc.namespace, object: `{apiVersion: policy.karmada.io/v1alpha1, kind: ` + tc.kind + `, metadata: {name: p, namespace: "` + tc.namespace +
			`", labels: {propagationpolicy.karmada.io/permanent-id: x, clusterpropagationpolicy.karmada.io/permanent-id: x}}, spec: {placement: {}, resourceSelectors: [{apiVersion: v1, kind: ResourceQuota, namespace: default, name: limits}]}}`})
		if !resp.Allowed || !slices.Equal(resp.Warnings, tc.warnings) {
			t.Errorf("%s: %v", tc.kind, resp)
		}
	}
}

func TestPolicy_WarnsOfObjectsThatAnotherPolicyHolds(t *testing.T) {
	first := policy.Claim{Namespace: "default", Name: "first", ID: "1"}
	all := policy.Claim{Cluster: true, Name: "all", ID: "2"}
	itself := policy.Claim{Namespace: "default", Name: "p", ID: "3"}
	many := []client.Object{}
	for i := range 5 {
		many = append(many, bound(fmt.Sprintf("d%d", i), all))
	}
	for name, tc := range map[string]struct {
		selector, more string
		stored         []client.Object
		want           []string
	}{
		"the object by name": {
			"name: nginx", "", []client.Object{bound("nginx", first)},
			[]string{`spec.resourceSelectors[0]: Deployment "nginx" is claimed by PropagationPolicy "default/first": this policy does not apply to it`},
		},
		"one that a cluster policy holds": {
			"name: nginx", "", []client.Object{bound("nginx", all)},
			[]string{`spec.resourceSelectors[0]: Deployment "nginx" is claimed by ClusterPropagationPolicy "all": this policy does not apply to it`},
		},
		"all of a kind": {
			"", "", many, []string{
				`spec.resourceSelectors[0]: Deployment "d0" is claimed by ClusterPropagationPolicy "all": this policy does not apply to it`,
				`spec.resourceSelectors[0]: Deployment "d1" is claimed by ClusterPropagationPolicy "all": this policy does not apply to it`,
				`spec.resourceSelectors[0]: Deployment "d2" is claimed by ClusterPropagationPolicy "all": this policy does not apply to it`,
				`spec.resourceSelectors: 2 more objects are claimed by other policies`,
			},
		},
		"its own object":            {"name: nginx", "", []client.Object{bound("nginx", itself)}, nil},
		"an object without a claim": {"name: nginx", "", nil, nil},
		"another object":            {"name: nginx", "", []client.Object{bound("other", first)}, nil},
		"a policy that preempts":    {"name: nginx", "preemption: Always", []client.Object{bound("nginx", first)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			object := claimingPolicy(tc.selector, tc.more)
			resp := ask(t, deps(tc.stored...), question{path: "/validate-propagationpolicy", namespace: "default", object: object})
			if diff := cmp.Diff(tc.want, resp.Warnings); !resp.Allowed || diff != "" {
				t.Errorf("allowed %v: %s", resp.Allowed, diff)
			}
		})
	}
}

func claimingPolicy(selector, more string) string {
	return strings.Join([]string{
		"apiVersion: policy.karmada.io/v1alpha1", "kind: PropagationPolicy",
		"metadata: {namespace: default, name: p, labels: {propagationpolicy.karmada.io/permanent-id: x}}",
		"spec:", "  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: default" + strings.TrimSuffix(", "+selector, ", ") + "}]",
		"  placement: {}", "  " + more,
	}, "\n")
}

func TestPolicy_AWriteOfMetadataGivesNoAdvice(t *testing.T) {
	d := deps(bound("nginx", policy.Claim{Namespace: "default", Name: "first", ID: "1"}))
	q := question{path: "/validate-propagationpolicy", namespace: "default", operation: admissionv1.Update, object: claimingPolicy("name: nginx", "")}
	q.old = strings.Replace(q.object, "name: p,", "name: p, annotations: {a: b},", 1)
	if resp := ask(t, d, q); !resp.Allowed || len(resp.Warnings) != 0 {
		t.Errorf("allowed %v, warnings %q", resp.Allowed, resp.Warnings)
	}
	q.old = strings.Replace(q.object, "name: nginx", "name: other", 1)
	if resp := ask(t, d, q); !resp.Allowed || len(resp.Warnings) != 1 {
		t.Errorf("allowed %v, warnings %q", resp.Allowed, resp.Warnings)
	}
}

func TestPolicy_WarnsOfKindsThatNoAPIServes(t *testing.T) {
	d := deps()
	d.Served = func(apiVersion, kind string) bool { return apiVersion == "apps/v1" && kind != "Deployment" }
	resp := ask(t, d, question{path: "/validate-propagationpolicy", namespace: "default", object: claimingPolicy("name: nginx", "")})
	want := []string{`spec.resourceSelectors[0]: no API serves kind "Deployment" of "apps/v1": the selector matches nothing until one does`}
	if diff := cmp.Diff(want, resp.Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestQuota_WarnsOfKeysThatAreNotCounted(t *testing.T) {
	const quota = "apiVersion: policy.karmada.io/v1alpha1\nkind: FederatedResourceQuota\nmetadata: {namespace: default, name: q}\nspec: {overall: "
	const requests = "spec.overall[requests.cpu] does not limit workloads: they are counted by what their containers request; use cpu"
	for _, tc := range []struct {
		spec string
		on   bool
		want []string
	}{
		{`{cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi, vendor.example/gpu: "1", hugepages-2Mi: 2Mi}}`, true, nil},
		{`{requests.cpu: "1"}}`, false, []string{requests}},
		{`{requests.cpu: "1"}, staticAssignments: [{clusterName: m1, hard: {requests.cpu: "1"}}]}`, false, nil},
		{`{requests.cpu: "1"}, staticAssignments: [{clusterName: m1, hard: {requests.cpu: "1"}}]}`, true, []string{requests}},
		{`{pods: "1"}}`, true, []string{"spec.overall[pods] does not limit workloads: they are counted by what their containers request, such as cpu and memory"}},
	} {
		d := deps()
		d.Enforcement = tc.on
		resp := ask(t, d, question{path: "/validate-federatedresourcequota", namespace: "default", object: quota + tc.spec})
		if diff := cmp.Diff(tc.want, resp.Warnings); !resp.Allowed || diff != "" {
			t.Errorf("%s: allowed %v, warnings %s", tc.spec, resp.Allowed, diff)
		}
	}
}
