package templates

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// APIs is a set of API types. The zero value is empty.
type APIs struct {
	groups   map[string]bool
	versions map[schema.GroupVersion]bool
	kinds    map[schema.GroupVersionKind]bool // kinds in lower case
}

// skippedGroups are never propagated: they control the propagation, or change
// too often.
func skippedGroups() []string {
	return []string{
		"cluster.karmada.io", "policy.karmada.io", "work.karmada.io", "config.karmada.io",
		"networking.karmada.io", "autoscaling.karmada.io", "remedy.karmada.io", "apps.karmada.io",
		"events.k8s.io",
	}
}

// ReservedAPI reports whether objects of a kind are never propagated, whatever
// other kinds a control plane skips. Versions do not matter.
func ReservedAPI(gvk schema.GroupVersionKind) bool {
	return slices.Contains(skippedGroups(), gvk.Group) || gvk.Group == "coordination.k8s.io" || gvk.Group == "" && strings.EqualFold(gvk.Kind, "event")
}

// ParseAPIs returns the types that are never propagated and those named by
// tokens, which are separated by semicolons: "<group>", "<group>/<version>",
// "<group>/<version>/<Kind>,<Kind>" or "v1/<Kind>,<Kind>" for the core group.
// Kinds are compared without regard to case.
func ParseAPIs(tokens string) (*APIs, error) {
	out := &APIs{
		groups:   map[string]bool{},
		versions: map[schema.GroupVersion]bool{{Group: "coordination.k8s.io", Version: "v1"}: true},
		kinds:    map[schema.GroupVersionKind]bool{{Version: "v1", Kind: "event"}: true},
	}
	for _, group := range skippedGroups() {
		out.groups[group] = true
	}
	for token := range strings.SplitSeq(tokens, ";") {
		token = strings.TrimSpace(token)
		if token == "" {
			continue
		}
		if err := out.add(token); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (a *APIs) add(token string) error {
	parts := strings.Split(token, "/")
	if slices.Contains(parts, "") {
		return fmt.Errorf("Invalid API string: %s", token) //nolint:staticcheck // the text is part of the contract
	}
	switch {
	case len(parts) == 1:
		a.groups[parts[0]] = true
	case len(parts) == 2 && parts[0] == "v1":
		a.addKinds(schema.GroupVersion{Version: "v1"}, parts[1])
	case len(parts) == 2:
		a.versions[schema.GroupVersion{Group: parts[0], Version: parts[1]}] = true
	case len(parts) == 3:
		a.addKinds(schema.GroupVersion{Group: parts[0], Version: parts[1]}, parts[2])
	default:
		return fmt.Errorf("Invalid API string: %s", token) //nolint:staticcheck // the text is part of the contract
	}
	return nil
}

func (a *APIs) addKinds(gv schema.GroupVersion, kinds string) {
	for kind := range strings.SplitSeq(kinds, ",") {
		if kind = strings.TrimSpace(kind); kind != "" {
			a.kinds[gv.WithKind(strings.ToLower(kind))] = true
		}
	}
}

// Contains reports whether the type is in the set.
func (a *APIs) Contains(gvk schema.GroupVersionKind) bool {
	if a == nil {
		return false
	}
	lower := gvk.GroupVersion().WithKind(strings.ToLower(gvk.Kind))
	return a.groups[gvk.Group] || a.versions[gvk.GroupVersion()] || a.kinds[lower]
}
