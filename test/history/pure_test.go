// Package history tests what must hold after any sequence of faults and changes, with seeded random histories: of the
// pure decisions alone, and of the real controllers on an API server.
package history

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

const (
	// pureSteps is the number of steps of all histories of pure decisions together, for each kind of binding.
	pureSteps = 10_000
	// length is the number of steps of one history.
	length = 500
	// rounds limits the decisions until nothing changes any more.
	rounds = 60
)

// factor returns by how much more the histories are to be run than usual: FAULTS, default 1.
func factor(t testing.TB) int {
	t.Helper()
	text := os.Getenv("FAULTS")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("FAULTS is %q, want a positive number", text)
	}
	return n
}

// seeds returns the seeds of the histories: SEED alone if it is set.
func seeds(t testing.TB, n int) []uint64 {
	t.Helper()
	if text := os.Getenv("SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("SEED is %q, want a number", text)
		}
		return []uint64{seed}
	}
	out := make([]uint64, n)
	for i := range out {
		out[i] = uint64(i)
	}
	return out
}

// TestPure_Histories checks the invariants after every step of random histories of the pure decisions.
func TestPure_Histories(t *testing.T) {
	for _, s := range scope.Bindings() {
		for _, seed := range seeds(t, factor(t)*pureSteps/length) {
			t.Run(fmt.Sprintf("%s/%d", s.Kind, seed), func(t *testing.T) {
				t.Parallel()
				m := newModel(t, s, seed)
				for range length / 25 {
					for range 25 {
						if m.one(4) {
							m.note(m.event())
						} else {
							m.run(pick(m.dice, m.steps()))
						}
					}
					m.converge()
					m.checkStable()
				}
				m.checkTasksEnd()
			})
		}
	}
}

func (m *model) note(text string) { m.log = append(m.log, text) }

// failed ends the test with the history.
func (m *model) failed(format string, args ...any) {
	m.Helper()
	last := m.log[max(0, len(m.log)-60):]
	m.Fatalf("%s\nafter\n  %s", fmt.Sprintf(format, args...), strings.Join(last, "\n  "))
}

// run makes one decision and checks what must hold after each.
func (m *model) run(s step) bool {
	if s.app == nil {
		wrote := s.do()
		if wrote {
			m.note(s.name)
		}
		return wrote
	}
	before := m.kept(s.app)
	tasks := slices.Clone(s.app.GetSpec().GracefulEvictionTasks)
	changed := s.app.changed
	wrote := s.do()
	if wrote {
		m.note(fmt.Sprintf("%s: %s -> %s", s.app.GetName(), s.name, describe(s.app)))
	}
	after := m.kept(s.app)
	for cluster := range before {
		if !after[cluster] && !m.mayLeave(s.app, cluster, tasks, changed) {
			m.failed("%s removes %s from %s without a reason", s.name, s.app.GetName(), cluster)
		}
	}
	for _, task := range s.app.GetSpec().GracefulEvictionTasks {
		if target(s.app, task.FromCluster) != nil {
			m.failed("%s: %s is a target and has a task", s.name, task.FromCluster)
		}
		if after[task.FromCluster] != (task.PurgeMode != policyv1alpha1.PurgeModeDirectly) {
			m.failed("%s: the object in %s is kept: %t, with purge mode %s", s.name, task.FromCluster, after[task.FromCluster], task.PurgeMode)
		}
	}
	m.checkReplaced(s.app, tasks)
	return wrote
}

// checkReplaced checks that a task that ended before its time left no gap: the workload has its replicas in its targets.
// What a member that is offline has is unknown.
func (m *model) checkReplaced(a *app, before []workv1alpha2.GracefulEvictionTask) {
	m.Helper()
	for _, task := range before {
		ended := !slices.ContainsFunc(a.GetSpec().GracefulEvictionTasks, func(t workv1alpha2.GracefulEvictionTask) bool { return t.FromCluster == task.FromCluster })
		limit := timeout
		if task.GracePeriodSeconds != nil {
			limit = time.Duration(*task.GracePeriodSeconds) * time.Second
		}
		if !ended || task.SuppressDeletion != nil || task.CreationTimestamp == nil || m.now.After(task.CreationTimestamp.Add(limit)) {
			continue
		}
		var sum int32
		for _, c := range a.GetSpec().Clusters {
			sum += c.Replicas
		}
		strategy := a.GetSpec().Placement.ReplicaScheduling.ReplicaSchedulingType
		if want := a.GetSpec().Replicas; strategy == policyv1alpha1.ReplicaSchedulingTypeDivided && want > 0 && sum != want {
			m.failed("the task of %s in %s ends while %d of %d replicas are scheduled", a.GetName(), task.FromCluster, sum, want)
		}
		for _, c := range a.GetSpec().Clusters {
			if !m.offline[c.Name] && a.objects[c.Name] < c.Replicas {
				m.failed("the task of %s in %s ends while %s has %d of %d replicas", a.GetName(), task.FromCluster, c.Name, a.objects[c.Name], c.Replicas)
			}
		}
	}
}

// mayLeave reports whether an object may be deleted in a cluster: there is or was a task, or the policy, the
// template or the membership changed. A task also moves the rest of a workload to another affinity term, or divides it
// anew by static weights.
func (m *model) mayLeave(a *app, cluster string, before []workv1alpha2.GracefulEvictionTask, changed bool) bool {
	from := func(t workv1alpha2.GracefulEvictionTask) bool { return t.FromCluster == cluster }
	tasks, placement := a.GetSpec().GracefulEvictionTasks, a.GetSpec().Placement
	static := placement.ReplicaScheduling.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceWeighted &&
		placement.ReplicaScheduling.WeightPreference == nil
	return changed || slices.ContainsFunc(before, from) || slices.ContainsFunc(tasks, from) ||
		len(before) > 0 && (static || len(placement.ClusterAffinities) > 0)
}

func describe(a *app) string {
	var tasks []string
	for _, t := range a.GetSpec().GracefulEvictionTasks {
		tasks = append(tasks, fmt.Sprintf("%s(%s)", t.FromCluster, t.PurgeMode))
	}
	return fmt.Sprintf("%d in %s, tasks %v, scheduled %t", a.GetSpec().Replicas, sorted(a.GetSpec().Clusters), tasks,
		meta.IsStatusConditionTrue(a.GetStatus().Conditions, workv1alpha2.Scheduled))
}

// converge makes all decisions until none writes anything.
func (m *model) converge() {
	m.Helper()
	m.note("converge")
	for range rounds {
		wrote := false
		for _, s := range m.steps() {
			wrote = m.run(s) || wrote
		}
		if !wrote {
			return
		}
	}
	m.failed("the controllers do not come to rest")
}

// checkStable checks what must hold when all controllers have nothing to do, and that a restart writes nothing.
func (m *model) checkStable() {
	m.Helper()
	for _, a := range m.apps {
		m.checkReplicas(a)
		a.unhealthySince = nil
	}
	for _, s := range m.steps() {
		if s.do() {
			m.failed("a restart lets %s write", s.name)
		}
	}
}

// checkReplicas checks the targets of a workload that is scheduled, and its objects once no task is open.
func (m *model) checkReplicas(a *app) {
	m.Helper()
	spec := a.GetSpec()
	if !meta.IsStatusConditionTrue(a.GetStatus().Conditions, workv1alpha2.Scheduled) ||
		spec.Placement.ReplicaScheduling.ReplicaSchedulingType != policyv1alpha1.ReplicaSchedulingTypeDivided {
		return
	}
	var targets, objects int32
	offline := false
	for _, c := range spec.Clusters {
		targets += c.Replicas
		offline = offline || m.offline[c.Name]
	}
	for cluster, n := range a.objects {
		objects += n
		offline = offline || m.offline[cluster]
	}
	if spec.Replicas > 0 && targets != spec.Replicas {
		m.failed("%s has %d replicas in its targets", describe(a), targets)
	}
	if len(spec.GracefulEvictionTasks) == 0 && !offline && objects != targets {
		m.failed("%s: members have %v", describe(a), a.objects)
	}
}

// checkTasksEnd checks that time ends all tasks but those that a user must release.
func (m *model) checkTasksEnd() {
	m.Helper()
	before := m.now
	m.converge()
	m.now = m.now.Add(timeout + 1)
	m.note("all tasks are over")
	for _, a := range m.apps {
		for range 2 {
			m.graceful(a)
		}
		for _, task := range a.GetSpec().GracefulEvictionTasks {
			if ptr.Deref(task.SuppressDeletion, false) || task.CreationTimestamp.After(before) {
				continue
			}
			m.failed("the task of %s in %s does not end", a.GetName(), task.FromCluster)
		}
	}
}
