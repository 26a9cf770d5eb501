// Package framework is what scheduler plugins are written against: the
// interfaces of filters and scores, the facts about each cluster that they
// may read, the registry that turns the value of --plugins into a list of
// plugins. It is pure: no client, clock or feature gate.
package framework

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Factory makes a plugin.
type Factory func() (Plugin, error)

// Registry holds the factories of plugins by name.
type Registry map[string]Factory

// Register adds a factory; a name can be used once.
func (r Registry) Register(name string, factory Factory) error {
	if _, ok := r[name]; ok {
		return fmt.Errorf("a plugin named %s already exists", name)
	}
	r[name] = factory
	return nil
}

// Names returns the names of the registered plugins, sorted.
func (r Registry) Names() []string { return slices.Sorted(maps.Keys(r)) }

// Enabled returns the names that a --plugins list selects, sorted. A * anywhere
// starts with all; then, from left to right, name adds a registered plugin and
// -name removes one. Names that are not registered are ignored.
func (r Registry) Enabled(list []string) []string {
	enabled := map[string]bool{}
	if slices.Contains(list, "*") {
		for name := range r {
			enabled[name] = true
		}
	}
	for _, entry := range list {
		name, remove := strings.CutPrefix(entry, "-")
		if remove {
			delete(enabled, name)
			continue
		}
		if _, ok := r[name]; ok {
			enabled[name] = true
		}
	}
	return slices.Sorted(maps.Keys(enabled))
}

// New makes the plugins that a --plugins list selects, in the order of their
// names.
func (r Registry) New(list []string) ([]Plugin, error) {
	var out []Plugin
	for _, name := range r.Enabled(list) {
		plugin, err := r[name]()
		if err != nil {
			return nil, fmt.Errorf("starting scheduler plugin %q: %w", name, err)
		}
		out = append(out, plugin)
	}
	return out, nil
}

// Plugin is a Filter, a Score, or both.
type Plugin interface {
	// Name is the name of the plugin in --plugins.
	Name() string
}

// Filter selects the clusters that a binding may go to. It must not keep or change
// what it is given, and the same input must give the same verdict.
type Filter interface {
	Plugin
	Filter(pass *Pass, cluster *ClusterInfo) Verdict
}

// Detailer is a Filter that explains its verdicts: what it compared with what, as a short text for the user. Detail is called only
// while a decision is explained, for clusters that Filter rejected. Its text is cut at 256 bytes.
type Detailer interface {
	Filter
	Detail(pass *Pass, cluster *ClusterInfo) string
}

// MaxScore is the largest score that a plugin may give; the smallest is 0.
const MaxScore int64 = 100

// Score ranks the feasible clusters. The scores of all
// plugins are added up.
type Score interface {
	Plugin
	Score(pass *Pass, cluster *ClusterInfo) (int64, error)
}

// Normalizer is a Score that adjusts the scores of all feasible clusters
// together once they are given, to bring them into 0..MaxScore.
type Normalizer interface {
	Score
	Normalize(pass *Pass, scores []int64) error
}

// Verdict is the answer of a filter. The zero value lets the cluster pass.
type Verdict struct {
	// Reason is a text for the user: why the cluster is out. Clusters with the
	// same Reason and Detail are counted together.
	Reason string
	// Detail is appended to the reason, after a space.
	Detail string
	// Failed is set when the filter could not decide; the cluster is rejected too.
	Failed bool
}

// Fits reports whether the cluster passes.
func (v *Verdict) Fits() bool { return v.Reason == "" && !v.Failed }

// String returns the reason with its detail.
func (v *Verdict) String() string {
	if v.Detail == "" {
		return v.Reason
	}
	return v.Reason + " " + v.Detail
}

// Reject returns the verdict that keeps a cluster out.
func Reject(reason string) Verdict { return Verdict{Reason: reason} }
