package validation

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

const notQualified = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"

func TestValidatePropagationPolicy(t *testing.T) {
	for _, tc := range []struct {
		name, spec string
		want       []string
	}{
		{name: "nothing", spec: `{}`},
		{name: "both affinities", spec: `{placement: {clusterAffinity: {}, clusterAffinities: []}}`, want: []string{"Invalid spec.placement: clusterAffinities cannot co-exist with clusterAffinity"}},
		{
			name: "field selectors", spec: `{placement: {clusterAffinities: [{affinityName: a, fieldSelector: {matchExpressions: [{key: zone, operator: In}, {key: color, operator: Exists}]}}, {affinityName: b, fieldSelector: {matchExpressions: [{key: region, operator: Exists}]}}]}}`,
			want: []string{
				`Invalid spec.placement.clusterAffinities[0].fieldSelector: unsupported key "color", must be provider, region, or zone`,
				`Invalid spec.placement.clusterAffinities[1].fieldSelector: unsupported operator "Exists", must be In or NotIn`,
			},
		},
		{
			name: "affinity names", spec: `{placement: {clusterAffinities: [{affinityName: a}, {affinityName: a}, {affinityName: "b c"}]}}`,
			want: []string{"Invalid spec.placement.clusterAffinities[2]: " + notQualified, "Invalid spec.placement.clusterAffinities: each affinity term in a policy must have a unique name"},
		},
		{
			name: "tiers need dynamic weight or aggregation", spec: `{placement: {replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {staticWeightList: []}}, clusterAffinities: [{affinityName: a, clusterNames: [m], overflowAffinities: [{affinityName: b}]}]}}`,
			want: []string{"Invalid spec.placement.clusterAffinities[0].overflowAffinities: overflowAffinities can only be used together with dynamic weight or aggregated scheduling"},
		},
		{
			name: "tiers", spec: `{placement: {replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}, clusterAffinities: [{affinityName: a, exclude: [m], overflowAffinities: [{affinityName: a}, {affinityName: b, fieldSelector: {matchExpressions: [{key: x}]}}, {affinityName: b}]}, {affinityName: c, overflowAffinities: [{affinityName: d}]}]}}`,
			want: []string{
				"Invalid spec.placement.clusterAffinities[0].overflowAffinities[0].affinityName: overflow affinity name must be unique and must not duplicate the primary group's affinityName",
				`Invalid spec.placement.clusterAffinities[0].overflowAffinities[1].fieldSelector: unsupported key "x", must be provider, region, or zone`,
				"Invalid spec.placement.clusterAffinities[0].overflowAffinities[2].affinityName: overflow affinity name must be unique and must not duplicate the primary group's affinityName",
				"Invalid spec.placement.clusterAffinities[1].overflowAffinities: overflowAffinities can only be used together with the inline ClusterAffinity",
			},
		},
		{name: "tiers by dynamic weight", spec: `{placement: {replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}, clusterAffinities: [{affinityName: a, labelSelector: {}, overflowAffinities: [{affinityName: b}]}]}}`},
		{
			name: "spread constraints", spec: `{placement: {spreadConstraints: [{spreadByField: region, spreadByLabel: x, minGroups: -1, maxGroups: -2}, {spreadByField: region, minGroups: 3, maxGroups: 2}, {spreadByLabel: y, minGroups: 3}]}}`,
			want: []string{
				"Invalid spec.placement.spreadConstraints[0]: spreadByLabel should not co-exist with spreadByField",
				"Invalid spec.placement.spreadConstraints[0]: minGroups lower than 0 is not allowed",
				"Invalid spec.placement.spreadConstraints[0]: maxGroups lower than 0 is not allowed",
				"Invalid spec.placement.spreadConstraints[1]: maxGroups lower than minGroups is not allowed",
				"Invalid spec.placement.spreadConstraints: multiple region spread constraints are not allowed",
				"Invalid spec.placement.spreadConstraints: the cluster spread constraint must be enabled in one of the constraints in case of SpreadByField is enabled",
			},
		},
		{name: "spread by label alone", spec: `{placement: {spreadConstraints: [{spreadByLabel: y}]}}`},
		{
			name: "workload affinity", spec: `{placement: {workloadAffinity: {affinity: {groupByLabelKey: "a b"}, antiAffinity: {groupByLabelKey: "a b"}}}}`,
			want: []string{
				"Invalid spec.placement.workloadAffinity.affinity.groupByLabelKey: " + notQualified,
				"Invalid spec.placement.workloadAffinity.antiAffinity.groupByLabelKey: " + notQualified,
				"Invalid spec.placement.workloadAffinity: affinity and antiAffinity must not use the same groupByLabelKey",
			},
		},
		{
			name: "tolerations", spec: `{placement: {clusterTolerations: [{operator: Exists}, {operator: Gt}]}}`,
			want: []string{`NotSupported spec.placement.clusterTolerations[1].operator: supported values: "", "Exists", "Equal"`},
		},
		{
			name: "grace period", spec: `{propagateDeps: true, failover: {application: {decisionConditions: {}, purgeMode: Directly, gracePeriodSeconds: 1}}}`,
			want: []string{"Invalid spec.failover.application.gracePeriodSeconds: only takes effect when purgeMode is gracefully"},
		},
		{
			name: "no grace period", spec: `{propagateDeps: true, failover: {application: {decisionConditions: {}, purgeMode: Gracefully}}}`,
			want: []string{"Invalid spec.failover.application.gracePeriodSeconds: should not be empty when purgeMode is gracefully"},
		},
		{
			name: "a grace period of 0", spec: `{propagateDeps: true, failover: {application: {decisionConditions: {}, purgeMode: Gracefully, gracePeriodSeconds: 0}}}`,
			want: []string{"Invalid spec.failover.application.gracePeriodSeconds: must be greater than 0"},
		},
		{
			name: "state preservation", spec: `{propagateDeps: true, failover: {application: {decisionConditions: {}, statePreservation: {rules: [{aliasLabelName: "a b"}]}}, cluster: {statePreservation: {rules: [{aliasLabelName: ok}, {aliasLabelName: "a b"}]}}}}`,
			want: []string{
				"Invalid spec.failover.application.statePreservation.rules[0].aliasLabelName: " + notQualified,
				"Invalid spec.failover.cluster.statePreservation.rules[1].aliasLabelName: " + notQualified,
			},
		},
		{
			name: "preemption", spec: `{preemption: Always, resourceSelectors: [{apiVersion: v1, kind: A, name: a}, {apiVersion: v1, kind: A}]}`,
			want: []string{"Invalid spec.resourceSelectors[1].name: name cannot be empty if preemption is Always, the empty name may cause unexpected resources preemption"},
		},
		{
			name: "suspension", spec: `{suspension: {dispatching: true, dispatchingOnClusters: {clusterNames: [m]}}}`,
			want: []string{"Invalid spec.suspension.suspension: suspension dispatching cannot co-exist with dispatchingOnClusters.clusterNames"},
		},
		{name: "suspension of none", spec: `{suspension: {dispatching: false, dispatchingOnClusters: {clusterNames: [m]}}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := decode[policyv1alpha1.PropagationSpec](t, tc.spec)
			for _, p := range []policyv1alpha1.Policy{&policyv1alpha1.ClusterPropagationPolicy{Spec: *spec}, &policyv1alpha1.PropagationPolicy{Spec: *spec}} {
				if diff := cmp.Diff(tc.want, brief(ValidatePropagationPolicy(p))); diff != "" {
					t.Errorf("%T: %s", p, diff)
				}
			}
		})
	}
}

func TestValidatePropagationPolicy_SelectorNamespace(t *testing.T) {
	spec := policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{{Namespace: "ns"}, {Namespace: "other"}}}
	p := &policyv1alpha1.PropagationPolicy{Spec: spec}
	p.Namespace = "ns"
	want := []string{"Invalid spec.resourceSelectors[1].namespace: namespace of resource selector must be the same as the namespace of the policy"}
	if diff := cmp.Diff(want, brief(ValidatePropagationPolicy(p))); diff != "" {
		t.Error(diff)
	}
	if errs := ValidatePropagationPolicy(&policyv1alpha1.ClusterPropagationPolicy{Spec: spec}); len(errs) > 0 {
		t.Error(errs)
	}
}

func TestValidateOverridePolicy(t *testing.T) {
	for _, tc := range []struct {
		name, spec string
		want       []string
	}{
		{name: "the deprecated form is not looked into", spec: `{targetCluster: {}, overriders: {fieldOverrider: [{fieldPath: x}], labelsOverrider: [{operator: add, value: {"a b": c}}]}}`},
		{
			name: "both forms", spec: `{overrideRules: [], targetCluster: {fieldSelector: {matchExpressions: [{key: x}]}}, overriders: {commandOverrider: [{containerName: c, operator: add}]}}`,
			want: []string{
				`Invalid spec.targetCluster.fieldSelector: unsupported key "x", must be provider, region, or zone`,
				"Invalid spec.targetCluster: overrideRules and targetCluster can't co-exist",
				"Invalid spec.overriders: overrideRules and overriders can't co-exist",
			},
		},
		{
			name: "fields that say which object it is", spec: `{overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}}, {overriders: {plaintext: [{path: "", operator: replace}, {path: /spec}, {path: /apiVersion}, {path: /kind}, {path: /metadata}, {path: /metadata/name}, {path: /metadata/namespace}, {path: /metadata/labels}], imageOverrider: [{component: Tag, operator: remove}, {component: Tag, operator: remove, predicate: {path: /metadata/name}}], fieldOverrider: [{fieldPath: /kind, json: [{subPath: /a, operator: remove}]}]}}]}`,
			want: []string{
				"Forbidden spec.overrideRules[1].overriders.plaintext[0].path: " + keepsIdentity,
				"Forbidden spec.overrideRules[1].overriders.plaintext[2].path: " + keepsIdentity,
				"Forbidden spec.overrideRules[1].overriders.plaintext[3].path: " + keepsIdentity,
				"Forbidden spec.overrideRules[1].overriders.plaintext[4].path: " + keepsIdentity,
				"Forbidden spec.overrideRules[1].overriders.plaintext[5].path: " + keepsIdentity,
				"Forbidden spec.overrideRules[1].overriders.plaintext[6].path: " + keepsIdentity,
				"Forbidden spec.overrideRules[1].overriders.imageOverrider[1].predicate.path: " + keepsIdentity,
				"Forbidden spec.overrideRules[1].overriders.fieldOverrider[0].fieldPath: " + keepsIdentity,
			},
		},
		{
			name: "which object it is, in the deprecated form", spec: `{overriders: {plaintext: [{path: "", operator: replace}]}}`,
			want: []string{"Forbidden spec.overriders.plaintext[0].path: " + keepsIdentity},
		},
		{name: "field overriders of the deprecated form count for nothing", spec: `{overrideRules: [], overriders: {fieldOverrider: [{fieldPath: /x}]}}`},
		{
			name: "labels, annotations, pointers", spec: `{overrideRules: [{targetCluster: {fieldSelector: {matchExpressions: [{key: zone, operator: Gt}]}}, overriders: {annotationsOverrider: [{operator: add, value: {"a b": c}}], labelsOverrider: [{operator: add, value: {a: "b c"}}], imageOverrider: [{component: Tag, operator: remove}, {component: Tag, operator: remove, predicate: {path: x}}]}}]}`,
			want: []string{
				"Invalid spec.overrideRules[0].overriders.annotationsOverrider[0].value: " + notQualified,
				"Invalid spec.overrideRules[0].overriders.labelsOverrider[0].value: a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
				`Invalid spec.overrideRules[0].overriders.imageOverrider[1].predicate.path: JSON pointer must be empty or start with a "/"`,
				`Invalid spec.overrideRules[0].targetCluster.fieldSelector: unsupported operator "Gt", must be In or NotIn`,
			},
		},
		{
			name: "field overriders", spec: `{overrideRules: [{overriders: {fieldOverrider: [{fieldPath: /a}, {fieldPath: a, json: [{subPath: x, operator: add}], yaml: [{subPath: /x, operator: remove, value: 1}, {subPath: "", operator: replace, value: null}]}]}}]}`,
			want: []string{
				"Required spec.overrideRules[0].overriders.fieldOverrider[0]: FieldOverrider must have either JSON or YAML set",
				"Invalid spec.overrideRules[0].overriders.fieldOverrider[1]: FieldOverrider has both YAML and JSON set. Only one is allowed",
				`Invalid spec.overrideRules[0].overriders.fieldOverrider[1].fieldPath: JSON pointer must be empty or start with a "/"`,
				`Invalid spec.overrideRules[0].overriders.fieldOverrider[1].json[0].subPath: JSON pointer must be empty or start with a "/"`,
				"Invalid spec.overrideRules[0].overriders.fieldOverrider[1].json[0].value: value is required for add or replace operation",
				"Invalid spec.overrideRules[0].overriders.fieldOverrider[1].yaml[0].value: value is not allowed for remove operation",
				"Invalid spec.overrideRules[0].overriders.fieldOverrider[1].yaml[1].value: value is required for add or replace operation",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := decode[policyv1alpha1.OverrideSpec](t, tc.spec)
			for _, p := range []policyv1alpha1.OverridePolicyObject{&policyv1alpha1.ClusterOverridePolicy{Spec: *spec}, &policyv1alpha1.OverridePolicy{Spec: *spec}} {
				if diff := cmp.Diff(tc.want, brief(ValidateOverridePolicy(p))); diff != "" {
					t.Errorf("%T: %s", p, diff)
				}
			}
		})
	}
}

func TestValidateOverridePolicyUpdate(t *testing.T) {
	const changesKind = `{overrideRules: [{overriders: {plaintext: [{path: /kind, operator: replace, value: Secret}]}}]}`
	policy := func(spec string) *policyv1alpha1.OverridePolicy {
		return &policyv1alpha1.OverridePolicy{Spec: *decode[policyv1alpha1.OverrideSpec](t, spec)}
	}
	old := policy(changesKind)
	if errs := ValidateOverridePolicyUpdate(policy(changesKind), old); len(errs) > 0 {
		t.Errorf("a stored policy may keep its spec, but: %v", errs)
	}
	changed := policy(changesKind)
	changed.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}}
	if errs := ValidateOverridePolicyUpdate(changed, old); len(errs) != 1 {
		t.Errorf("another spec that changes the kind: got %v", errs)
	}
	if errs := ValidateOverridePolicyUpdate(policy(`{}`), old); len(errs) > 0 {
		t.Errorf("mending a policy: got %v", errs)
	}
}

func TestValidateFederatedResourceQuota(t *testing.T) {
	for _, tc := range []struct {
		name, quota string
		want        []string
	}{
		{name: "what Kubernetes knows", quota: `{spec: {overall: {cpu: 1, requests.memory: 1Gi, pods: 3, hugepages-2Mi: 2Mi, requests.storage: 1Gi, services.nodeports: 1, vendor.example/gpu: 2, x.kubernetes.io/y: 500m}}}`},
		{
			name: "names", quota: `{spec: {overall: {foo: 1, storage: 1, "a b": 1, "a b/c": 1}}}`,
			want: []string{
				"Invalid spec.overall[a b]: " + notQualified, "Invalid spec.overall[a b]: must be a standard resource for quota",
				"Invalid spec.overall[a b/c]: prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
				"Invalid spec.overall[foo]: must be a standard resource type or fully qualified", "Invalid spec.overall[foo]: must be a standard resource for quota",
				"Invalid spec.overall[storage]: must be a standard resource for quota",
			},
		},
		{
			name: "amounts", quota: `{spec: {overall: {cpu: -1, secrets: 1500m, vendor.example/gpu: 500m}}}`,
			want: []string{
				"Invalid spec.overall[cpu]: must be greater than or equal to 0",
				"Invalid spec.overall[secrets]: must be an integer",
				"Invalid spec.overall[vendor.example/gpu]: must be an integer",
			},
		},
		{
			name: "assignments", quota: `{spec: {overall: {cpu: 3}, staticAssignments: [{clusterName: m1, hard: {cpu: 2}}, {clusterName: "", hard: {cpu: 2, memory: 1}}]}}`,
			want: []string{
				"Invalid spec.staticAssignments[1].clusterName: must be not empty",
				"Invalid spec.overall[cpu]: overall is less than assignments",
				"Invalid spec.staticAssignments[1].hard[memory]: assignment resourceName is not exist in overall",
			},
		},
		{
			name: "status", quota: `{metadata: {name: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx}, spec: {overall: {}}, status: {overall: {cpu: -1}, overallUsed: {cpu: -1}, aggregatedStatus: [{clusterName: a.b, hard: {cpu: -1}, used: {cpu: -1}}]}}`,
			want: []string{
				"Invalid metadata.name: must be no more than 63 characters",
				"Invalid status.overall[cpu]: must be greater than or equal to 0", "Invalid status.overallUsed[cpu]: must be greater than or equal to 0",
				"Invalid status.aggregatedStatus[0].clusterName: must not contain dots",
				"Invalid status.aggregatedStatus[0].hard[cpu]: must be greater than or equal to 0", "Invalid status.aggregatedStatus[0].used[cpu]: must be greater than or equal to 0",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := decode[policyv1alpha1.FederatedResourceQuota](t, tc.quota)
			if diff := cmp.Diff(tc.want, brief(ValidateFederatedResourceQuota(q))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestValidatePlacementSize(t *testing.T) {
	of := func(terms int) *policyv1alpha1.PropagationPolicy {
		p := &policyv1alpha1.PropagationPolicy{}
		for i := range terms {
			p.Spec.Placement.ClusterAffinities = append(p.Spec.Placement.ClusterAffinities, policyv1alpha1.ClusterAffinityTerm{AffinityName: fmt.Sprintf("a%d", i)})
		}
		return p
	}
	for name, tc := range map[string]struct {
		obj, old policyv1alpha1.Policy
		fails    bool
	}{
		"small":                    {of(100), nil, false},
		"large":                    {of(12_000), nil, true},
		"small before":             {of(12_000), of(100), true},
		"as large before":          {of(12_000), of(12_000), false},
		"larger before":            {of(11_999), of(12_000), false},
		"large before, now larger": {of(12_001), of(12_000), true},
		"large before, small now":  {of(1), of(12_000), false},
	} {
		if err := ValidatePlacementSize(tc.obj, tc.old); (err != nil) != tc.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}
