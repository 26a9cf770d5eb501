package plan

import (
	corev1 "k8s.io/api/core/v1"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/quota"
)

// limit leaves workloads where they are that would use more than the quotas of their namespace have. They are decided in the order of their
// names.
func (p *planner) limit(states map[key]*state) {
	quotas := map[string][]policyv1alpha1.FederatedResourceQuota{}
	for _, q := range p.Quotas {
		if len(q.Status.Overall) > 0 && q.Status.OverallUsed != nil { // what is used is counted only where quotas are enforced
			quotas[q.Namespace] = append(quotas[q.Namespace], *q)
		}
	}
	if len(quotas) == 0 {
		return
	}
	ledgers := map[string]*quota.Ledger{}
	for _, b := range p.Bindings {
		if ns := b.GetNamespace(); len(quotas[ns]) > 0 {
			charge(ledgers, ns, nil, quota.Usage(b.GetSpec()))
		}
	}
	for _, k := range sortedKeys(states) {
		s := states[k]
		if s.binding == nil || len(quotas[k.namespace]) == 0 {
			continue
		}
		w := &quota.Write{Binding: s.binding.GetName(), After: quota.Usage(s.binding.GetSpec())}
		var clusters []workv1alpha2.TargetCluster
		if before := p.bindings[k]; before != nil {
			w.Before, clusters = quota.Usage(before.GetSpec()), before.GetSpec().Clusters
		}
		if ledgers[k.namespace] == nil {
			ledgers[k.namespace] = &quota.Ledger{}
		}
		if exceeded := ledgers[k.namespace].Exceeds(w, quotas[k.namespace]); exceeded != nil {
			s.unfit = exceeded.Error()
			s.binding.GetSpec().Clusters = clusters
			continue
		}
		charge(ledgers, k.namespace, w.Before, w.After)
	}
}

// charge counts what a binding uses.
func charge(ledgers map[string]*quota.Ledger, namespace string, before, after corev1.ResourceList) {
	l := ledgers[namespace]
	if l == nil {
		l = &quota.Ledger{Used: corev1.ResourceList{}}
		ledgers[namespace] = l
	}
	for name, n := range after {
		sum := l.Used[name]
		sum.Add(n)
		sum.Sub(before[name])
		l.Used[name] = sum
	}
}
