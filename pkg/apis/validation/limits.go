package validation

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// Limits of text that others write, checked before a parser reads it: at admission and, for objects that were stored
// before, where the text is used. docs/security.md lists all parsers.
const (
	// MaxStatePath is the length of the JSONPath of preserved state, in bytes.
	MaxStatePath = 1024
	// MaxStateRules is the number of rules of preserved state.
	MaxStateRules = 64
	// MaxSelectorBytes is the length of a label or field selector, in bytes: of its text, or of its keys and values together.
	MaxSelectorBytes = 64 << 10
	// MaxSelectorTerms is the number of requirements of a label or field selector.
	MaxSelectorTerms = 1024
	// MaxResourceSelectors is the number of resource selectors of a policy: each is compared with each template.
	MaxResourceSelectors = 1024
	// MaxCronBytes is the length of a cron schedule, in bytes.
	MaxCronBytes = 256
	// MaxOverriders is the number of overriders of one kind in a rule of an override policy, and of operations on a document.
	MaxOverriders = 256
	// MaxOverrideBytes is the length of a component of an image and of a path in an override policy, in bytes.
	MaxOverrideBytes = 4 << 10
	// shownBytes is how much of a long text messages show.
	shownBytes = 256
)

// Shown returns a text for a message: at most 256 bytes of it.
func Shown(text string) string {
	if len(text) <= shownBytes {
		return text
	}
	return strings.ToValidUTF8(text[:shownBytes], "") + "..."
}

// CheckSelectorText returns an error if the text of a label or field selector is longer than MaxSelectorBytes.
func CheckSelectorText(text string) error {
	if len(text) > MaxSelectorBytes {
		return fmt.Errorf("the selector has %d bytes, more than %d", len(text), MaxSelectorBytes)
	}
	return nil
}

// CheckLabelSelector returns an error if a label selector has more than MaxSelectorTerms requirements or, together, more
// than MaxSelectorBytes of keys and values. Nil has none.
func CheckLabelSelector(s *metav1.LabelSelector) error {
	if s == nil {
		return nil
	}
	terms, bytes := len(s.MatchLabels)+len(s.MatchExpressions), 0
	if terms > MaxSelectorTerms {
		return fmt.Errorf("the selector has %d requirements, more than %d", terms, MaxSelectorTerms)
	}
	for key, value := range s.MatchLabels {
		bytes += len(key) + len(value) + 1
	}
	for i := range s.MatchExpressions {
		bytes += len(s.MatchExpressions[i].Key) + valuesSize(s.MatchExpressions[i].Values)
	}
	return checkSelectorSize(bytes)
}

func checkSelectorSize(bytes int) error {
	if bytes > MaxSelectorBytes {
		return fmt.Errorf("the selector has %d bytes of keys and values, more than %d", bytes, MaxSelectorBytes)
	}
	return nil
}

// valuesSize counts a byte for each value beside its text: empty values are work too.
func valuesSize(values []string) int {
	bytes := 1
	for _, value := range values {
		bytes += len(value) + 1
	}
	return bytes
}

// ParseLabelSelector is labels.Parse for text that others write.
func ParseLabelSelector(text string) (labels.Selector, error) {
	if err := CheckSelectorText(text); err != nil {
		return nil, err
	}
	return labels.Parse(text)
}

// LabelSelector is metav1.LabelSelectorAsSelector for selectors that others write.
func LabelSelector(s *metav1.LabelSelector) (labels.Selector, error) {
	if err := CheckLabelSelector(s); err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(s)
}

// CheckAffinity returns an error if a selector of a cluster affinity is too large, as CheckLabelSelector does. Nil has none.
func CheckAffinity(a *policyv1alpha1.ClusterAffinity) error {
	if a == nil {
		return nil
	}
	if err := CheckLabelSelector(a.LabelSelector); err != nil || a.FieldSelector == nil {
		return err
	}
	terms, bytes := a.FieldSelector.MatchExpressions, 0
	if len(terms) > MaxSelectorTerms {
		return fmt.Errorf("the field selector has %d requirements, more than %d", len(terms), MaxSelectorTerms)
	}
	for i := range terms {
		bytes += len(terms[i].Key) + valuesSize(terms[i].Values)
	}
	return checkSelectorSize(bytes)
}

// forbidden returns an error of a field, or none for nil.
func forbidden(path *field.Path, err error) field.ErrorList {
	if err == nil {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, err.Error())}
}

// validateResourceSelectorSizes checks the number of resource selectors and the size of each.
func validateResourceSelectorSizes(selectors []policyv1alpha1.ResourceSelector, path *field.Path) field.ErrorList {
	if n := len(selectors); n > MaxResourceSelectors {
		return field.ErrorList{field.TooMany(path, n, MaxResourceSelectors)}
	}
	var errs field.ErrorList
	for i := range selectors {
		errs = append(errs, forbidden(path.Index(i).Child("labelSelector"), CheckLabelSelector(selectors[i].LabelSelector))...)
	}
	return errs
}

// validatePlacementSelectors checks the size of every selector of a placement.
func validatePlacementSelectors(p *policyv1alpha1.Placement, path *field.Path) field.ErrorList {
	errs := forbidden(path.Child("clusterAffinity"), CheckAffinity(p.ClusterAffinity))
	for i := range p.ClusterAffinities {
		term, at := &p.ClusterAffinities[i], path.Child("clusterAffinities").Index(i)
		errs = append(errs, forbidden(at, CheckAffinity(&term.ClusterAffinity))...)
		for j := range term.OverflowAffinities {
			errs = append(errs, forbidden(at.Child("overflowAffinities").Index(j), CheckAffinity(&term.OverflowAffinities[j].ClusterAffinity))...)
		}
	}
	if p.ReplicaScheduling != nil && p.ReplicaScheduling.WeightPreference != nil {
		for i := range p.ReplicaScheduling.WeightPreference.StaticWeightList {
			errs = append(errs, forbidden(path.Child("replicaScheduling", "weightPreference", "staticWeightList").Index(i).Child("targetCluster"),
				CheckAffinity(&p.ReplicaScheduling.WeightPreference.StaticWeightList[i].TargetCluster))...)
		}
	}
	return errs
}

// CheckStatePath returns an error for the JSONPath of a rule of preserved state that is too long or has anything but text,
// fields and indexes, such as {.a['b'][0].c}: other expressions may have many results, and nested ones exhaust the parser.
func CheckStatePath(path string) error {
	if len(path) > MaxStatePath {
		return fmt.Errorf("the path has %d bytes, more than %d", len(path), MaxStatePath)
	}
	for {
		_, expression, found := strings.Cut(path, "{")
		if !found {
			return nil
		}
		var err error
		if path, err = checkExpression(expression); err != nil {
			return err
		}
	}
}

// checkExpression checks what is behind a brace and returns what is behind the matching one.
func checkExpression(s string) (rest string, err error) {
	s = strings.TrimLeft(s, " ")
	if strings.HasPrefix(s, "$") || strings.HasPrefix(s, "@") {
		s = s[1:]
	}
	for {
		s = strings.TrimLeft(s, " ")
		switch {
		case s == "":
			return "", errors.New("unclosed action: a brace is missing")
		case s[0] == '}':
			return s[1:], nil
		case s[0] == '.':
			s, err = checkField(s[1:])
		case s[0] == '[':
			s, err = checkBrackets(s[1:])
		default:
			err = fmt.Errorf("%.32q is neither a field such as .name nor an index such as [0]; nothing else is allowed", s)
		}
		if err != nil {
			return "", err
		}
	}
}

// checkField checks the name of a field and returns what is behind it.
func checkField(s string) (rest string, err error) {
	end := 0
	for end < len(s) && !strings.ContainsRune(" \t\r\n.,[]$@{}", rune(s[end])) {
		if s[end] == '\\' {
			end++ // the next one belongs to the name
		}
		end++
	}
	end = min(end, len(s))
	switch name := s[:end]; {
	case strings.ReplaceAll(name, "\\", "") == "*":
		return "", errors.New("a wildcard is not allowed")
	case name == "" && strings.HasPrefix(s, "."):
		return "", errors.New("recursive descent (..) is not allowed")
	case name == "":
		return "", errors.New("the name of a field is missing")
	}
	return s[end:], nil
}

// checkBrackets checks what is behind a bracket, an index or a quoted name, and returns what is behind the matching one.
func checkBrackets(s string) (rest string, err error) {
	text, rest, found := strings.Cut(s, "]")
	if !found {
		return "", errors.New("unterminated array: a bracket is missing")
	}
	name, quoted := strings.CutPrefix(text, "'")
	if quoted {
		if name, quoted = strings.CutSuffix(name, "'"); !quoted {
			return "", fmt.Errorf("%.32q is neither an index nor a quoted name", text)
		}
		// The parser reads a quoted name as fields, and a comma as a union.
		if behind, err := checkField(name); err != nil || behind != "" || strings.ContainsAny(name, ",'\"") {
			return "", fmt.Errorf("the quoted name %.32q is not a plain one; a dot in it is written with a backslash", name)
		}
		return rest, nil
	}
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || len(digits) > 9 || strings.Trim(digits, "0123456789") != "" {
		return "", fmt.Errorf("[%.32s] is no index: wildcards, unions, ranges and filters are not allowed", text)
	}
	return rest, nil
}
