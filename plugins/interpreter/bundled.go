// Package interpreter holds the customizations that come with the program: Lua
// for popular kinds, one file for each kind in <group>/<version>/<Kind>.
package interpreter

import (
	"embed"
	"fmt"
	"io/fs"

	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
)

//go:embed */*/*/customization.yaml
var files embed.FS

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
		all = append(all, c)
	}
	return all, nil
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
