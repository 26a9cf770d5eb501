package phases

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karmada-toolkit/karmada/internal/progress"
)

func TestPhases_ComeAfterThoseTheyNeed(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range All() {
		for _, need := range p.Needs {
			if !seen[need] {
				t.Errorf("%s needs %s, which does not come before it", p.Name, need)
			}
		}
		if seen[p.Name] || p.Doc == "" || p.ready == nil && p.host == nil && p.controlPlane == nil {
			t.Errorf("%s is there twice or incomplete", p.Name)
		}
		seen[p.Name] = true
	}
	for phase, needs := range map[string]string{
		CRDs: APIServer, AggregatedAPI: Aggregated, Etcd: Namespace, Namespace: Certificates, Certificates: Preflight,
	} {
		all := All()
		i := slices.IndexFunc(all, func(p Phase) bool { return p.Name == phase })
		if !slices.Contains(all[i].Needs, needs) {
			t.Errorf("%s does not need %s", phase, needs)
		}
	}
}

func TestNeeds_OfPhasesThatAreLeftOutArePassedOn(t *testing.T) {
	running := map[string]*progressOf{Certificates: nil, CRDs: nil}
	i := slices.IndexFunc(All(), func(p Phase) bool { return p.Name == CRDs })
	if diff := cmp.Diff([]string{Certificates}, needs(All()[i], running)); diff != "" {
		t.Error(diff)
	}
}

// recorder notes the order of phases.
type recorder struct {
	mu    sync.Mutex
	order []string
}

func (r *recorder) phase(name string, err error, needs ...string) Phase {
	return Phase{Name: name, Needs: needs, ready: func(context.Context, *State, Phase) (string, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.order = append(r.order, name)
		return "", err
	}}
}

func TestRunPhases_OrderAndFailure(t *testing.T) {
	var out bytes.Buffer
	now := func() time.Time { return time.Unix(0, 0) }
	s := &State{Outcome: &Outcome{}, Progress: progress.NewReminder(progress.NewPrinter(&out, now, progress.Timeline), now)}
	var r recorder
	err := Run(t.Context(), s, []Phase{
		r.phase(Certificates, nil, Preflight), r.phase(Preflight, nil), r.phase(Namespace, errors.New("no"), Certificates), r.phase(Etcd, nil, Namespace),
	})
	if err == nil || err.Error() != "namespace: no" {
		t.Errorf("got %v", err)
	}
	if got := strings.Join(r.order, " "); got != "preflight certs namespace" {
		t.Errorf("they ran in the order %s", got)
	}
	if want := "  ✓   0.0s  preflight: done (0.0s)\n  ✓   0.0s  certs: done (0.0s)\n  ✗   0.0s  namespace: failed (0.0s)\n"; out.String() != want {
		t.Errorf("the progress is %q, not %q", out.String(), want)
	}
}

func TestRun_KeepsGoing(t *testing.T) {
	now := func() time.Time { return time.Unix(0, 0) }
	s := &State{Outcome: &Outcome{}, Progress: progress.NewReminder(progress.Discard{}, now), KeepGoing: true, Parallel: 1}
	var r recorder
	err := Run(t.Context(), s, []Phase{
		r.phase(Preflight, errors.New("no")), r.phase(Certificates, nil, Preflight), r.phase(Namespace, nil, Certificates), r.phase(RBAC, errors.New("nor this")), r.phase(CRDs, nil, RBAC, Kubeconfig), r.phase(Check, nil),
	})
	if err == nil || err.Error() != "preflight: no\nrbac: nor this" {
		t.Errorf("got %v", err)
	}
	if got := strings.Join(r.order, " "); got != "preflight rbac check" {
		t.Errorf("they ran in the order %s", got)
	}
	if !s.Outcome.Done(Check) || s.Outcome.Done(Preflight) || s.Outcome.Done(Certificates) {
		t.Error("others are done")
	}
}
