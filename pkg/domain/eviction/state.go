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
	apivalidation "github.com/karmada-toolkit/karmada/pkg/apis/validation"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// ellipsis ends a text that was cut.
const ellipsis = "..."

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
	if len(rules.Rules) > apivalidation.MaxStateRules {
		return nil, fmt.Errorf("preserving the state of Cluster(%s): there are %d rules, more than %d", cluster, len(rules.Rules), apivalidation.MaxStateRules)
	}
	out := make(map[string]string, len(rules.Rules))
	for _, rule := range rules.Rules {
		path, err := parseState(&rule)
		if err != nil {
			return nil, err
		}
		var text stateText
		if err := path.Execute(&text, tree); err != nil {
			return nil, fmt.Errorf("evaluating the JSONPath %q of label %q on the status of Cluster(%s): %s",
				apivalidation.Shown(rule.JSONPath), rule.AliasLabelName, cluster, apivalidation.Shown(err.Error()))
		}
		out[rule.AliasLabelName] = text.String()
	}
	return out, nil
}

// parseState returns the path of a rule. It is checked again here: policies may be older than the check of admission.
func parseState(rule *policyv1alpha1.StatePreservationRule) (*jsonpath.JSONPath, error) {
	path := jsonpath.New(rule.AliasLabelName)
	err := apivalidation.CheckStatePath(rule.JSONPath)
	if err == nil {
		err = path.Parse(rule.JSONPath)
	}
	if err != nil {
		return nil, fmt.Errorf("parsing the JSONPath %q of label %q: %w", apivalidation.Shown(rule.JSONPath), rule.AliasLabelName, err)
	}
	return path, nil
}

// stateText keeps what a label can hold of a result.
type stateText struct {
	kept strings.Builder
	more bool
}

// Write implements io.Writer.
func (s *stateText) Write(p []byte) (int, error) {
	room := validation.LabelValueMaxLength - s.kept.Len()
	s.more = s.more || len(p) > room
	s.kept.Write(p[:min(len(p), room)])
	return len(p), nil
}

// String returns the result. A longer one than a label can hold is cut and ends with dots, which is no value of a label:
// a part of it would be another state.
func (s *stateText) String() string {
	text := s.kept.String()
	if !s.more {
		return text
	}
	return strings.ToValidUTF8(text[:validation.LabelValueMaxLength-len(ellipsis)], "") + ellipsis
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

// StateWarnings returns a warning for each rule of a stored policy whose JSONPath admission would refuse: workloads whose
// state cannot be preserved are not evicted.
func StateWarnings(failover *policyv1alpha1.FailoverBehavior) []string {
	var out []string
	add := func(field string, rules *policyv1alpha1.StatePreservation) {
		if rules == nil {
			return
		}
		for i, rule := range rules.Rules[:min(len(rules.Rules), apivalidation.MaxStateRules)] {
			if _, err := parseState(&rule); err != nil {
				out = append(out, fmt.Sprintf("spec.failover.%s.statePreservation.rules[%d].jsonPath: %v; the workload is not evicted until the path is corrected", field, i, err))
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
