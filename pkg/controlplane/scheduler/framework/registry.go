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
