// Package conditions adds to the aggregated status of a template what clients of
// Kubernetes wait for and interpreters leave out: the conditions of Deployments,
// Pods and Jobs, and counters that tools such as kstatus compare. Its functions are
// pure.
package conditions

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Input is the input of Apply.
type Input struct {
	// Template is the template with its current status. It is read-only.
	Template *unstructured.Unstructured
	// Aggregated is the template with the status that the interpreter aggregated. It
	// is read-only.
	Aggregated *unstructured.Unstructured
	// Items are the statuses of the members.
	Items []workv1alpha2.AggregatedStatusItem
	// Targets are the clusters that should have the template, with the replicas that
	// each should run.
	Targets []workv1alpha2.TargetCluster
	// Now is the time of transitions, in whole seconds.
	Now time.Time
}

// Result is the template with its conditions.
type Result struct {
	// Template is the aggregated one, or a copy with another status.
	Template *unstructured.Unstructured
	// Recheck is the time until the conditions change without a change of status; 0
	// for never.
	Recheck time.Duration
}

// Apply returns the aggregated template with the conditions of its kind. Kinds
// without conditions are returned unchanged.
func Apply(in Input) (Result, error) {
	apply := rules()[in.Aggregated.GroupVersionKind()]
	if apply == nil {
		return Result{Template: in.Aggregated}, nil
	}
	in.Now = in.Now.Truncate(time.Second)
	before, _ := in.Template.Object["status"].(map[string]any)
	after, _ := in.Aggregated.Object["status"].(map[string]any)
	c := &computation{Input: in, before: before, status: maps.Clone(after)}
	if c.status == nil {
		c.status = map[string]any{}
	}
	var err error
	if c.members, err = members(in); err != nil {
		return Result{}, err
	}
	if err := apply(c); err != nil {
		return Result{}, err
	}
	out := &unstructured.Unstructured{Object: maps.Clone(in.Aggregated.Object)}
	if len(c.status) > 0 || after != nil {
		out.Object["status"] = c.status
	}
	return Result{Template: out, Recheck: c.recheck}, nil
}

func rules() map[schema.GroupVersionKind]func(*computation) error {
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	return map[schema.GroupVersionKind]func(*computation) error{
		apps.WithKind("Deployment"):                  deployment,
		apps.WithKind("ReplicaSet"):                  (*computation).replicaSet,
		apps.WithKind("StatefulSet"):                 (*computation).observe,
		apps.WithKind("DaemonSet"):                   (*computation).observe,
		{Group: "batch", Version: "v1", Kind: "Job"}: job,
		{Version: "v1", Kind: "Pod"}:                 pod,
	}
}

// computation is one call of Apply.
type computation struct {
	Input
	// before is the current status of the template, status the computed one.
	before, status map[string]any
	members        []member
	recheck        time.Duration
}

// member is the report of one target cluster.
type member struct {
	cluster string
	// desired is the number of replicas that the cluster should run.
	desired int32
	// reported reports whether the cluster reported a status at all.
	reported bool
	health   workv1alpha2.ResourceHealth
	status   memberStatus
}

// memberStatus are the fields of a member's status that conditions are computed
// from.
type memberStatus struct {
	Replicas             int32             `json:"replicas"`
	UpdatedReplicas      int32             `json:"updatedReplicas"`
	AvailableReplicas    int32             `json:"availableReplicas"`
	FullyLabeledReplicas *int32            `json:"fullyLabeledReplicas"`
	StartTime            *metav1.Time      `json:"startTime"`
	Conditions           []memberCondition `json:"conditions"`
	ObservedGeneration   int64             `json:"observedGeneration"`
	Generation           int64             `json:"generation"`
	TemplateGeneration   int64             `json:"resourceTemplateGeneration"`
}

// memberCondition has the fields that the conditions of all kinds share.
type memberCondition struct {
	Type    string                 `json:"type"`
	Status  corev1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message"`
}

// condition returns a condition that the member reported, or nil.
func (m *member) condition(name string) *memberCondition {
	for i := range m.status.Conditions {
		if m.status.Conditions[i].Type == name {
			return &m.status.Conditions[i]
		}
	}
	return nil
}

// members returns the targets with what they reported, in the order of the targets.
func members(in Input) ([]member, error) {
	reported := make(map[string]*workv1alpha2.AggregatedStatusItem, len(in.Items))
	for i := range in.Items {
		reported[in.Items[i].ClusterName] = &in.Items[i]
	}
	out := make([]member, 0, len(in.Targets))
	for _, target := range in.Targets {
		m := member{cluster: target.Name, desired: target.Replicas}
		if item := reported[target.Name]; item != nil && item.Status != nil && len(item.Status.Raw) > 0 {
			if err := json.Unmarshal(item.Status.Raw, &m.status); err != nil {
				return nil, fmt.Errorf("decoding the status of cluster %q: %w", target.Name, err)
			}
			m.reported, m.health = true, item.Health
		}
		out = append(out, m)
	}
	return out, nil
}

// observed reports whether the cluster has observed the template's generation.
func (c *computation) observed(m *member) bool {
	return m.reported && m.status.ObservedGeneration >= m.status.Generation &&
		m.status.TemplateGeneration >= c.Aggregated.GetGeneration()
}

// observe keeps the observed generation while a target cluster has not reported:
// the interpreter counts only clusters that have a Work.
func (c *computation) observe() error {
	if !slices.ContainsFunc(c.members, func(m member) bool { return !m.reported }) {
		return nil
	}
	if before := number(c.before, "observedGeneration"); before == 0 {
		delete(c.status, "observedGeneration")
	} else if before < number(c.status, "observedGeneration") {
		c.status["observedGeneration"] = before
	}
	return nil
}

// number returns an integer of a status, or 0.
func number(status map[string]any, field string) int64 {
	switch n := status[field].(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}

// decode reads the named field of a tree into a value; without the field it does
// nothing.
func decode(tree map[string]any, field string, into any) error {
	value, ok := tree[field]
	if !ok || value == nil {
		return nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", field, err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("decoding %s: %w", field, err)
	}
	return nil
}

// set writes a list of conditions into the status; an empty one removes the field.
func set[T any](c *computation, conditions []T) error {
	if len(conditions) == 0 {
		delete(c.status, "conditions")
		return nil
	}
	list := make([]any, len(conditions))
	for i := range conditions {
		tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&conditions[i])
		if err != nil {
			return fmt.Errorf("encoding conditions: %w", err)
		}
		list[i] = tree
	}
	c.status["conditions"] = list
	return nil
}
