package interpreter

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
)

// Declarative is the layer of ResourceInterpreterCustomizations. Without any it
// has no rules.
type Declarative struct {
	engine *lua.Engine
	kinds  atomic.Pointer[map[schema.GroupVersionKind]*Rules]

	// mu guards scripts and merged, what the current rules were made from.
	mu      sync.Mutex
	scripts map[string]*lua.Script
	merged  map[schema.GroupVersionKind]*scriptRules
}

var _ Layer = &Declarative{}

// NewDeclarative returns a layer that runs its scripts on an engine.
func NewDeclarative(engine *lua.Engine) *Declarative {
	return &Declarative{engine: engine}
}

// Rules returns the rules for a kind.
func (d *Declarative) Rules(gvk schema.GroupVersionKind) *Rules {
	kinds := d.kinds.Load()
	if kinds == nil {
		return nil
	}
	return (*kinds)[gvk]
}

// Kinds returns the kinds that there are rules for, sorted.
func (d *Declarative) Kinds() []schema.GroupVersionKind {
	kinds := d.kinds.Load()
	if kinds == nil {
		return nil
	}
	return slices.SortedFunc(maps.Keys(*kinds), func(a, b schema.GroupVersionKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Version, b.Version))
	})
}

// Load replaces all rules at once. Scripts that were there before stay compiled,
// so that it is cheap to call for every change. Of several scripts for one kind
// and operation, the one of the customization whose name comes first is used;
// dependencies are what all of them find. It returns the kinds whose rules are
// other than before.
func (d *Declarative) Load(customizations []*configv1alpha1.ResourceInterpreterCustomization) []schema.GroupVersionKind {
	d.mu.Lock()
	defer d.mu.Unlock()

	sorted := slices.Clone(customizations)
	slices.SortStableFunc(sorted, func(a, b *configv1alpha1.ResourceInterpreterCustomization) int {
		return cmp.Compare(a.Name, b.Name)
	})
	scripts := map[string]*lua.Script{}
	script := func(source string) *lua.Script {
		if s, ok := scripts[source]; ok {
			return s
		}
		s, ok := d.scripts[source]
		if !ok {
			s = d.engine.Script(source)
		}
		scripts[source] = s
		return s
	}
	merged := map[schema.GroupVersionKind]*scriptRules{}
	for _, c := range sorted {
		target := c.Spec.Target
		gvk := schema.FromAPIVersionAndKind(target.APIVersion, target.Kind)
		if merged[gvk] == nil {
			merged[gvk] = &scriptRules{}
		}
		merged[gvk].add(&c.Spec.Customizations, script)
	}
	kinds := make(map[schema.GroupVersionKind]*Rules, len(merged))
	for gvk, s := range merged {
		kinds[gvk] = s.rules()
	}
	var changed []schema.GroupVersionKind
	for gvk, s := range merged {
		if before := d.merged[gvk]; before == nil || !before.equal(s) {
			changed = append(changed, gvk)
		}
	}
	for gvk := range d.merged {
		if merged[gvk] == nil {
			changed = append(changed, gvk)
		}
	}
	d.scripts, d.merged = scripts, merged
	d.kinds.Store(&kinds)
	return changed
}

// scriptRules are the scripts for one kind.
type scriptRules struct {
	replicas, components, revise, retain, reflect, aggregate, health *lua.Script
	dependencies                                                     []*lua.Script
}

// equal reports whether the scripts are the same.
func (s *scriptRules) equal(other *scriptRules) bool {
	return s.replicas == other.replicas && s.components == other.components && s.revise == other.revise &&
		s.retain == other.retain && s.reflect == other.reflect && s.aggregate == other.aggregate &&
		s.health == other.health && slices.Equal(s.dependencies, other.dependencies)
}

// add takes the scripts of a customization for what has none yet.
func (s *scriptRules) add(c *configv1alpha1.CustomizationRules, script func(string) *lua.Script) {
	take := func(into **lua.Script, source string) {
		if source != "" && *into == nil {
			*into = script(source)
		}
	}
	if c.ReplicaResource != nil {
		take(&s.replicas, c.ReplicaResource.LuaScript)
	}
	if c.ComponentResource != nil {
		take(&s.components, c.ComponentResource.LuaScript)
	}
	if c.ReplicaRevision != nil {
		take(&s.revise, c.ReplicaRevision.LuaScript)
	}
	if c.Retention != nil {
		take(&s.retain, c.Retention.LuaScript)
	}
	if c.StatusReflection != nil {
		take(&s.reflect, c.StatusReflection.LuaScript)
	}
	if c.StatusAggregation != nil {
		take(&s.aggregate, c.StatusAggregation.LuaScript)
	}
	if c.HealthInterpretation != nil {
		take(&s.health, c.HealthInterpretation.LuaScript)
	}
	if c.DependencyInterpretation != nil && c.DependencyInterpretation.LuaScript != "" {
		s.dependencies = append(s.dependencies, script(c.DependencyInterpretation.LuaScript))
	}
}

// forCluster returns the rules as they are run for objects of a cluster.
func (s *scriptRules) forCluster(cluster string) *Rules {
	own := func(script *lua.Script) *lua.Script {
		if script == nil {
			return nil
		}
		return script.For(cluster)
	}
	bound := &scriptRules{
		replicas: s.replicas, components: s.components, revise: s.revise, aggregate: s.aggregate, dependencies: s.dependencies,
		retain: own(s.retain), reflect: own(s.reflect), health: own(s.health),
	}
	return bound.rules()
}

func (s *scriptRules) rules() *Rules {
	r := &Rules{ForCluster: s.forCluster}
	if s.replicas != nil {
		r.Replicas = s.getReplicas
	}
	if s.components != nil {
		r.Components = s.getComponents
	}
	if s.revise != nil {
		r.Revise = s.reviseReplica
	}
	if s.retain != nil {
		r.Retain = s.retainObject
	}
	if s.reflect != nil {
		r.Reflect = s.reflectStatus
	}
	if s.aggregate != nil {
		r.Aggregate = s.aggregateStatus
	}
	if s.health != nil {
		r.Health = s.interpretHealth
	}
	if len(s.dependencies) > 0 {
		r.Dependencies = s.getDependencies
	}
	return r
}
