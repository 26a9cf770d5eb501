package propagation

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// DefaultSkippedNamespaces is the default pattern of skipped namespaces.
const DefaultSkippedNamespaces = "kube-.*"

// Namespaces is a set of namespaces. The zero value holds the reserved ones.
type Namespaces struct {
	patterns []*regexp.Regexp
}

// ParseNamespaces returns the reserved namespaces and those that match any of
// the regular expressions in full.
func ParseNamespaces(patterns []string) (*Namespaces, error) {
	out := &Namespaces{}
	for _, p := range patterns {
		re, err := regexp.Compile("^" + p + "$")
		if err != nil {
			return nil, fmt.Errorf("Invalid namespace regular expression: %w", err) //nolint:staticcheck // the text is part of the contract
		}
		out.patterns = append(out.patterns, re)
	}
	return out, nil
}

// DefaultNamespaces returns the namespaces that are skipped by default.
func DefaultNamespaces() *Namespaces {
	return &Namespaces{patterns: []*regexp.Regexp{regexp.MustCompile("^" + DefaultSkippedNamespaces + "$")}}
}

// Contains reports whether the namespace is in the set. The namespace of a
// cluster-scoped object is empty and is tested like any other.
func (n *Namespaces) Contains(namespace string) bool {
	if names.ReservedNamespace(namespace) {
		return true
	}
	return n.Matches(namespace)
}

// Matches reports whether the namespace matches a pattern, reserved or not.
func (n *Namespaces) Matches(namespace string) bool {
	return n != nil && slices.ContainsFunc(n.patterns, func(re *regexp.Regexp) bool { return re.MatchString(namespace) })
}

// Syncs reports whether a namespace is created in every cluster without a policy. What clusters have of one that is not any more stays as it
// is. Those that every cluster has of its own are never created.
func (n *Namespaces) Syncs(namespace *unstructured.Unstructured) bool {
	return namespace.GetDeletionTimestamp() == nil && !Builtin(namespace.GetName()) && !n.Contains(namespace.GetName()) &&
		!strings.EqualFold(namespace.GetLabels()[policyv1alpha1.NamespaceSkipAutoPropagationLabel], "true")
}

// Builtin reports whether API servers create a namespace themselves.
func Builtin(namespace string) bool {
	return slices.Contains([]string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease}, namespace)
}
