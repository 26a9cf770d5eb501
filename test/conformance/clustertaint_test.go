package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	remedyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/remedy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
)

// clusterTaintCase is one line of clustertaint.jsonl.
type clusterTaintCase struct {
	Name      string                               `json:"name"`
	Operation string                               `json:"operation"`
	Now       metav1.Time                          `json:"now"`
	Cluster   clusterv1alpha1.Cluster              `json:"cluster"`
	Policies  []*policyv1alpha1.ClusterTaintPolicy `json:"policies"`
	Remedies  []*remedyv1alpha1.Remedy             `json:"remedies"`
	Expect    struct {
		Taints        []corev1.Taint `json:"taints"`
		Events        []string       `json:"events"`
		RemedyActions []string       `json:"remedyActions"`
	} `json:"expect"`
}

func TestClusterTaint(t *testing.T) {
	replayLines(t, "clustertaint", func(t *testing.T, line []byte) (string, error) {
		var c clusterTaintCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		if c.Operation == "remedy" {
			return c.Name, differs(c.Expect.RemedyActions, clustercondition.RemedyActions(&c.Cluster, c.Remedies))
		}
		taints, changed := clustercondition.Taints(&c.Cluster, c.Policies, c.Now.Time)
		var events []string
		if changed {
			events = append(events, fmt.Sprintf("Normal TaintClusterSucceed Update Cluster(%s) with taints(%s) succeed", c.Cluster.Name, clustercondition.Describe(taints)))
		}
		return c.Name, errors.Join(differs(c.Expect.Taints, taints), differs(c.Expect.Events, events))
	})
}
