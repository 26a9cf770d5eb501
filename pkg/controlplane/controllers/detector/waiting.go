package detector

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

type apiKind struct{ apiVersion, kind string }

// waiting holds the templates that no policy selects, by kind.
type waiting struct {
	mu     sync.Mutex
	byKind map[apiKind]map[objectKey]struct{}
}

func newWaiting() *waiting { return &waiting{byKind: map[apiKind]map[objectKey]struct{}{}} }

func kindOf(key objectKey) apiKind {
	apiVersion, kind := key.gvk.ToAPIVersionAndKind()
	return apiKind{apiVersion, kind}
}

func (w *waiting) add(key objectKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := kindOf(key)
	if w.byKind[k] == nil {
		w.byKind[k] = map[objectKey]struct{}{}
	}
	w.byKind[k][key] = struct{}{}
}

func (w *waiting) remove(key objectKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := kindOf(key)
	delete(w.byKind[k], key)
	if len(w.byKind[k]) == 0 {
		delete(w.byKind, k)
	}
}

// candidates returns the waiting templates that the policy may select, judged by
// kind, namespace and name.
func (w *waiting) candidates(p policyv1alpha1.Policy) []objectKey {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := map[objectKey]bool{}
	var out []objectKey
	for _, rs := range p.PropagationSpec().ResourceSelectors {
		for key := range w.byKind[apiKind{rs.APIVersion, rs.Kind}] {
			if seen[key] || p.GetNamespace() != "" && p.GetNamespace() != key.namespace ||
				rs.Namespace != "" && rs.Namespace != key.namespace || rs.Name != "" && rs.Name != key.name {
				continue
			}
			seen[key] = true
			out = append(out, key)
		}
	}
	return out
}

// written is what was last written about a template.
type written struct {
	uid     types.UID
	content uint64
	version string
}

// records remembers for each template the resource version that its binding
// carries and the content it stands for, so that the version in the binding
// changes only when something that is propagated did.
type records struct {
	mu    sync.Mutex
	byKey map[objectKey]written
}

func newRecords() *records { return &records{byKey: map[objectKey]written{}} }

func (r *records) get(key objectKey) (written, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, ok := r.byKey[key]
	return rec, ok
}

func (r *records) set(key objectKey, rec written) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byKey[key] = rec
}

func (r *records) remove(key objectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byKey, key)
}
