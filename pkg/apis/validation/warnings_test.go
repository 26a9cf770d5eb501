package validation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

func TestWarner(t *testing.T) {
	w := Warner{Known: func(name string) bool { return name == "m1" }}
	for _, tc := range []struct {
		name string
		got  []string
		want []string
	}{
		{"propagation", w.PropagationPolicy(&policyv1alpha1.PropagationPolicy{Spec: *decode[policyv1alpha1.PropagationSpec](t, `{
  resourceSelectors: [{apiVersion: v1, kind: A, labelSelector: {matchExpressions: [{key: a, operator: In}]}}],
  placement: {clusterAffinity: {clusterNames: [m1, m2, a.b], labelSelector: {matchExpressions: [{key: a, operator: Bad}]}},
    clusterAffinities: [{affinityName: a, clusterNames: [m3], overflowAffinities: [{affinityName: b, clusterNames: [m4]}]}],
    replicaScheduling: {weightPreference: {staticWeightList: [{targetCluster: {clusterNames: [m5]}, weight: 1}]}}}}`)}), []string{
			`spec.placement.clusterAffinity.labelSelector.matchExpressions[0].operator: Invalid value: "Bad": not a valid selector operator`,
			`spec.placement.clusterAffinity.clusterNames[1]: no cluster "m2" has joined`,
			`spec.placement.clusterAffinity.clusterNames[2]: "a.b" cannot be the name of a cluster: must not contain dots`,
			`spec.placement.clusterAffinities[0].clusterNames[0]: no cluster "m3" has joined`,
			`spec.placement.clusterAffinities[0].overflowAffinities[0].clusterNames[0]: no cluster "m4" has joined`,
			`spec.placement.replicaScheduling.weightPreference.staticWeightList[0].targetCluster.clusterNames[0]: no cluster "m5" has joined`,
			"spec.resourceSelectors[0].labelSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
		}},
		{"skipped namespaces", w.PropagationPolicy(&policyv1alpha1.PropagationPolicy{Spec: *decode[policyv1alpha1.PropagationSpec](t, `{
  resourceSelectors: [{apiVersion: v1, kind: A, namespace: kube-system}, {apiVersion: v1, kind: B, namespace: kube-system}, {apiVersion: v1, kind: A, namespace: karmada-system}, {apiVersion: v1, kind: A, namespace: kubeflow}]}`)}), []string{
			`spec.resourceSelectors[0].namespace: nothing of namespace "kube-system" is propagated, by the default of --skipped-propagating-namespaces of karmada-controller-manager`,
			`spec.resourceSelectors[2].namespace: nothing of namespace "karmada-system" is propagated: it belongs to the control plane`,
		}},
		{"deprecated overriders", w.OverridePolicy(&policyv1alpha1.OverridePolicy{Spec: *decode[policyv1alpha1.OverrideSpec](t, `{targetCluster: {clusterNames: [m2]}, overriders: {fieldOverrider: [{fieldPath: /a}]}}`)}), []string{
			"spec.targetCluster and spec.overriders are deprecated, use spec.overrideRules",
			`spec.targetCluster.clusterNames[0]: no cluster "m2" has joined`,
			"spec.overriders.fieldOverrider[0]: Required value: FieldOverrider must have either JSON or YAML set",
		}},
		{"maps that are replaced", w.OverridePolicy(&policyv1alpha1.OverridePolicy{Spec: *decode[policyv1alpha1.OverrideSpec](t, `{overrideRules: [{overriders: {plaintext: [
  {path: /spec/template/metadata/annotations, operator: add, value: {example.io/a~b: "1", z: "2"}}, {path: /metadata/annotations/a, operator: add, value: "1"},
  {path: /spec/containers/-, operator: add, value: {name: a}}, {path: /metadata/labels, operator: replace, value: {a: b}}, {path: /metadata/labels, operator: add, value: {}}]}}]}`)}), []string{
			"spec.overrideRules[0].overriders.plaintext[0]: add replaces a map that is there, with all of its keys; to add a key, use the path /spec/template/metadata/annotations/example.io~1a~0b and its value",
		}},
		{"override rules", w.OverridePolicy(&policyv1alpha1.OverridePolicy{Spec: *decode[policyv1alpha1.OverrideSpec](t, `{
  resourceSelectors: [{apiVersion: v1, kind: A, labelSelector: {matchExpressions: [{key: a, operator: Bad}]}}],
  overrideRules: [{targetCluster: {clusterNames: [m1]}}, {targetCluster: {clusterNames: [m2], labelSelector: {matchLabels: {a b: c}}}}]}`)}), []string{
			`spec.overrideRules[1].targetCluster.labelSelector.matchLabels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
			`spec.overrideRules[1].targetCluster.clusterNames[0]: no cluster "m2" has joined`,
			`spec.resourceSelectors[0].labelSelector.matchExpressions[0].operator: Invalid value: "Bad": not a valid selector operator`,
		}},
		{"taints", w.ClusterTaintPolicy(&policyv1alpha1.ClusterTaintPolicy{Spec: *decode[policyv1alpha1.ClusterTaintPolicySpec](t, `{targetClusters: {clusterNames: [m2]}, taints: [{key: a, effect: Odd}]}`)}), []string{
			`spec.targetClusters.clusterNames[0]: no cluster "m2" has joined`,
			`spec.taints[0].effect: Unsupported value: "Odd": supported values: "NoSchedule", "NoExecute"; no cluster gets this taint`,
		}},
		{"clusters that are not known", (Warner{}).ClusterTaintPolicy(&policyv1alpha1.ClusterTaintPolicy{Spec: *decode[policyv1alpha1.ClusterTaintPolicySpec](t, `{targetClusters: {clusterNames: [m2]}, taints: []}`)}), nil},
		{"webhooks", w.InterpreterWebhooks(decode[configv1alpha1.ResourceInterpreterWebhookConfiguration](t, `{webhooks: [{name: a, clientConfig: {url: "https://a"}}, {name: b, clientConfig: {caBundle: YQ==}}]}`)), []string{
			"webhooks[1].clientConfig.caBundle: it has no certificate: all calls fail",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWarner_Spread(t *testing.T) {
	const path = "spec.placement.spreadConstraints"
	const divided = ", replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted"
	for _, tc := range []struct {
		placement string
		want      []string
	}{
		{`[{spreadByField: cluster, minGroups: 1, maxGroups: 2}, {spreadByField: region, maxGroups: 1}]`, nil},
		{`[{spreadByField: cluster}, {spreadByField: region, maxGroups: 1}]`, nil},
		{`[{spreadByField: cluster, minGroups: 1}]`, []string{path + "[0]: nothing is scheduled without maxGroups: 0 is the most that is selected"}},
		{`[{spreadByField: cluster}, {spreadByField: region}]`, []string{path + "[1]: nothing is scheduled without maxGroups: 0 is the most that is selected"}},
		{`[{spreadByField: cluster, maxGroups: 1}, {spreadByField: zone, maxGroups: 1}, {spreadByField: provider}, {spreadByLabel: a}]`, []string{
			path + "[1]: clusters are not spread by zone: those without one are left out",
			path + "[2]: clusters are not spread by provider: those without one are left out",
			path + "[3] has no effect: clusters are not spread by labels",
		}},
		{`[{spreadByLabel: a, maxGroups: 1}]`, []string{path + ": nothing is scheduled without a constraint for clusters: they are not spread by labels"}},
		{`[{spreadByField: cluster, maxGroups: 1}]` + divided + `}`, []string{path + ": the number of clusters is not limited: a static weight takes all that fit"}},
		{`[{spreadByField: cluster, maxGroups: 1}]` + divided + `, weightPreference: {dynamicWeight: AvailableReplicas}}`, nil},
	} {
		p := &policyv1alpha1.PropagationPolicy{Spec: *decode[policyv1alpha1.PropagationSpec](t, `{placement: {spreadConstraints: `+tc.placement+`}}`)}
		if diff := cmp.Diff(tc.want, (Warner{}).PropagationPolicy(p)); diff != "" {
			t.Errorf("%s: %s", tc.placement, diff)
		}
	}
}
