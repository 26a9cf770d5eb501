package detector

import (
	"sync"
	"time"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

type apiKind struct{ apiVersion, kind string }

// waitingTemplate is the state of a template that no policy selects.
type waitingTemplate struct {
	// waits is true if a new policy is to find the template here.
	waits bool
	// since is when no match was first observed; zero before that.
	since time.Time
	// listed is true if the template existed, without a claim, when its kind was first
	// listed, so that an earlier process may have reported it.
	listed bool
	// reported is true if nothing is left to report until a policy matches.
	reported bool
}

// waiting holds the templates that no policy selects, by kind.
type waiting struct {
	mu     sync.Mutex
	byKind map[apiKind]map[objectKey]waitingTemplate
}

func newWaiting() *waiting { return &waiting{byKind: map[apiKind]map[objectKey]waitingTemplate{}} }

func kindOf(key objectKey) apiKind {
	apiVersion, kind := key.gvk.ToAPIVersionAndKind()
	return apiKind{apiVersion, kind}
}

// update changes the state of a template and returns it.
func (w *waiting) update(key objectKey, change func(*waitingTemplate)) waitingTemplate {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := kindOf(key)
	if w.byKind[k] == nil {
		w.byKind[k] = map[objectKey]waitingTemplate{}
	}
	state := w.byKind[k][key]
	change(&state)
	w.byKind[k][key] = state
	return state
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

// candidates returns the waiting templates that the policy may select, by kind,
// namespace and name.
func (w *waiting) candidates(p policyv1alpha1.Policy) []objectKey {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := map[objectKey]bool{}
	var out []objectKey
	for _, rs := range p.PropagationSpec().ResourceSelectors {
		for key, state := range w.byKind[apiKind{rs.APIVersion, rs.Kind}] {
			if !state.waits || seen[key] || p.GetNamespace() != "" && p.GetNamespace() != key.namespace ||
				rs.Namespace != "" && rs.Namespace != key.namespace || rs.Name != "" && rs.Name != key.name {
				continue
			}
			seen[key] = true
			out = append(out, key)
		}
	}
	return out
}
