// Package dynamic makes the interpreter that knows what users teach the
// control plane, and follows every change of it. The controllers of the control
// plane and the agents of members use the same one.
package dynamic

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpreter/lua"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpreter/webhook"
	bundled "github.com/karmada-toolkit/karmada/plugins/interpreter"
)

// NewInterpreter returns the interpreter of the control plane: the customizations
// and webhooks of users, the bundled customizations, the built-in rules. What
// users teach it is read at once and follows every change until ctx ends; its
// OnChange tells of them. It fails when the control plane does not answer or may
// not be asked.
func NewInterpreter(ctx context.Context, mgr manager.Manager) (*interpreter.Interpreter, error) {
	engine := interpreter.NewLuaEngine(lua.DefaultLimits())
	measures := newMeasures(metrics.Registry, engine)
	f := &follower{
		scripts: interpreter.NewDeclarative(engine),
		hooks: webhook.New(ctx, webhook.Config{Observe: measures.called, Services: func(ctx context.Context, namespace, name string) (*corev1.Service, error) {
			service := &corev1.Service{}
			err := mgr.GetClient().Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, service)
			return service, err //nolint:wrapcheck // an API error, whose reason is looked at
		}}),
		reader: mgr.GetClient(),
		wake:   make(chan struct{}, 1),
	}
	all, err := bundled.New(engine, f.scripts, f.hooks)
	if err != nil {
		return nil, fmt.Errorf("loading bundled customizations: %w", err)
	}
	f.all = all
	if err := f.load(ctx, mgr.GetAPIReader()); err != nil {
		return nil, err
	}
	for _, kind := range []client.Object{
		&configv1alpha1.ResourceInterpreterCustomization{}, &configv1alpha1.ResourceInterpreterWebhookConfiguration{},
	} {
		informer, err := mgr.GetCache().GetInformer(ctx, kind)
		if err == nil {
			_, err = informer.AddEventHandler(f.handler())
		}
		if err != nil {
			return nil, fmt.Errorf("watching interpreter customizations: %w", err)
		}
	}
	if err := mgr.Add(f); err != nil {
		return nil, fmt.Errorf("following interpreter customizations: %w", err)
	}
	return all, nil
}

// follower keeps the layers of users as the control plane has them.
type follower struct {
	scripts *interpreter.Declarative
	hooks   *webhook.Layer
	all     *interpreter.Interpreter
	reader  client.Reader
	// wake holds something when there is news: many changes at once are one.
	wake chan struct{}
}

// NeedLeaderElection says that every process follows.
func (*follower) NeedLeaderElection() bool { return false }

// Start follows changes until ctx ends.
func (f *follower) Start(ctx context.Context) error {
	defer f.hooks.Close()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.wake:
		}
		if err := f.load(ctx, f.reader); err != nil {
			log.FromContext(ctx).Error(err, "Reloading interpreter customizations")
		}
	}
}

func (f *follower) handler() toolscache.ResourceEventHandler {
	wake := func() {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { wake() },
		UpdateFunc: func(old, now any) {
			before, ok1 := old.(client.Object)
			after, ok2 := now.(client.Object)
			if !ok1 || !ok2 || before.GetGeneration() != after.GetGeneration() || before.GetUID() != after.GetUID() {
				wake()
			}
		},
		DeleteFunc: func(any) { wake() },
	}
}

// load replaces what users taught, and tells of the kinds that it changes.
func (f *follower) load(ctx context.Context, reader client.Reader) error {
	scripts := &configv1alpha1.ResourceInterpreterCustomizationList{}
	if err := reader.List(ctx, scripts, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing interpreter customizations: %w", err)
	}
	hooks := &configv1alpha1.ResourceInterpreterWebhookConfigurationList{}
	if err := reader.List(ctx, hooks, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing interpreter webhooks: %w", err)
	}
	taught := f.scripts.Load(pointers(scripts.Items))
	answered := f.hooks.Load(pointers(hooks.Items))
	if len(taught) == 0 && answered == nil {
		return nil
	}
	log.FromContext(ctx).V(2).Info("Interpreter customizations changed", "kinds", taught, "webhooks", answered != nil)
	f.all.Changed(func(gvk schema.GroupVersionKind) bool {
		return slices.Contains(taught, gvk) || answered != nil && answered(gvk)
	})
	return nil
}

func pointers[T any](list []T) []*T {
	out := make([]*T, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}
