package execution

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
)

// What decides who may do what is in effect again after two seconds, however often it is changed.
func TestContest_OfRightsIsShort(t *testing.T) {
	for _, kind := range []string{
		"Role.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io", "NetworkPolicy.networking.k8s.io", "ValidatingWebhookConfiguration.admissionregistration.k8s.io",
		"ValidatingAdmissionPolicy.admissionregistration.k8s.io", "Namespace", "Secret", "ServiceAccount", "ResourceQuota",
	} {
		longest := longestHold(schema.ParseGroupKind(kind))
		c, now, held := &contest{}, time.Unix(1000, 0), time.Duration(0)
		for range 2000 {
			if len(c.update(now, longest, []manifest.Path{{"spec"}}, true)) == 0 {
				held = 0
			} else if held += 50 * time.Millisecond; held > 2*time.Second {
				t.Fatalf("%s is held for more than 2 s", kind)
			}
			now = now.Add(50 * time.Millisecond)
		}
	}
	if longestHold(schema.GroupKind{Group: "apps", Kind: "Deployment"}) != lastHold {
		t.Error("a Deployment costs more writes")
	}
}

// A controller that sets a field twenty times a second costs a write a minute, and changes by hand are written over at once.
func TestContest(t *testing.T) {
	start := time.Unix(1000, 0)
	field, other := manifest.Path{"spec", "replicas"}, manifest.Path{"spec", "paused"}
	for name, tc := range map[string]struct {
		every  time.Duration
		during time.Duration
		writes int
	}{
		"by hand":         {30 * time.Second, 90 * time.Second, 3},
		"now and then":    {70 * time.Second, 20 * time.Minute, 18},
		"twenty a second": {50 * time.Millisecond, 10 * time.Minute, 5 + 5 + 9},
	} {
		t.Run(name, func(t *testing.T) {
			c, writes := &contest{}, 0
			for now := start; now.Before(start.Add(tc.during)); now = now.Add(tc.every) {
				if len(c.update(now, lastHold, []manifest.Path{field}, true)) == 0 {
					writes++
				}
			}
			if writes != tc.writes {
				t.Errorf("%d writes, want %d", writes, tc.writes)
			}
		})
	}
	c := &contest{}
	now := start
	for range freeWrites + 1 {
		c.update(now, lastHold, []manifest.Path{field}, true)
	}
	if held := c.update(now, lastHold, []manifest.Path{field, other}, true); !cmp.Equal(held, []manifest.Path{field}) {
		t.Errorf("held: %v; the other field is written", held)
	}
	if due, ok := c.due(now); !ok || due != firstHold {
		t.Errorf("due in %s", due)
	}
	if got := c.list(); len(got) != 1 || !cmp.Equal(got[0].Path, field) {
		t.Errorf("contested: %v", got)
	}
	if held := c.update(now, lastHold, []manifest.Path{field}, false); len(held) != 1 {
		t.Error("a new connection ends the hold")
	}
	if c.release(); len(c.update(now, lastHold, []manifest.Path{field}, false)) != 0 || len(c.list()) != 1 {
		t.Error("a change of the manifest does not end the hold, or is forgotten")
	}
	if held := c.update(now, lastHold, []manifest.Path{field}, true); len(held) != 1 {
		t.Error("the next write does not wait")
	}
	now = now.Add(firstHold)
	if due, _ := c.due(now); due != 0 || len(c.update(now, lastHold, []manifest.Path{field}, true)) != 0 {
		t.Errorf("it is not written when it is due, in %s", due)
	}
	c.update(now, lastHold, nil, true) // the member leaves it alone
	due, ok := c.due(now)
	if !ok || due <= 0 {
		t.Fatalf("it is looked at again in %s", due)
	}
	if c.update(now.Add(due), lastHold, nil, true); len(c.list()) != 0 {
		t.Error("it stays contested")
	}
	if _, ok := c.due(now.Add(due)); ok {
		t.Error("it is looked at for ever")
	}
}

func TestContest_HasAFewFields(t *testing.T) {
	c := &contest{}
	for i := range 1000 {
		c.update(time.Unix(0, 0), lastHold, []manifest.Path{{"spec", string(rune(i))}}, true)
	}
	if len(c.fields) != maxContested {
		t.Errorf("%d fields", len(c.fields))
	}
}

func TestManagerOf(t *testing.T) {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	entry := func(manager, fields, subresource string, at int64) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields), Time: &metav1.Time{Time: time.Unix(at, 0)}}
	}
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{
		entry("karmada", `{"f:spec": {"f:replicas": {}}}`, "", 1), entry("hpa", `{"f:spec": {"f:replicas": {}}}`, "", 3), entry("status", `{"f:spec": {"f:replicas": {}}}`, "status", 9),
		entry("late", `{"f:spec": {"f:paused": {}}}`, "", 9),
	})
	if got := managerOf(obj, manifest.Path{"spec", "replicas"}); got != "hpa" {
		t.Errorf("the manager is %q", got)
	}
	if got := managerOf(obj, manifest.Path{"spec", "absent"}); got != "" {
		t.Errorf("the manager of no field is %q", got)
	}
}
