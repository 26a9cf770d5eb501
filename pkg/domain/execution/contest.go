package execution

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
)

const (
	// freeWrites is how often a field that was changed in the member is written again at once.
	freeWrites = 5
	// contestWindow is the time in which that counts, and after which a field that was left alone is no longer contested.
	contestWindow = time.Minute
	// firstHold and lastHold are the times between two writes of a field that is changed more often: the first doubles up to the last,
	// unless the object decides who may do what.
	firstHold, lastHold = 2 * time.Second, time.Minute
	// maxContested limits the fields of an object that are counted separately; if more differ, the top-level fields are counted.
	maxContested = 64
)

// Contested is a field that another field manager in the member changes again after each write.
type Contested struct {
	Path manifest.Path
	// Manager is the field manager that changed it last, or "unknown".
	Manager string
}

// contest has the fields of an object that were changed in the member, by their paths. The zero value is empty.
type contest struct{ fields map[string]*contestedField }

type contestedField struct {
	path    manifest.Path
	manager string
	writes  int
	// last is when it differed last, next when it is written again.
	last, next time.Time
	hold       time.Duration
	// held is set while it differs and waits.
	held bool
}

func (f *contestedField) contested() bool { return f.writes > freeWrites }

// end is when a field that does not differ until then is forgotten.
func (f *contestedField) end() time.Time { return f.last.Add(contestWindow + f.hold) }

// release ends the holds after a change of the manifest: what it sets is written at once.
func (c *contest) release() *contest {
	if c != nil {
		for _, f := range c.fields {
			f.next, f.hold, f.held = time.Time{}, 0, false
		}
	}
	return c
}

// longestHold returns the longest time between two writes of a contested field of a kind: the shortest for what decides who may do
// what, so that it is not taken out of effect for longer.
func longestHold(kind schema.GroupKind) time.Duration {
	if validation.SetsRights(kind) || kind.Group == "" && slices.Contains([]string{"Namespace", "Secret", "ServiceAccount"}, kind.Kind) {
		return firstHold
	}
	return lastHold
}

// update records the differences from the manifest, and returns those that are not written now, for longest at most. reverts reports
// that the member had the object as desired by this manifest before.
func (c *contest) update(now time.Time, longest time.Duration, differences []manifest.Path, reverts bool) (held []manifest.Path) {
	for key, f := range c.fields {
		if f.held = false; !now.Before(f.end()) {
			delete(c.fields, key)
		}
	}
	for _, path := range differences {
		key := strings.Join(path, "\x00")
		f := c.fields[key]
		if f == nil && !reverts {
			continue
		}
		if f == nil {
			if len(c.fields) >= maxContested {
				continue
			}
			f = &contestedField{path: path}
			if c.fields == nil {
				c.fields = map[string]*contestedField{}
			}
			c.fields[key] = f
		}
		f.last = now
		if now.Before(f.next) {
			f.held, held = true, append(held, path)
			continue
		}
		if f.writes++; f.contested() {
			f.hold = min(max(firstHold, 2*f.hold), longest)
			f.next = now.Add(f.hold)
		}
	}
	return held
}

// due returns the time until the first held field is written again, or the first one is forgotten; 0 if that is now, and false if
// there is none.
func (c *contest) due(now time.Time) (time.Duration, bool) {
	if c == nil {
		return 0, false
	}
	var first time.Time
	for _, f := range c.fields {
		if !f.contested() {
			continue
		}
		at := f.end()
		if f.held {
			at = f.next
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return max(0, first.Sub(now)), !first.IsZero()
}

// list returns the contested fields in order.
func (c *contest) list() []Contested {
	if c == nil {
		return nil
	}
	var out []Contested
	for _, key := range slices.Sorted(maps.Keys(c.fields)) {
		if f := c.fields[key]; f.contested() {
			out = append(out, Contested{f.path, f.manager})
		}
	}
	return out
}

// recordManagers records the field managers that own the contested fields of an object in the member.
func (c *contest) recordManagers(observed *unstructured.Unstructured) {
	for _, f := range c.fields {
		if f.contested() {
			f.manager = cmp.Or(managerOf(observed, f.path), "unknown")
		}
	}
}

// lacksManager reports whether the field manager of a contested field is not recorded yet.
func (c *contest) lacksManager() bool {
	for _, f := range c.fields {
		if f.contested() && f.manager == "" {
			return true
		}
	}
	return false
}

// managerOf returns the manager that set a field last, or something in it, as far as is known.
func managerOf(obj *unstructured.Unstructured, path manifest.Path) string {
	name, at := "", ""
	for _, entry := range obj.GetManagedFields() {
		if entry.FieldsV1 == nil || entry.Subresource == "status" {
			continue
		}
		fields := map[string]any{}
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		owns := true
		for _, key := range path {
			if fields, owns = fields["f:"+key].(map[string]any); !owns {
				break
			}
		}
		when := ""
		if entry.Time != nil {
			when = entry.Time.UTC().Format(time.RFC3339)
		}
		if owns && when >= at {
			name, at = entry.Manager, when
		}
	}
	return name
}
