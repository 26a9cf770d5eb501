package binding

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

// ledger remembers the Works that were created and that memory does not show yet,
// so that none is left behind when its binding goes or moves at once.
type ledger struct {
	mu        sync.Mutex
	byBinding map[string]map[types.NamespacedName]struct{}
}

func newLedger() *ledger {
	return &ledger{byBinding: map[string]map[types.NamespacedName]struct{}{}}
}

func (l *ledger) created(id string, work types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byBinding[id] == nil {
		l.byBinding[id] = map[types.NamespacedName]struct{}{}
	}
	l.byBinding[id][work] = struct{}{}
}

func (l *ledger) deleted(id string, work types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byBinding[id], work)
	if len(l.byBinding[id]) == 0 {
		delete(l.byBinding, id)
	}
}

// unseen returns the Works that are known here and not among the given ones.
func (l *ledger) unseen(id string, shown []workv1alpha1.Work) []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.byBinding[id]
	for i := range shown {
		delete(known, types.NamespacedName{Namespace: shown[i].Namespace, Name: shown[i].Name})
	}
	if len(known) == 0 {
		delete(l.byBinding, id)
		return nil
	}
	out := make([]types.NamespacedName, 0, len(known))
	for key := range known {
		out = append(out, key)
	}
	return out
}
