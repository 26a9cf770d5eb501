package binding

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// ledger remembers the Works that were created and that memory does not show yet,
// so that none is left behind when its binding goes or moves at once.
type ledger struct {
	mu        sync.Mutex
	byBinding map[string]map[types.NamespacedName]struct{} // by ledgerKey
}

// ledgerKey identifies a binding: ids alone are labels that users can write.
func ledgerKey(b workv1alpha2.Binding, id string) string {
	return b.GetNamespace() + "/" + b.GetName() + "/" + id
}

func newLedger() *ledger {
	return &ledger{byBinding: map[string]map[types.NamespacedName]struct{}{}}
}

func (l *ledger) created(owner string, work types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byBinding[owner] == nil {
		l.byBinding[owner] = map[types.NamespacedName]struct{}{}
	}
	l.byBinding[owner][work] = struct{}{}
}

func (l *ledger) deleted(owner string, work types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byBinding[owner], work)
	if len(l.byBinding[owner]) == 0 {
		delete(l.byBinding, owner)
	}
}

// unseen returns the Works that are known here and not among the given ones.
func (l *ledger) unseen(owner string, shown []workv1alpha1.Work) []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.byBinding[owner]
	for i := range shown {
		delete(known, types.NamespacedName{Namespace: shown[i].Namespace, Name: shown[i].Name})
	}
	if len(known) == 0 {
		delete(l.byBinding, owner)
		return nil
	}
	out := make([]types.NamespacedName, 0, len(known))
	for key := range known {
		out = append(out, key)
	}
	return out
}
