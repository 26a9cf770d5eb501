package match

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

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
	part, _ := m.mismatch(cluster)
	return part == partNone
}

// part is a part of an affinity.
type part uint8

const (
	partNone part = iota
	partInvalid
	partNames
	partExcluded
	partLabels
	partFields
)

// mismatch returns the first part that does not select the cluster, with the requirement if the part is a selector.
func (m *Matcher) mismatch(cluster *clusterv1alpha1.Cluster) (part, *requirement) {
	if m.never {
		return partInvalid, nil
	}
	if len(m.names.list) > 0 && !m.names.has(cluster.Name) {
		return partNames, nil
	}
	if len(m.excluded.list) > 0 && m.excluded.has(cluster.Name) {
		return partExcluded, nil
	}
	for i := range m.labels {
		value, ok := cluster.Labels[m.labels[i].key]
		if !m.labels[i].matches(value, ok) {
			return partLabels, &m.labels[i]
		}
	}
	for i := range m.fields {
		if !m.fields[i].matchesField(&cluster.Spec) {
			return partFields, &m.fields[i]
		}
	}
	return partNone, nil
}

// Mismatch returns which part of the affinity does not select the cluster, such as "not in affinity clusterNames [a b c and 97 more]";
// empty if the affinity selects it.
func (m *Matcher) Mismatch(cluster *clusterv1alpha1.Cluster) string {
	sorted := *m // matchLabels are compiled in any order
	sorted.labels = slices.SortedStableFunc(slices.Values(m.labels), func(a, b requirement) int { return cmp.Compare(a.key, b.key) })
	switch part, r := sorted.mismatch(cluster); part {
	case partInvalid:
		return "affinity is not valid"
	case partNames:
		return "not in affinity clusterNames " + list(m.names.list)
	case partExcluded:
		return "excluded by affinity"
	case partLabels:
		return "labels do not match labelSelector " + r.String()
	case partFields:
		have := strconv.Quote(field(&cluster.Spec, r.key))
		if r.key == keyZone {
			have = list(cluster.Spec.Zones)
		}
		return r.key + " " + have + " does not match fieldSelector " + r.String()
	default:
		return ""
	}
}

// String returns such as env=prod for matchLabels, "env In [prod stage]" for matchExpressions.
func (r *requirement) String() string {
	if r.op == selection.In && r.values == nil {
		return r.key + "=" + r.value
	}
	text := r.key + " " + map[selection.Operator]string{
		selection.In: "In", selection.NotIn: "NotIn", selection.Exists: "Exists", selection.DoesNotExist: "DoesNotExist",
		selection.GreaterThan: "Gt", selection.LessThan: "Lt",
	}[r.op]
	if len(r.values) > 0 {
		text += " " + list(r.values)
	}
	return text
}

// listed is the number of values that list names.
const listed = 3

// list returns the first values, each cut at 63 characters, and the number of the others: [a b c and 97 more].
func list(values []string) string {
	first := fmt.Sprintf("%.63s", values[:min(listed, len(values))])
	if more := len(values) - listed; more > 0 {
		return strings.TrimSuffix(first, "]") + fmt.Sprintf(" and %d more]", more)
	}
	return first
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
		r := requirement{key: e.Key, op: operator(e.Operator), values: e.Values}
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
	if r.key == keyZone {
		return r.matchesZones(spec.Zones)
	}
	value := field(spec, r.key)
	return r.matches(value, value != "")
}

// field returns the provider or region; empty for any other key.
func field(spec *clusterv1alpha1.ClusterSpec, key string) string {
	switch key {
	case keyProvider:
		return spec.Provider
	case keyRegion:
		return spec.Region
	default:
		return ""
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
