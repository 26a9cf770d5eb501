// Package customizations makes the interpreter that knows what users teach the
// control plane, and follows every change of it. The controllers of the control
// plane and the agents of members use the same one.
package customizations

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpreter/lua"
	bundled "github.com/karmada-toolkit/karmada/plugins/interpreter"
)

// NewInterpreter returns the interpreter of the control plane: what users teach
// it, the bundled customizations, the built-in rules. What users teach it is read
// at once and follows every change until ctx ends. It fails when the control plane
// does not answer or may not be asked.
func NewInterpreter(ctx context.Context, mgr manager.Manager) (*interpreter.Interpreter, error) {
	engine := interpreter.NewLuaEngine(lua.DefaultLimits())
	users := interpreter.NewDeclarative(engine)
	all, err := bundled.New(engine, users)
	if err != nil {
		return nil, fmt.Errorf("loading bundled customizations: %w", err)
	}
	if err := load(ctx, mgr.GetAPIReader(), users); err != nil {
		return nil, err
	}
	informer, err := mgr.GetCache().GetInformer(ctx, &configv1alpha1.ResourceInterpreterCustomization{})
	if err != nil {
		return nil, fmt.Errorf("watching interpreter customizations: %w", err)
	}
	reload := func() {
		if err := load(ctx, mgr.GetClient(), users); err != nil {
			log.FromContext(ctx).Error(err, "Reloading interpreter customizations")
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(_ any, initial bool) {
			if !initial {
				reload()
			}
		},
		UpdateFunc: func(_, _ any) { reload() },
		DeleteFunc: func(any) { reload() },
	})
	if err != nil {
		return nil, fmt.Errorf("watching interpreter customizations: %w", err)
	}
	return all, nil
}

func load(ctx context.Context, reader client.Reader, users *interpreter.Declarative) error {
	list := &configv1alpha1.ResourceInterpreterCustomizationList{}
	if err := reader.List(ctx, list); err != nil {
		return fmt.Errorf("listing interpreter customizations: %w", err)
	}
	customizations := make([]*configv1alpha1.ResourceInterpreterCustomization, len(list.Items))
	for i := range list.Items {
		customizations[i] = &list.Items[i]
	}
	users.Load(customizations)
	return nil
}
