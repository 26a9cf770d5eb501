package conformance

import (
	"encoding/json"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/descheduler"
	"github.com/karmada-toolkit/karmada/pkg/domain/deschedule"
)

// deschedulerCase is one line of descheduler.jsonl.
type deschedulerCase struct {
	Name          string                       `json:"name"`
	Binding       workv1alpha2.ResourceBinding `json:"binding"`
	Unschedulable map[string]any               `json:"unschedulable"`
	Expect        struct {
		Considered bool                         `json:"considered"`
		Updated    bool                         `json:"updated"`
		Clusters   []workv1alpha2.TargetCluster `json:"clusters"`
		Events     []string                     `json:"events"`
	} `json:"expect"`
}

func TestDescheduler(t *testing.T) {
	replayLines(t, "descheduler", func(t *testing.T, line []byte) (string, error) {
		var c deschedulerCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		considered := deschedule.Considered(&c.Binding)
		if err := differs(c.Expect.Considered, considered); err != nil || !considered {
			return c.Name, err
		}
		answers := map[string]deschedule.Answer{}
		for _, cluster := range deschedule.Undesired(&c.Binding) {
			n, ok := c.Unschedulable[cluster].(float64)
			answers[cluster] = deschedule.Answer{Replicas: int32(n)}
			if !ok {
				answers[cluster] = deschedule.Answer{Err: errors.New("no answer")}
			}
		}
		v := deschedule.Decide(&c.Binding, answers)
		clusters := c.Binding.Spec.Clusters
		if v.Clusters != nil {
			clusters = v.Clusters
		}
		var events []string
		if text := v.Message(); text != "" {
			events = append(events, corev1.EventTypeNormal+" "+descheduler.ReasonSucceed+" "+text)
		}
		return c.Name, errors.Join(differs(c.Expect.Updated, v.Clusters != nil), differs(c.Expect.Clusters, clusters), differs(c.Expect.Events, events))
	})
}
