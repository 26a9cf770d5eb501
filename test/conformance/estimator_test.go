package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/estimate"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
)

// estimatorCase is one line of estimator.jsonl.
type estimatorCase struct {
	Name         string                 `json:"name"`
	Operation    string                 `json:"operation"`
	FeatureGates map[string]bool        `json:"featureGates"`
	Nodes        []corev1.Node          `json:"nodes"`
	Pods         []corev1.Pod           `json:"pods"`
	Quotas       []corev1.ResourceQuota `json:"resourceQuotas"`

	Requirements *workv1alpha2.ReplicaRequirements `json:"replicaRequirements"`
	Namespace    string                            `json:"namespace"`
	Components   []workv1alpha2.Component          `json:"components"`
	Assumed      []replicas.Workload               `json:"assumedWorkloads"`

	Now         metav1.Time         `json:"now"`
	Threshold   int64               `json:"thresholdSeconds"`
	Workload    appsv1.Deployment   `json:"workload"`
	ReplicaSets []appsv1.ReplicaSet `json:"replicaSets"`

	Expect struct {
		MaxReplicas           int32  `json:"maxReplicas"`
		MaxSets               int32  `json:"maxSets"`
		UnschedulableReplicas int32  `json:"unschedulableReplicas"`
		Error                 string `json:"error"`
	} `json:"expect"`
}

func TestEstimator(t *testing.T) {
	replayLines(t, "estimator", func(t *testing.T, line []byte) (string, error) {
		var c estimatorCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		var got, want int32
		var err error
		switch c.Operation {
		case "MaxAvailableReplicas":
			facts := c.facts()
			want = c.Expect.MaxReplicas
			got, err = facts.Replicas(t.Context(), c.Requirements, c.Assumed)
		case "MaxAvailableComponentSets":
			facts := c.facts()
			want = c.Expect.MaxSets
			got, err = facts.Sets(t.Context(), c.Namespace, c.Components, c.Assumed)
		case "GetUnschedulableReplicas":
			want = c.Expect.UnschedulableReplicas
			got, err = c.unschedulable()
		default:
			t.Fatalf("unknown operation %q", c.Operation)
		}
		switch {
		case (err != nil) != (c.Expect.Error != ""):
			return c.Name, fmt.Errorf("want the error %q, got %w", c.Expect.Error, err)
		case got != want:
			return c.Name, fmt.Errorf("got %d, want %d", got, want)
		}
		return c.Name, nil
	})
}

// facts returns the state of the recorded cluster.
func (c *estimatorCase) facts() estimate.Facts {
	var model estimate.Model
	for i := range c.Nodes {
		model.SetNode(estimate.NodeOf(&c.Nodes[i]))
	}
	for i := range c.Pods {
		if p, ok := estimate.PodOf(&c.Pods[i]); ok {
			model.ReplacePod(nil, &p)
		}
	}
	f := estimate.Facts{Nodes: model.Snapshot(), Quotas: func(namespace string) []estimate.Quota {
		var out []estimate.Quota
		for i := range c.Quotas {
			if namespace == "" || c.Quotas[i].Namespace == namespace {
				out = append(out, estimate.QuotaOf(&c.Quotas[i]))
			}
		}
		return out
	}}
	if !c.FeatureGates["ResourceQuotaEstimate"] {
		f.Quotas = nil
	}
	return f
}

func (c *estimatorCase) unschedulable() (int32, error) {
	if err := estimate.SupportsUnschedulable(c.Workload.Kind, c.Workload.Namespace, c.Workload.Name); err != nil {
		return 0, err
	}
	deployment, err := estimate.DeploymentOf(&c.Workload)
	if err != nil {
		return 0, err
	}
	var sets []estimate.ReplicaSet
	var errs []error
	for i := range c.ReplicaSets {
		rs, err := estimate.ReplicaSetOf(&c.ReplicaSets[i])
		sets, errs = append(sets, rs), append(errs, err)
	}
	var pods []estimate.WaitingPod
	for i := range c.Pods {
		if p, ok := estimate.WaitingPodOf(&c.Pods[i]); ok {
			pods = append(pods, p)
		}
	}
	slices.Reverse(sets) // their order does not matter
	return estimate.Unschedulable(&deployment, sets, pods, time.Duration(c.Threshold)*time.Second, c.Now.Time), errors.Join(errs...)
}
