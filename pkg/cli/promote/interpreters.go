package promote

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpretation/webhook"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
	"github.com/karmada-toolkit/karmada/pkg/operate/promote"
	bundled "github.com/karmada-toolkit/karmada/plugins/interpreter"
)

// newInterpreters returns the sources of dependency rules in the order of the control plane: its customizations, its
// webhooks, the bundled customizations, the rules of Kubernetes' own kinds.
func newInterpreters(ctx context.Context, d promote.Deps) ([]promote.Interpreter, error) {
	engine := interpreter.NewLuaEngine(lua.DefaultLimits())
	scripts := interpreter.NewDeclarative(engine)
	customizations, err := list[configv1alpha1.ResourceInterpreterCustomization](ctx, d, "resourceinterpretercustomizations")
	if err != nil {
		return nil, err
	}
	scripts.Load(customizations)

	hooks := webhook.New(ctx, webhook.Config{Services: services(d)})
	configurations, err := list[configv1alpha1.ResourceInterpreterWebhookConfiguration](ctx, d, "resourceinterpreterwebhookconfigurations")
	if err != nil {
		return nil, err
	}
	hooks.Load(configurations)

	thirdParty, err := bundled.NewLayer(engine)
	if err != nil {
		return nil, fmt.Errorf("loading bundled customizations: %w", err)
	}
	return []promote.Interpreter{
		{Name: "configurable", Rules: scripts.Rules},
		{Name: "customized", Rules: hooks.Rules},
		{Name: "third-party", Rules: thirdParty.Rules},
		{Name: "default", Rules: nativeRules(interpreter.New())},
	}, nil
}

// nativeRules returns the dependency rules of Kubernetes' own kinds.
func nativeRules(native *interpreter.Interpreter) func(schema.GroupVersionKind) *interpreter.Rules {
	return func(gvk schema.GroupVersionKind) *interpreter.Rules {
		if !native.HookEnabled(gvk, configv1alpha1.InterpreterOperationInterpretDependency) {
			return nil
		}
		return &interpreter.Rules{Dependencies: native.GetDependencies}
	}
}

// list reads all objects of a resource of the control plane. A user who may not read them promotes without, and is
// warned.
func list[T any](ctx context.Context, d promote.Deps, plural string) ([]*T, error) {
	all, err := d.ControlPlane.Resource(configv1alpha1.GroupVersion.WithResource(plural)).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		d.Warn("dependencies are found without the control plane's %s, which cannot be read: %v", plural, err)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s of the control plane: %w", plural, err)
	}
	out := make([]*T, 0, len(all.Items))
	for i := range all.Items {
		one := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(all.Items[i].Object, one); err != nil {
			return nil, fmt.Errorf("decoding %s %q: %w", plural, all.Items[i].GetName(), err)
		}
		out = append(out, one)
	}
	return out, nil
}

// services returns how interpreter webhooks find the Services of the control plane.
func services(d promote.Deps) func(ctx context.Context, namespace, name string) (*corev1.Service, error) {
	return func(ctx context.Context, namespace, name string) (*corev1.Service, error) {
		found, err := d.ControlPlane.Resource(corev1.SchemeGroupVersion.WithResource("services")).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		service := &corev1.Service{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, service); err != nil {
			return nil, fmt.Errorf("decoding Service %s/%s: %w", namespace, name, err)
		}
		return service, nil
	}
}
