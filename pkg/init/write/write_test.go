package write

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmada-toolkit/karmada/internal/apply"
)

func TestSummary(t *testing.T) {
	for want, changes := range map[string]apply.ChangeSet{
		"unchanged":                          {{Action: apply.Unchanged}},
		"2 created":                          {{Action: apply.Created}, {Action: apply.Created}, {Action: apply.Unchanged}},
		"1 created, 1 configured, 1 deleted": {{Action: apply.Deleted}, {Action: apply.Created}, {Action: apply.Configured}},
	} {
		if got := Summary(changes); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTransient(t *testing.T) {
	busy := fmt.Errorf("applying x: %w", apierrors.NewServerTimeout(schema.GroupResource{Resource: "x"}, "get", 1))
	etcd := errors.New("applying y: etcdserver: request timed out")
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "y", errors.New("no"))
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"a busy server":  {busy, true},
		"etcd":           {etcd, true},
		"both":           {errors.Join(busy, etcd), true},
		"a refusal":      {refused, false},
		"also a refusal": {errors.Join(busy, refused), false},
	} {
		if got := transient(tc.err); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestMerge_KeepsWhatTheFirstAttemptDid(t *testing.T) {
	first := apply.ChangeSet{{Name: "a", Action: apply.Created}, {Name: "b"}, {Name: "c", Action: apply.Unchanged}}
	second := apply.ChangeSet{{Name: "a", Action: apply.Unchanged}, {Name: "b", Action: apply.Created}, {Name: "c", Action: apply.Unchanged}}
	want := apply.ChangeSet{{Name: "a", Action: apply.Created}, {Name: "b", Action: apply.Created}, {Name: "c", Action: apply.Unchanged}}
	if diff := cmp.Diff(want, merge(first, second)); diff != "" {
		t.Error(diff)
	}
}
