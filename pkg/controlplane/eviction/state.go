package eviction

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/jsonpath"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scope"
)

// preserve returns the labels that carry the state of a workload in a cluster to the next one. It returns an error when
// there is no status of the cluster, or when a rule has no value in it.
func preserve(rules *policyv1alpha1.StatePreservation, status *workv1alpha2.ResourceBindingStatus, cluster string) (map[string]string, error) {
	if rules == nil || len(rules.Rules) == 0 {
		return nil, nil
	}
	i := slices.IndexFunc(status.AggregatedStatus, func(s workv1alpha2.AggregatedStatusItem) bool { return s.ClusterName == cluster })
	if i < 0 || status.AggregatedStatus[i].Status == nil || len(status.AggregatedStatus[i].Status.Raw) == 0 {
		return nil, fmt.Errorf("the application status has not yet been collected from Cluster(%s)", cluster)
	}
	var tree any
	if err := json.Unmarshal(status.AggregatedStatus[i].Status.Raw, &tree); err != nil {
		return nil, fmt.Errorf("decoding the status of Cluster(%s): %w", cluster, err)
	}
	out := make(map[string]string, len(rules.Rules))
	for _, rule := range rules.Rules {
		path := jsonpath.New(rule.AliasLabelName)
		if err := path.Parse(rule.JSONPath); err != nil {
			return nil, fmt.Errorf("parsing the JSONPath %q of label %q: %w", rule.JSONPath, rule.AliasLabelName, err)
		}
		var text strings.Builder
		if err := path.Execute(&text, tree); err != nil {
			return nil, fmt.Errorf("evaluating the JSONPath %q of label %q on the status of Cluster(%s): %w", rule.JSONPath, rule.AliasLabelName, cluster, err)
		}
		out[rule.AliasLabelName] = text.String()
	}
	return out, nil
}

// Inject returns the labels that an object has in a cluster to which its workload was moved: labels and, if the cluster
// is the only target and the state was purged from the cluster before, the preserved state. labels is not changed. It
// also returns the names, sorted, whose preserved state is no value of a label: with them the cluster would reject the
// object.
func Inject(spec *workv1alpha2.ResourceBindingSpec, cluster string, labels map[string]string) (out map[string]string, left []string) {
	targets := scope.Targets(spec)
	if len(spec.GracefulEvictionTasks) == 0 || len(targets) != 1 || targets[0].Name != cluster {
		return labels, nil
	}
	task := &spec.GracefulEvictionTasks[len(spec.GracefulEvictionTasks)-1]
	if task.PurgeMode != policyv1alpha1.PurgeModeDirectly || len(task.PreservedLabelState) == 0 || slices.Contains(task.ClustersBeforeFailover, cluster) {
		return labels, nil
	}
	out = make(map[string]string, len(labels)+len(task.PreservedLabelState))
	maps.Copy(out, labels)
	for name, value := range task.PreservedLabelState {
		if len(validation.IsValidLabelValue(value)) > 0 {
			left = append(left, name)
			continue
		}
		out[name] = value
	}
	slices.Sort(left)
	return out, left
}

// StateWarnings returns a warning for each rule of a policy whose JSONPath cannot be parsed: workloads whose state cannot
// be preserved are not evicted.
func StateWarnings(failover *policyv1alpha1.FailoverBehavior) []string {
	var out []string
	add := func(field string, rules *policyv1alpha1.StatePreservation) {
		if rules == nil {
			return
		}
		for i, rule := range rules.Rules {
			if err := jsonpath.New(rule.AliasLabelName).Parse(rule.JSONPath); err != nil {
				out = append(out, fmt.Sprintf("spec.failover.%s.statePreservation.rules[%d].jsonPath: %v; the workload is not evicted until the path %q is corrected", field, i, err, rule.JSONPath))
			}
		}
	}
	if failover != nil && failover.Application != nil {
		add("application", failover.Application.StatePreservation)
	}
	if failover != nil && failover.Cluster != nil {
		add("cluster", failover.Cluster.StatePreservation)
	}
	return out
}
