package conformance

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
	plugins "github.com/karmada-toolkit/karmada/plugins/scheduler"
)

// scheduleCase is one line of schedule.jsonl.
type scheduleCase struct {
	Name     string                       `json:"name"`
	Tags     []string                     `json:"tags"`
	Clusters []*clusterv1alpha1.Cluster   `json:"clusters"`
	Binding  workv1alpha2.ResourceBinding `json:"binding"`
	Expect   scheduleExpect               `json:"expect"`
}

// scheduleExpect is the expected result of a case.
type scheduleExpect struct {
	Clusters []workv1alpha2.TargetCluster `json:"clusters,omitempty"`
	Affinity string                       `json:"affinity,omitempty"`
	Error    core.Class                   `json:"error,omitempty"`
}

// readSchedule reads cases, one JSON object after the other.
func readSchedule(r io.Reader) ([]scheduleCase, error) {
	var out []scheduleCase
	for decoder := json.NewDecoder(r); ; {
		var c scheduleCase
		err := decoder.Decode(&c)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading case %d: %w", len(out)+1, err)
		}
		out = append(out, c)
	}
}

// scheduleProfile returns the plugins of the scheduler at its defaults.
func scheduleProfile() (*core.Profile, error) {
	list, err := plugins.Registry(false).New([]string{"*"})
	if err != nil {
		return nil, err
	}
	return core.NewProfile(list...)
}

// runSchedule runs the scheduler for a case and returns the result.
func runSchedule(profile *core.Profile, c *scheduleCase) scheduleExpect {
	decision, err := decideSchedule(profile, c)
	if err != nil {
		return scheduleExpect{Error: core.ClassOf(err)}
	}
	clusters := slices.SortedFunc(slices.Values(decision.Clusters), func(a, b workv1alpha2.TargetCluster) int {
		return cmp.Compare(a.Name, b.Name)
	})
	return scheduleExpect{Clusters: clusters, Affinity: decision.AffinityName}
}

// decideSchedule runs the scheduler for a case.
func decideSchedule(profile *core.Profile, c *scheduleCase) (core.Decision, error) {
	return core.Schedule(framework.SnapshotOf(c.Clusters, true), &core.Request{
		Binding: framework.Binding{
			Namespace: c.Binding.Namespace, Name: c.Binding.Name, Spec: &c.Binding.Spec, Status: &c.Binding.Status,
		},
		Profile: profile,
	})
}

// diffSchedule returns the difference between a result and the expected one; empty if
// there is none.
func diffSchedule(want, got scheduleExpect) string {
	return gocmp.Diff(want, got, cmpopts.EquateEmpty())
}
