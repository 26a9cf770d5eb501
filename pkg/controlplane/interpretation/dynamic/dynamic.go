// Package dynamic makes the interpreter that has the customizations and webhooks
// of users, and reloads them on every change. The controllers of the control
// plane and the agents of members use the same one.
package dynamic

import (
	"context"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	sharedmetrics "github.com/karmada-toolkit/karmada/internal/metrics"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpretation/webhook"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
	bundled "github.com/karmada-toolkit/karmada/plugins/interpreter"
)

// NewInterpreter returns the interpreter of the control plane: the customizations
// and webhooks of users, the bundled customizations, the built-in rules. Those of
// users are loaded before it returns and reloaded on every change until ctx ends;
// its Notifier publishes the changes. It fails when they cannot be listed.
func NewInterpreter(ctx context.Context, mgr manager.Manager, opts ...interpreter.Option) (*interpreter.Interpreter, error) {
	engine := interpreter.NewLuaEngine(lua.DefaultLimits())
	m := newMetrics(ctrlmetrics.Registry, engine)
	r := &reloader{
		scripts: interpreter.NewDeclarative(engine),
		hooks: webhook.New(ctx, webhook.Config{Observe: m.observe, Services: func(ctx context.Context, namespace, name string) (*corev1.Service, error) {
			service := &corev1.Service{}
			err := mgr.GetClient().Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, service)
			return service, err
		}}),
		reader:  mgr.GetClient(),
		trigger: controllers.NewTrigger(),
	}
	all, err := bundled.New(engine, append(opts, interpreter.WithLayer(r.scripts), interpreter.WithLayer(r.hooks))...)
	if err != nil {
		return nil, fmt.Errorf("loading bundled customizations: %w", err)
	}
	r.all = all
	if err := r.load(ctx, mgr.GetAPIReader()); err != nil {
		return nil, err
	}
	for _, kind := range []client.Object{
		&configv1alpha1.ResourceInterpreterCustomization{}, &configv1alpha1.ResourceInterpreterWebhookConfiguration{},
	} {
		informer, err := mgr.GetCache().GetInformer(ctx, kind)
		if err == nil {
			_, err = informer.AddEventHandler(r.handler())
		}
		if err != nil {
			return nil, fmt.Errorf("watching interpreter customizations: %w", err)
		}
	}
	if err := mgr.Add(r); err != nil {
		return nil, fmt.Errorf("watching interpreter customizations: %w", err)
	}
	return all, nil
}

// reloader keeps the layers of users as the control plane has them.
type reloader struct {
	scripts *interpreter.Declarative
	hooks   *webhook.Layer
	all     *interpreter.Interpreter
	reader  client.Reader
	// trigger holds an element while a reload is due; changes in a burst share one.
	trigger controllers.Trigger
}

// NeedLeaderElection reports that every process reloads.
func (*reloader) NeedLeaderElection() bool { return false }

// Start reloads after changes until ctx ends.
func (r *reloader) Start(ctx context.Context) error {
	defer r.hooks.Close()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.trigger:
		}
		if err := r.load(ctx, r.reader); err != nil {
			log.FromContext(ctx).Error(err, "Reloading interpreter customizations")
		}
	}
}

func (r *reloader) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { r.trigger.Fire() },
		UpdateFunc: func(old, now any) {
			before, ok1 := old.(client.Object)
			after, ok2 := now.(client.Object)
			if !ok1 || !ok2 || before.GetGeneration() != after.GetGeneration() || before.GetUID() != after.GetUID() {
				r.trigger.Fire()
			}
		},
		DeleteFunc: func(any) { r.trigger.Fire() },
	}
}

// load replaces the rules of users and publishes the kinds that this changes.
func (r *reloader) load(ctx context.Context, reader client.Reader) error {
	scripts := &configv1alpha1.ResourceInterpreterCustomizationList{}
	if err := reader.List(ctx, scripts, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing interpreter customizations: %w", err)
	}
	hooks := &configv1alpha1.ResourceInterpreterWebhookConfigurationList{}
	if err := reader.List(ctx, hooks, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing interpreter webhooks: %w", err)
	}
	changed := r.scripts.Load(pointers(scripts.Items))
	covered := r.hooks.Load(pointers(hooks.Items))
	if len(changed) == 0 && covered == nil {
		return nil
	}
	log.FromContext(ctx).V(2).Info("Interpreter customizations changed", "kinds", changed, "webhooks", covered != nil)
	r.all.Notifier().Publish(func(gvk schema.GroupVersionKind) bool {
		return slices.Contains(changed, gvk) || covered != nil && covered(gvk)
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

// metrics are those of the interpreter.
type metrics struct {
	calls *prometheus.HistogramVec
}

// newMetrics registers the metrics. Those that are there already are shared; the
// counts of virtual machines are then those of the first engine.
func newMetrics(registry prometheus.Registerer, engine *lua.Engine) *metrics {
	m := &metrics{calls: sharedmetrics.Histogram(registry, "karmada_interpreter_webhook_duration_seconds",
		"Time that interpreter webhooks take to answer.", prometheus.ExponentialBuckets(0.002, 2, 14), "webhook", "operation", "result")}
	const get, put = "pool_get_operation_total", "pool_put_operation_total"
	const getHelp, putHelp = "Virtual machines taken, from the pool or new.", "Virtual machines given back, to the pool or destroyed."
	for _, c := range []struct {
		name, help, label, value string
		count                    func(lua.PoolStats) uint64
	}{
		{get, getHelp, "from", "pool", func(s lua.PoolStats) uint64 { return s.Reused }},
		{get, getHelp, "from", "new", func(s lua.PoolStats) uint64 { return s.Created }},
		{put, putHelp, "to", "pool", func(s lua.PoolStats) uint64 { return s.Kept }},
		{put, putHelp, "to", "destroyed", func(s lua.PoolStats) uint64 { return s.Dropped }},
	} {
		_ = registry.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: c.name, Help: c.help, ConstLabels: prometheus.Labels{"name": "luavm", c.label: c.value},
		}, func() float64 { return float64(c.count(engine.PoolStats())) })) // of the first engine, should there be two
	}
	return m
}

// observe records a call of a webhook.
func (m *metrics) observe(c webhook.Call) {
	m.calls.WithLabelValues(c.Webhook, string(c.Operation), sharedmetrics.Result(c.Err)).Observe(c.Duration.Seconds())
}
