package applicationfailover

import (
	"encoding/json"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// persistAfter is how long an application is unhealthy before the time is written: most are healthy again soon after a
// rollout.
const persistAfter = 10 * time.Second

// times are when applications were first observed unhealthy, by binding and cluster. Those that last are in an annotation
// of the binding, too, from which they are read after a restart.
type times struct {
	mu    sync.Mutex
	since map[types.NamespacedName]map[string]time.Time
	// read are the bindings whose annotation was read. Later a cache may be behind what was written.
	read map[types.NamespacedName]bool
}

func newTimes() *times {
	return &times{since: map[types.NamespacedName]map[string]time.Time{}, read: map[types.NamespacedName]bool{}}
}

// load returns the times of a binding, none of them after now.
func (t *times) load(b workv1alpha2.Binding, now time.Time) map[string]time.Time {
	key := client.ObjectKeyFromObject(b)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.read[key] {
		t.read[key] = true
		if stored := decode(b.GetAnnotations()[workv1alpha2.UnhealthySinceAnnotation]); len(stored) > 0 {
			maps.DeleteFunc(stored, func(_ string, at time.Time) bool { return at.After(now) })
			t.since[key] = stored
		}
	}
	return t.since[key]
}

// store replaces the times of a binding.
func (t *times) store(key types.NamespacedName, since map[string]time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(since) == 0 {
		delete(t.since, key)
		return
	}
	t.since[key] = since
}

// forget drops a binding that was deleted.
func (t *times) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.since, key)
	delete(t.read, key)
}

// persistent returns the times that are to be written, and the time until there are more, 0 if there are none.
func persistent(since map[string]time.Time, now time.Time) (lasting map[string]time.Time, next time.Duration) {
	lasting = map[string]time.Time{}
	for cluster, at := range since {
		left := at.Add(persistAfter).Sub(now)
		switch {
		case left <= 0:
			lasting[cluster] = at
		case next == 0 || left < next:
			next = left
		}
	}
	return lasting, next
}

// annotate writes times into the annotation of a binding, and reports whether it changed. A user who may write bindings may
// change it, but only to evict the own application earlier or later.
func annotate(b workv1alpha2.Binding, since map[string]time.Time) bool {
	before := b.GetAnnotations()[workv1alpha2.UnhealthySinceAnnotation]
	if before == "" && len(since) == 0 || before != "" && maps.EqualFunc(decode(before), since, time.Time.Equal) {
		return false
	}
	annotations := maps.Clone(b.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	if delete(annotations, workv1alpha2.UnhealthySinceAnnotation); len(since) > 0 {
		data, err := json.Marshal(since)
		if err != nil { // a year beyond 9999
			return false
		}
		annotations[workv1alpha2.UnhealthySinceAnnotation] = string(data)
	}
	b.SetAnnotations(annotations)
	return true
}

// decode returns the times in an annotation; text that is none is ignored and replaced.
func decode(text string) map[string]time.Time {
	var out map[string]time.Time
	if json.Unmarshal([]byte(text), &out) != nil {
		return nil
	}
	return out
}
