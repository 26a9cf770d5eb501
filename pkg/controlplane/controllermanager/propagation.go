package controllermanager

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/gates"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/binding"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/bindingstatus"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/dependencies"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/detector"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/namespacesync"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/unifiedauth"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// propagation sets up the controllers that bring templates to members and their status back.
type propagation struct {
	// wentBack is called when a cluster was found to be restored from an older copy.
	wentBack    func(cluster, from, to string)
	options     *Options
	store       *templates.Store
	interpreter *interpreter.Interpreter
	members     *access.Pool
	// skipped are the namespaces that are not propagated.
	skipped *templates.Namespaces
	retry   controllers.Retry
}

func (p *propagation) detector(ctx context.Context, mgr manager.Manager) error {
	o := p.options
	return detector.Setup(ctx, mgr, detector.Deps{
		Store: p.store, Interpreter: p.interpreter,
		Gates: detector.Gates{
			Preemption:       o.Gates.Enabled(gates.PropagationPolicyPreemption),
			Priority:         o.Gates.Enabled(gates.PriorityBasedScheduling),
			Components:       o.Gates.Enabled(gates.MultiplePodTemplatesScheduling),
			WorkloadAffinity: o.Gates.Enabled(gates.WorkloadAffinity),
			Quota:            o.Gates.Enabled(gates.ResourceQuotaEstimate),
		},
		Events:          o.Events,
		TemplateWorkers: o.TemplateSyncs, PolicyWorkers: o.PolicySyncs, ClusterPolicyWorkers: o.ClusterPolicySyncs,
		Retry: p.retry,
	})
}

// dependencies follows the feature gate PropagateDeps.
func (p *propagation) dependencies(ctx context.Context, mgr manager.Manager) error {
	o := p.options
	if !o.Gates.Enabled(gates.PropagateDeps) {
		return nil
	}
	return dependencies.Setup(ctx, mgr, dependencies.Deps{
		Store: p.store, Interpreter: p.interpreter, Workers: o.DependentSyncs, Events: o.Events,
		Retry: p.retry,
	})
}

func (p *propagation) binding(ctx context.Context, mgr manager.Manager) error {
	o := p.options
	return binding.Setup(ctx, mgr, binding.Deps{
		Store: p.store, Interpreter: p.interpreter,
		StatefulFailover: o.Gates.Enabled(gates.StatefulFailoverInjection),
		EnforceQuotas:    o.Gates.Enabled(gates.FederatedQuotaEnforcement),
		Events:           o.Events,
		Workers:          o.BindingSyncs, ClusterWorkers: o.ClusterBindingSyncs,
		Retry: p.retry,
	})
}

func (p *propagation) execution(ctx context.Context, mgr manager.Manager) error {
	return execution.Setup(ctx, mgr, execution.Deps{
		Members: p.members, Interpreter: p.interpreter, Workers: p.options.WorkSyncs, EventMode: p.options.Events,
		WentBack: p.wentBack, ReadBindings: true,
	})
}

func (p *propagation) bindingStatus(ctx context.Context, mgr manager.Manager) error {
	return bindingstatus.Setup(ctx, mgr, bindingstatus.Deps{
		Templates: p.store, Interpreter: p.interpreter, Events: p.options.Events, TemplateConditions: p.options.TemplateConditions,
		EndEvictions: p.options.Enabled("gracefulEviction"),
	})
}

func (p *propagation) namespace(ctx context.Context, mgr manager.Manager) error {
	o := p.options
	return namespacesync.Setup(ctx, mgr, namespacesync.Deps{
		Store: p.store, SkippedNamespaces: p.skipped, NamespaceSyncs: o.NamespaceSyncs,
		Retry: p.retry,
	})
}

func (p *propagation) unifiedAuth(ctx context.Context, mgr manager.Manager) error {
	o := p.options
	return unifiedauth.Setup(ctx, mgr, unifiedauth.Deps{
		Store: p.store, Events: o.Events, Retry: p.retry,
	})
}
