package components

import (
	"slices"
	"strings"
)

// mergeArgs returns the default arguments without those that are overridden, then
// the extra ones, sorted by name. Several extra arguments of one name stay in
// their order: flags that may be repeated are, and of others the last counts.
func mergeArgs(defaults, extra []string) []string {
	overridden := map[string]bool{}
	for _, arg := range extra {
		overridden[argName(arg)] = true
	}
	var out []string
	for _, arg := range defaults {
		if !overridden[argName(arg)] {
			out = append(out, arg)
		}
	}
	sorted := slices.Clone(extra)
	slices.SortStableFunc(sorted, func(a, b string) int { return strings.Compare(argName(a), argName(b)) })
	return append(out, sorted...)
}

func argName(arg string) string {
	name, _, _ := strings.Cut(arg, "=")
	return name
}
