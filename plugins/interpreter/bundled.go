// Package interpreter holds the customizations that come with the program: Lua
// for popular kinds, one file for each kind in <group>/<version>/<Kind>. A file
// may be for other versions of its kind too.
package interpreter

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
)

//go:embed */*/*/customization.yaml
var files embed.FS

// otherVersions is the annotation of a file that names other versions of the kind,
// separated by commas, that the same customization is for.
const otherVersions = "interpreter.karmada.io/other-versions"

// Customizations returns all bundled customizations, sorted by group, version
// and kind.
func Customizations() ([]*configv1alpha1.ResourceInterpreterCustomization, error) {
	paths, err := fs.Glob(files, "*/*/*/customization.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing bundled customizations: %w", err)
	}
	all := make([]*configv1alpha1.ResourceInterpreterCustomization, 0, len(paths))
	for _, path := range paths {
		data, err := files.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading bundled customization: %w", err)
		}
		c := &configv1alpha1.ResourceInterpreterCustomization{}
		if err := yaml.UnmarshalStrict(data, c); err != nil {
			return nil, fmt.Errorf("decoding bundled customization %s: %w", path, err)
		}
		all = append(all, ofVersions(c)...)
	}
	slices.SortFunc(all, func(a, b *configv1alpha1.ResourceInterpreterCustomization) int {
		return cmp.Or(cmp.Compare(a.Spec.Target.APIVersion, b.Spec.Target.APIVersion), cmp.Compare(a.Spec.Target.Kind, b.Spec.Target.Kind))
	})
	return all, nil
}

// ofVersions returns the customization of a file and its copies for the other versions
// that it names, as if each had a file of its own.
func ofVersions(c *configv1alpha1.ResourceInterpreterCustomization) []*configv1alpha1.ResourceInterpreterCustomization {
	all := []*configv1alpha1.ResourceInterpreterCustomization{c}
	others := c.Annotations[otherVersions]
	c.Annotations = nil
	if others == "" {
		return all
	}
	gvk := schema.FromAPIVersionAndKind(c.Spec.Target.APIVersion, c.Spec.Target.Kind)
	for version := range strings.SplitSeq(others, ",") {
		other := c.DeepCopy()
		other.Name = strings.ToLower(gvk.Kind) + "." + version + "." + gvk.Group
		other.Spec.Target.APIVersion = gvk.Group + "/" + version
		all = append(all, other)
	}
	return all
}

// NewLayer returns the layer of bundled customizations. It belongs after those
// of users.
func NewLayer(engine *lua.Engine) (interpreter.Layer, error) {
	all, err := Customizations()
	if err != nil {
		return nil, err
	}
	layer := interpreter.NewDeclarative(engine)
	layer.Load(all)
	return layer, nil
}

// New returns the interpreter of the control plane: the layers of the options, those
// of users, come first, then the bundled customizations and the built-in rules.
func New(engine *lua.Engine, opts ...interpreter.Option) (*interpreter.Interpreter, error) {
	bundled, err := NewLayer(engine)
	if err != nil {
		return nil, err
	}
	return interpreter.New(append(opts, interpreter.WithLayer(bundled), interpreter.WithLenientStatus())...), nil
}

// NewOffline returns the interpreter of a control plane that has these customizations and no interpreter webhooks.
func NewOffline(customizations []*configv1alpha1.ResourceInterpreterCustomization) (*interpreter.Interpreter, error) {
	engine := interpreter.NewLuaEngine(lua.DefaultLimits())
	layer := interpreter.NewDeclarative(engine)
	layer.Load(customizations)
	return New(engine, interpreter.WithLayer(layer))
}
