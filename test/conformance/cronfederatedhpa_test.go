package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/autoscaling"
)

// cronHPACase is one line of cronfederatedhpa.jsonl.
type cronHPACase struct {
	Name             string                               `json:"name"`
	Cron             autoscalingv1alpha1.CronFederatedHPA `json:"cronFederatedHPA"`
	FederatedHPA     *hpaBounds                           `json:"federatedHPA"`
	Replicas         *int32                               `json:"replicas"`
	ScaleUpdateError string                               `json:"scaleUpdateError"`
	Steps            []struct {
		Now    metav1.Time `json:"now"`
		Do     string      `json:"do"`
		Expect struct {
			ExecutionHistories []autoscalingv1alpha1.ExecutionHistory `json:"executionHistories"`
			FederatedHPA       *hpaBounds                             `json:"federatedHPA"`
			Replicas           *int32                                 `json:"replicas"`
			Events             []string                               `json:"events"`
			Error              string                                 `json:"error"`
		} `json:"expect"`
	} `json:"steps"`
	table *autoscaling.Timetable
}

type hpaBounds struct {
	MinReplicas *int32 `json:"minReplicas"`
	MaxReplicas int32  `json:"maxReplicas"`
}

func TestCronFederatedHPA(t *testing.T) {
	replayLines(t, "cronfederatedhpa", func(t *testing.T, line []byte) (string, error) {
		var c cronHPACase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		for i, s := range c.Steps {
			now := s.Now.UTC()
			var events []string
			var failure error
			if s.Do == "reconcile" {
				events, failure = c.reconcile(now)
			} else {
				events = c.execute(now)
			}
			errs := []error{differs(s.Expect.ExecutionHistories, c.Cron.Status.ExecutionHistories), differs(s.Expect.Events, events), differs(s.Expect.Error != "", failure != nil)}
			if s.Expect.FederatedHPA != nil {
				errs = append(errs, differs(s.Expect.FederatedHPA, c.FederatedHPA))
			}
			if s.Expect.Replicas != nil {
				errs = append(errs, differs(s.Expect.Replicas, c.Replicas))
			}
			if err := errors.Join(errs...); err != nil {
				return c.Name, fmt.Errorf("step %d: %w", i, err)
			}
		}
		return c.Name, nil
	})
}

func (c *cronHPACase) reconcile(now time.Time) ([]string, error) {
	if c.table == nil {
		c.table = autoscaling.NewTimetable(&c.Cron, now, 0)
	}
	var err error
	c.Cron.Status.ExecutionHistories, err = c.table.Sync(&c.Cron, c.Cron.Status.ExecutionHistories, now)
	if err != nil {
		return []string{"Warning StartRuleFailed " + err.Error()}, err
	}
	return nil, nil
}

// execute runs the rule that is due.
func (c *cronHPACase) execute(now time.Time) []string {
	var events []string
	for _, due := range c.table.Take(&c.Cron, now) {
		err := c.scale(&due.Rule)
		if err != nil {
			events = append(events, "Warning ScaleFailed "+err.Error())
		}
		autoscaling.Record(c.Cron.Status.ExecutionHistories, &due.Rule, due.Scheduled, now, c.table.Next(due.Rule.Name), err)
	}
	return events
}

func (c *cronHPACase) scale(rule *autoscalingv1alpha1.CronFederatedHPARule) error {
	target, err := autoscaling.CronTarget(&c.Cron)
	if err != nil {
		return err
	}
	name := c.Cron.Spec.ScaleTargetRef.Name
	changed := false
	hpa := &autoscalingv1alpha1.FederatedHPA{}
	switch {
	case target.Bounds && c.FederatedHPA == nil:
		return apierrors.NewNotFound(schema.GroupResource{Group: target.Group, Resource: "federatedhpas"}, name)
	case target.Bounds:
		hpa.Spec.MinReplicas, hpa.Spec.MaxReplicas = c.FederatedHPA.MinReplicas, c.FederatedHPA.MaxReplicas
		changed, err = autoscaling.Rebound(hpa, rule)
	case c.Replicas == nil:
		return apierrors.NewNotFound(schema.GroupResource{Group: target.Group, Resource: "deployments"}, name)
	default:
		changed = *c.Replicas != *rule.TargetReplicas
	}
	if err != nil || !changed {
		return err
	}
	switch {
	case target.Bounds:
		c.FederatedHPA = &hpaBounds{hpa.Spec.MinReplicas, hpa.Spec.MaxReplicas}
	case c.ScaleUpdateError != "":
		return errors.New(c.ScaleUpdateError)
	default:
		c.Replicas = rule.TargetReplicas
	}
	return nil
}
