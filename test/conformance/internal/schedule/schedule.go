// Package schedule runs recorded scheduling cases through the decision core.
package schedule

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

// Case is one line of schedule.jsonl.
type Case struct {
	Name     string                       `json:"name"`
	Tags     []string                     `json:"tags"`
	Clusters []*clusterv1alpha1.Cluster   `json:"clusters"`
	Binding  workv1alpha2.ResourceBinding `json:"binding"`
	Expect   Expect                       `json:"expect"`
}

// Expect is the expected result of a case.
type Expect struct {
	Clusters []workv1alpha2.TargetCluster `json:"clusters,omitempty"`
	Affinity string                       `json:"affinity,omitempty"`
	Error    core.Class                   `json:"error,omitempty"`
}

// Read reads cases, one JSON object after the other.
func Read(r io.Reader) ([]Case, error) {
	var out []Case
	for decoder := json.NewDecoder(r); ; {
		var c Case
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

// Profile returns the plugins of the scheduler at its defaults.
func Profile() (*core.Profile, error) {
	list, err := plugins.Registry(false).New([]string{"*"})
	if err != nil {
		return nil, err
	}
	return core.NewProfile(list...)
}

// Run runs the scheduler for a case and returns the result.
func Run(profile *core.Profile, c *Case) Expect {
	decision, err := Decide(profile, c)
	if err != nil {
		return Expect{Error: core.ClassOf(err)}
	}
	clusters := slices.SortedFunc(slices.Values(decision.Clusters), func(a, b workv1alpha2.TargetCluster) int {
		return cmp.Compare(a.Name, b.Name)
	})
	return Expect{Clusters: clusters, Affinity: decision.AffinityName}
}

// Decide runs the scheduler for a case.
func Decide(profile *core.Profile, c *Case) (core.Decision, error) {
	return core.Schedule(framework.SnapshotOf(c.Clusters, true), &core.Request{
		Binding: framework.Binding{
			Namespace: c.Binding.Namespace, Name: c.Binding.Name, Spec: &c.Binding.Spec, Status: &c.Binding.Status,
		},
		Profile: profile,
	})
}

// Diff returns the difference between a result and the expected one; empty if
// there is none.
func Diff(want, got Expect) string { return gocmp.Diff(want, got, cmpopts.EquateEmpty()) }
