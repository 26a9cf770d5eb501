package match

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	apivalidation "github.com/karmada-toolkit/karmada/pkg/apis/validation"
)

// Matcher is an affinity compiled to match many clusters. It returns
// as Cluster does. It keeps slices of the affinity, which must not change. The
// zero value selects every cluster.
type Matcher struct {
	never    bool
	labels   []requirement
	fields   []requirement
	names    nameSet
	excluded nameSet
}

// requirement is one parsed requirement; value stands for a single element of
// values.
type requirement struct {
	key    string
	op     selection.Operator
	value  string
	values []string
	// full is set for the operators that compare numbers.
	full *labels.Requirement
}

// nameSet holds names: few in a list, many in a map.
type nameSet struct {
	list []string
	set  map[string]struct{}
}

// manyNames is the number of names from which a map is faster than a list.
const manyNames = 16

func newNameSet(names []string) nameSet {
	if len(names) < manyNames {
		return nameSet{list: names}
	}
	set := make(map[string]struct{}, len(names))
	for _, n := range names {
		set[n] = struct{}{}
	}
	return nameSet{list: names, set: set}
}

func (s *nameSet) has(name string) bool {
	if s.set == nil {
		return slices.Contains(s.list, name)
	}
	_, ok := s.set[name]
	return ok
}

// Compile returns the matcher of an affinity. Nil selects every cluster.
func Compile(affinity *policyv1alpha1.ClusterAffinity) Matcher {
	if affinity == nil {
		return Matcher{}
	}
	if apivalidation.CheckAffinity(affinity) != nil {
		return Matcher{never: true}
	}
	m := Matcher{names: newNameSet(affinity.ClusterNames), excluded: newNameSet(affinity.ExcludeClusters)}
	if affinity.LabelSelector != nil {
		m.labels = compileLabels(affinity.LabelSelector, &m.never)
	}
	if affinity.FieldSelector != nil && len(affinity.FieldSelector.MatchExpressions) > 0 {
		m.fields = compileFields(affinity.FieldSelector.MatchExpressions, &m.never)
	}
	return m
}

// Matches reports whether the affinity selects the cluster.
func (m *Matcher) Matches(cluster *clusterv1alpha1.Cluster) bool {
	if m.never {
		return false
	}
	if len(m.names.list) > 0 && !m.names.has(cluster.Name) {
		return false
	}
	if len(m.excluded.list) > 0 && m.excluded.has(cluster.Name) {
		return false
	}
	for i := range m.labels {
		value, ok := cluster.Labels[m.labels[i].key]
		if !m.labels[i].matches(value, ok) {
			return false
		}
	}
	for i := range m.fields {
		if !m.fields[i].matchesField(&cluster.Spec) {
			return false
		}
	}
	return true
}

func compileLabels(selector *metav1.LabelSelector, never *bool) []requirement {
	out := make([]requirement, 0, len(selector.MatchLabels)+len(selector.MatchExpressions))
	for key, value := range selector.MatchLabels {
		if !validKey(key) || !validValue(value) {
			*never = true
		}
		out = append(out, requirement{key: key, op: selection.In, value: value})
	}
	for i := range selector.MatchExpressions {
		e := &selector.MatchExpressions[i]
		r := requirement{key: e.Key, values: e.Values}
		switch e.Operator {
		case metav1.LabelSelectorOpIn:
			r.op = selection.In
		case metav1.LabelSelectorOpNotIn:
			r.op = selection.NotIn
		case metav1.LabelSelectorOpExists:
			r.op = selection.Exists
		case metav1.LabelSelectorOpDoesNotExist:
			r.op = selection.DoesNotExist
		}
		if !r.valid() {
			*never = true
		}
		out = append(out, r)
	}
	return out
}

func compileFields(expressions []corev1.NodeSelectorRequirement, never *bool) []requirement {
	out := make([]requirement, 0, len(expressions))
	for i := range expressions {
		e := &expressions[i]
		r := requirement{key: e.Key, values: e.Values}
		switch e.Operator {
		case corev1.NodeSelectorOpIn:
			r.op = selection.In
		case corev1.NodeSelectorOpNotIn:
			r.op = selection.NotIn
		case corev1.NodeSelectorOpExists:
			r.op = selection.Exists
		case corev1.NodeSelectorOpDoesNotExist:
			r.op = selection.DoesNotExist
		case corev1.NodeSelectorOpGt:
			r.op = selection.GreaterThan
		case corev1.NodeSelectorOpLt:
			r.op = selection.LessThan
		}
		if !r.compileNumbers() || (e.Key != keyZone && !r.valid()) {
			*never = true
		}
		out = append(out, r)
	}
	return out
}

// compileNumbers parses a comparison and reports whether it is valid.
func (r *requirement) compileNumbers() bool {
	if r.op != selection.GreaterThan && r.op != selection.LessThan {
		return true
	}
	full, err := labels.NewRequirement(r.key, r.op, r.values)
	r.full = full
	return err == nil && r.key != keyZone
}

// valid reports whether the label library would accept the requirement.
func (r *requirement) valid() bool {
	switch r.op {
	case selection.In, selection.NotIn:
		if len(r.values) == 0 {
			return false
		}
	case selection.Exists, selection.DoesNotExist:
		if len(r.values) > 0 {
			return false
		}
	case selection.GreaterThan, selection.LessThan:
		return r.full != nil
	default:
		return false
	}
	for _, v := range r.values {
		if !validValue(v) {
			return false
		}
	}
	return validKey(r.key)
}

func (r *requirement) has(value string) bool {
	if r.values == nil {
		return r.value == value
	}
	return slices.Contains(r.values, value)
}

func (r *requirement) matches(value string, ok bool) bool {
	switch r.op {
	case selection.In:
		return ok && r.has(value)
	case selection.NotIn:
		return !ok || !r.has(value)
	case selection.Exists:
		return ok
	case selection.DoesNotExist:
		return !ok
	default:
		return ok && r.full != nil && r.full.Matches(labels.Set{r.key: value})
	}
}

func (r *requirement) matchesField(spec *clusterv1alpha1.ClusterSpec) bool {
	switch r.key {
	case keyZone:
		return r.matchesZones(spec.Zones)
	case keyProvider:
		return r.matches(spec.Provider, spec.Provider != "")
	case keyRegion:
		return r.matches(spec.Region, spec.Region != "")
	default:
		return r.matches("", false)
	}
}

func (r *requirement) matchesZones(have []string) bool {
	switch r.op {
	case selection.Exists:
		return len(have) > 0
	case selection.DoesNotExist:
		return len(have) == 0
	case selection.In, selection.NotIn:
		overlap := slices.ContainsFunc(have, func(z string) bool { return slices.Contains(r.values, z) })
		return overlap == (r.op == selection.In)
	default:
		return false
	}
}

// validKey and validValue pass plain names without the cost of regular
// expressions and ask the label library about the rest.
func validKey(key string) bool {
	return (key != "" && plain(key)) || len(validation.IsQualifiedName(key)) == 0
}

func validValue(value string) bool {
	return plain(value) || len(validation.IsValidLabelValue(value)) == 0
}

func plain(s string) bool {
	if len(s) > validation.LabelValueMaxLength {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		inner := i > 0 && i < len(s)-1 && (c == '-' || c == '_' || c == '.')
		if !letter && !inner {
			return false
		}
	}
	return true
}
