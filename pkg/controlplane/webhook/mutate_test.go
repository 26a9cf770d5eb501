package webhook

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

func TestMutate(t *testing.T) {
	for _, tc := range []struct {
		name string
		q    question
		want string // empty: as it was, without a patch
	}{
		{
			name: "a new policy gets an id of ours, a finalizer and its namespace",
			q: question{path: "/mutate-propagationpolicy", namespace: "ns", object: `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy,
  metadata: {name: a, labels: {propagationpolicy.karmada.io/permanent-id: mine, l: m}, finalizers: [x/y]},
  spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}, {apiVersion: v1, kind: Secret, namespace: other}], placement: {}}}`},
			want: `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy,
  metadata: {name: a, labels: {propagationpolicy.karmada.io/permanent-id: id-1, l: m}, finalizers: [x/y, karmada.io/propagation-policy-controller]},
  spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: ns}, {apiVersion: v1, kind: Secret, namespace: other}], placement: {}}}`,
		},
		{
			name: "a policy that is updated keeps its id, and gets none",
			q: question{path: "/mutate-clusterpropagationpolicy", operation: admissionv1.Update, object: `{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterPropagationPolicy,
  metadata: {name: a}, spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {}}}`},
		},
		{
			name: "defaults of a policy",
			q: question{path: "/mutate-clusterpropagationpolicy", operation: admissionv1.Update, object: `{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterPropagationPolicy,
  metadata: {name: a}, spec: {resourceSelectors: [{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport}],
    placement: {spreadConstraints: [{maxGroups: 3}, {spreadByLabel: rack, minGroups: 2}], replicaScheduling: {replicaSchedulingType: Divided}},
    failover: {application: {decisionConditions: {tolerationSeconds: 1}, purgeMode: Gracefully}}}}`},
			want: `{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterPropagationPolicy,
  metadata: {name: a}, spec: {propagateDeps: true, resourceSelectors: [{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport}],
    placement: {spreadConstraints: [{spreadByField: cluster, maxGroups: 3, minGroups: 1}, {spreadByLabel: rack, minGroups: 2}],
      replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}},
    failover: {application: {decisionConditions: {tolerationSeconds: 1}, purgeMode: Gracefully, gracePeriodSeconds: 600}}}}`,
		},
		{
			name: "fields of a later version survive, also in lists",
			q: question{path: "/mutate-overridepolicy", namespace: "ns", object: `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {name: a},
  spec: {later: {x: [1, 2]}, resourceSelectors: [{apiVersion: v1, kind: ConfigMap, newer: {a: 0}}], overrideRules: [], overriders: {}}}`},
			want: `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {name: a},
  spec: {later: {x: [1, 2]}, resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: ns, newer: {a: 0}}], overriders: {}}}`,
		},
		{
			name: "large numbers of override values stay exact",
			q: question{path: "/mutate-overridepolicy", namespace: "ns", object: `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {name: a},
  spec: {overrideRules: [{overriders: {plaintext: [{path: /a, operator: add, value: 9007199254740993}]}}], overriders: {}}}`},
		},
		{
			name: "a new binding without labels",
			q: question{path: "/mutate-resourcebinding", object: `{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {name: a},
  spec: {resource: {apiVersion: v1, kind: ConfigMap, name: c}}, status: {}}`},
			want: `{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {name: a, labels: {resourcebinding.karmada.io/permanent-id: id-1}},
  spec: {resource: {apiVersion: v1, kind: ConfigMap, name: c}}, status: {}}`,
		},
		{
			name: "a new binding with other labels",
			q: question{path: "/mutate-clusterresourcebinding", object: `{apiVersion: work.karmada.io/v1alpha2, kind: ClusterResourceBinding, metadata: {name: a, labels: {k: v}},
  spec: {resource: {apiVersion: v1, kind: Namespace, name: c}}, status: {}}`},
			want: `{apiVersion: work.karmada.io/v1alpha2, kind: ClusterResourceBinding, metadata: {name: a, labels: {k: v, clusterresourcebinding.karmada.io/permanent-id: id-1}},
  spec: {resource: {apiVersion: v1, kind: Namespace, name: c}}, status: {}}`,
		},
		{
			name: "a new binding that has an id",
			q: question{path: "/mutate-resourcebinding", object: `{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {name: a, labels: {resourcebinding.karmada.io/permanent-id: x}},
  spec: {resource: {apiVersion: v1, kind: ConfigMap, name: c}}, status: {}}`},
		},
		{
			name: "a binding as no controller writes it",
			q: question{path: "/mutate-resourcebinding", object: `{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {name: a},
  spec: {replicas: 0, resource: {apiVersion: v1}, later: 1}}`},
			want: `{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {name: a, labels: {resourcebinding.karmada.io/permanent-id: id-1}},
  spec: {resource: {apiVersion: v1, kind: "", name: ""}, later: 1}, status: {}}`,
		},
		{
			name: "a FederatedHPA",
			q: question{path: "/mutate-federatedhpa", object: `{apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, metadata: {name: a},
  spec: {scaleTargetRef: {kind: Deployment, name: d}, maxReplicas: 3, behavior: {scaleUp: {stabilizationWindowSeconds: 5, policies: [{type: Pods, value: 1, periodSeconds: 1}]}}},
  status: {desiredReplicas: 0, currentMetrics: null}}`},
			want: `{apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, metadata: {name: a},
  spec: {scaleTargetRef: {kind: Deployment, name: d}, minReplicas: 1, maxReplicas: 3,
    metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}],
    behavior: {scaleUp: {stabilizationWindowSeconds: 5, selectPolicy: Max, policies: [{type: Pods, value: 1, periodSeconds: 1}]},
      scaleDown: {selectPolicy: Max, policies: [{type: Percent, value: 100, periodSeconds: 15}]}}},
  status: {desiredReplicas: 0, currentMetrics: null}}`,
		},
		{
			name: "a MultiClusterService gets an id also when it is updated",
			q: question{path: "/mutate-multiclusterservice", operation: admissionv1.Update, object: `{apiVersion: networking.karmada.io/v1alpha1, kind: MultiClusterService, metadata: {name: a},
  spec: {types: [CrossCluster], range: {}}, status: {loadBalancer: {}}}`},
			want: `{apiVersion: networking.karmada.io/v1alpha1, kind: MultiClusterService, metadata: {name: a, labels: {multiclusterservice.karmada.io/permanent-id: id-1}},
  spec: {types: [CrossCluster], range: {}}, status: {loadBalancer: {}}}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			resp := ask(t, deps(), tc.q)
			if tc.want == "" {
				if len(resp.Patch) > 0 || !resp.Allowed {
					t.Errorf("want no patch, got %v %s", resp.Allowed, resp.Patch)
				}
				return
			}
			wantObject(t, tc.q, resp, tc.want)
		})
	}
}

func TestMutate_OtherVersionIsRefused(t *testing.T) {
	resp := ask(t, deps(), question{path: "/mutate-resourcebinding", object: `{apiVersion: work.karmada.io/v1alpha1, kind: ResourceBinding, metadata: {name: a}, spec: {resource: {apiVersion: v1, kind: A, name: b}}}`})
	wantRefused(t, resp, 400, "unable to decode work.karmada.io/v1alpha1, Kind=ResourceBinding into *v1alpha2.ResourceBinding")
	resp = ask(t, deps(), question{path: "/mutate-propagationpolicy", object: `{apiVersion: policy.karmada.io/v1, kind: PropagationPolicy}`})
	wantRefused(t, resp, 400, "unable to decode policy.karmada.io/v1, Kind=PropagationPolicy into *v1alpha1.PropagationPolicy")
	if resp := ask(t, deps(), question{path: "/mutate-propagationpolicy"}); resp.Allowed || resp.Result.Code != 400 {
		t.Errorf("nothing: %+v", resp)
	}
}
