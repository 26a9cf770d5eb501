package installer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/internal/progress"
)

func TestPhases_ComeAfterThoseTheyNeed(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Phases() {
		for _, need := range p.Needs {
			if !seen[need] {
				t.Errorf("%s needs %s, which does not come before it", p.Name, need)
			}
		}
		if seen[p.Name] || p.Doc == "" || p.run == nil {
			t.Errorf("%s is there twice or incomplete", p.Name)
		}
		seen[p.Name] = true
	}
	for phase, needs := range map[string]string{
		phaseCRDs: phaseAPIServer, phaseAggregatedAPI: phaseAggregated, phaseEtcd: phaseNamespace, phaseNamespace: phaseCertificates, phaseCertificates: phasePreflight,
	} {
		all := Phases()
		i := slices.IndexFunc(all, func(p Phase) bool { return p.Name == phase })
		if !slices.Contains(all[i].Needs, needs) {
			t.Errorf("%s does not need %s", phase, needs)
		}
	}
}

func TestNeeds_OfPhasesThatAreLeftOutArePassedOn(t *testing.T) {
	running := map[string]chan struct{}{phaseCertificates: nil, phaseCRDs: nil}
	i := slices.IndexFunc(Phases(), func(p Phase) bool { return p.Name == phaseCRDs })
	if diff := cmp.Diff([]string{phaseCertificates}, needs(Phases()[i], running)); diff != "" {
		t.Error(diff)
	}
}

func TestChosen(t *testing.T) {
	names := func(o Options) (out []string) {
		for _, p := range o.chosen() {
			out = append(out, p.Name)
		}
		return out
	}
	if diff := cmp.Diff([]string{"certs", "kubeconfig"}, names(Options{Only: []string{"kubeconfig", "certs"}})); diff != "" {
		t.Error(diff)
	}
	if got := names(Options{Skip: []string{"preflight"}}); len(got) != len(Phases())-1 || slices.Contains(got, "preflight") {
		t.Errorf("got %v", got)
	}
}

// recorder notes the order of phases.
type recorder struct {
	mu    sync.Mutex
	order []string
}

func (r *recorder) phase(name string, err error, needs ...string) Phase {
	return Phase{Name: name, Needs: needs, run: func(context.Context, *state) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.order = append(r.order, name)
		return err
	}}
}

func TestRunPhases_OrderAndFailure(t *testing.T) {
	s := &state{Deps: Deps{Progress: progress.Discard{}}}
	var r recorder
	err := s.runPhases(t.Context(), []Phase{
		r.phase(phaseCertificates, nil, phasePreflight), r.phase(phasePreflight, nil), r.phase(phaseNamespace, errors.New("no"), phaseCertificates), r.phase(phaseEtcd, nil, phaseNamespace),
	})
	if err == nil || err.Error() != "namespace: no" {
		t.Errorf("got %v", err)
	}
	if got := strings.Join(r.order, " "); got != "preflight certs namespace" {
		t.Errorf("they ran in the order %s", got)
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
