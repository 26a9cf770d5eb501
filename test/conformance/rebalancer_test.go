package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/apps/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
)

// rebalancerCase is one line of rebalancer.jsonl.
type rebalancerCase struct {
	Name       string                          `json:"name"`
	Rebalancer appsv1alpha1.WorkloadRebalancer `json:"rebalancer"`
	Bindings   []workv1alpha2.ResourceBinding  `json:"bindings"`
	Steps      []rebalancerStep                `json:"steps"`
}

type rebalancerStep struct {
	Now           metav1.Time                    `json:"now"`
	UpdateFails   string                         `json:"updateFails"`
	NewWorkloads  []appsv1alpha1.ObjectReference `json:"newWorkloads"`
	NewGeneration int64                          `json:"newGeneration"`
	Expect        struct {
		Status                *appsv1alpha1.WorkloadRebalancerStatus `json:"status"`
		Deleted               bool                                   `json:"deleted"`
		RescheduleTriggeredAt map[string]*metav1.Time                `json:"rescheduleTriggeredAt"`
		RequeueAfterSeconds   float64                                `json:"requeueAfterSeconds"`
		Error                 string                                 `json:"error"`
	} `json:"expect"`
}

func TestRebalancer(t *testing.T) {
	replayLines(t, "rebalancer", func(t *testing.T, line []byte) (string, error) {
		var c rebalancerCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		for i := range c.Steps {
			if err := c.run(&c.Steps[i]); err != nil {
				return c.Name, fmt.Errorf("step %d: %w", i, err)
			}
		}
		return c.Name, nil
	})
}

// run makes a pass as the controller does, and compares what it leaves.
func (c *rebalancerCase) run(s *rebalancerStep) error {
	if s.NewGeneration > 0 {
		c.Rebalancer.Spec.Workloads, c.Rebalancer.Generation = s.NewWorkloads, s.NewGeneration
	}
	workloads := eviction.RebalancedWorkloads(&c.Rebalancer)
	for i := range workloads {
		if workloads[i].Result == "" {
			c.trigger(&workloads[i], s.UpdateFails)
		}
	}
	v := eviction.FinishRebalance(&c.Rebalancer, workloads, s.Now.Time)
	if v.Changed {
		c.Rebalancer.Status = v.Status
	}
	triggered := map[string]*metav1.Time{}
	for i := range c.Bindings {
		triggered[c.bindingKey(i)] = c.Bindings[i].Spec.RescheduleTriggeredAt
	}
	// The reference deletes, in the pass that changes the status, the version from before, which fails.
	conflict := v.Requeue && v.RequeueAfter == 0
	errs := []error{
		differs(s.Expect.Error != "", v.Retry > 0 || conflict), differs(s.Expect.Deleted, v.Delete),
		differs(s.Expect.RequeueAfterSeconds, v.RequeueAfter.Seconds()), differs(s.Expect.RescheduleTriggeredAt, triggered),
	}
	if s.Expect.Status != nil {
		errs = append(errs, differs(*s.Expect.Status, c.Rebalancer.Status))
	}
	return errors.Join(errs...)
}

func (c *rebalancerCase) bindingKey(i int) string {
	if b := &c.Bindings[i]; b.Namespace != "" {
		return b.Namespace + "/" + b.Name
	}
	return c.Bindings[i].Name
}

func (c *rebalancerCase) trigger(w *appsv1alpha1.ObservedWorkload, fails string) {
	namespace, name := eviction.RebalancedBinding(w.Workload)
	for i := range c.Bindings {
		b := &c.Bindings[i]
		if b.Namespace != namespace || b.Name != name {
			continue
		}
		if eviction.RebalanceDue(b.Spec.RescheduleTriggeredAt, c.Rebalancer.CreationTimestamp) {
			if name == fails {
				return
			}
			b.Spec.RescheduleTriggeredAt = c.Rebalancer.CreationTimestamp.DeepCopy()
		}
		w.Result, w.Reason = appsv1alpha1.RebalanceSuccessful, ""
		return
	}
	w.Result, w.Reason = appsv1alpha1.RebalanceFailed, appsv1alpha1.RebalanceObjectNotFound
}
