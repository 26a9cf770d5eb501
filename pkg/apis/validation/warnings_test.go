package validation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

func TestWarner(t *testing.T) {
	w := Warner{Known: func(name string) bool { return name == "m1" }}
	p := &policyv1alpha1.PropagationPolicy{Spec: *decode[policyv1alpha1.PropagationSpec](t, `{
  resourceSelectors: [{apiVersion: v1, kind: A, labelSelector: {matchExpressions: [{key: a, operator: In}]}}],
  placement: {clusterAffinity: {clusterNames: [m1, m2, a.b], labelSelector: {matchExpressions: [{key: a, operator: Bad}]}},
    clusterAffinities: [{affinityName: a, clusterNames: [m3], overflowAffinities: [{affinityName: b, clusterNames: [m4]}]}],
    replicaScheduling: {weightPreference: {staticWeightList: [{targetCluster: {clusterNames: [m5]}, weight: 1}]}}}}`)}
	want := []string{
		`spec.placement.clusterAffinity.labelSelector.matchExpressions[0].operator: Invalid value: "Bad": not a valid selector operator`,
		`spec.placement.clusterAffinity.clusterNames[1]: no cluster "m2" has joined`,
		`spec.placement.clusterAffinity.clusterNames[2]: "a.b" cannot be the name of a cluster: must not contain dots`,
		`spec.placement.clusterAffinities[0].clusterNames[0]: no cluster "m3" has joined`,
		`spec.placement.clusterAffinities[0].overflowAffinities[0].clusterNames[0]: no cluster "m4" has joined`,
		`spec.placement.replicaScheduling.weightPreference.staticWeightList[0].targetCluster.clusterNames[0]: no cluster "m5" has joined`,
		"spec.resourceSelectors[0].labelSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
	}
	if diff := cmp.Diff(want, w.PropagationPolicy(p)); diff != "" {
		t.Error(diff)
	}
	o := &policyv1alpha1.OverridePolicy{Spec: *decode[policyv1alpha1.OverrideSpec](t, `{targetCluster: {clusterNames: [m2]}, overriders: {fieldOverrider: [{fieldPath: /a}]}}`)}
	want = []string{
		"spec.targetCluster and spec.overriders are deprecated, use spec.overrideRules",
		`spec.targetCluster.clusterNames[0]: no cluster "m2" has joined`,
		"spec.overriders.fieldOverrider[0]: Required value: FieldOverrider must have either JSON or YAML set",
	}
	if diff := cmp.Diff(want, w.OverridePolicy(o)); diff != "" {
		t.Error(diff)
	}
	if got := (Warner{}).ClusterTaintPolicy(&policyv1alpha1.ClusterTaintPolicy{Spec: *decode[policyv1alpha1.ClusterTaintPolicySpec](t, `{targetClusters: {clusterNames: [m2]}, taints: []}`)}); got != nil {
		t.Error(got)
	}
}
