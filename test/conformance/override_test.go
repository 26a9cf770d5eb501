package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/override"
)

// overrideCase is one line of override.jsonl.
type overrideCase struct {
	Name                    string                                 `json:"name"`
	Cluster                 clusterv1alpha1.Cluster                `json:"cluster"`
	Object                  *unstructured.Unstructured             `json:"object"`
	ClusterOverridePolicies []policyv1alpha1.ClusterOverridePolicy `json:"clusterOverridePolicies"`
	OverridePolicies        []policyv1alpha1.OverridePolicy        `json:"overridePolicies"`
	Expect                  struct {
		Object                         map[string]any `json:"object"`
		AppliedClusterOverridePolicies []string       `json:"appliedClusterOverridePolicies"`
		AppliedOverridePolicies        []string       `json:"appliedOverridePolicies"`
		Error                          bool           `json:"error"`
	} `json:"expect"`
}

func TestOverride(t *testing.T) {
	replayLines(t, "override", func(t *testing.T, line []byte) (string, error) {
		var c overrideCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		return c.Name, runOverrideCase(&c)
	})
}

func runOverrideCase(c *overrideCase) error {
	var policies override.Policies
	for i := range c.OverridePolicies {
		policies = append(policies, &c.OverridePolicies[i])
	}
	for i := range c.ClusterOverridePolicies {
		policies = append(policies, &c.ClusterOverridePolicies[i])
	}
	before := c.Object.DeepCopy()
	got, applied, err := override.Apply(c.Object, &c.Cluster, policies)
	if diff := cmp.Diff(before.Object, c.Object.Object); diff != "" {
		return fmt.Errorf("the template changed: %s", diff)
	}
	if err != nil {
		if c.Expect.Error {
			return nil
		}
		return err
	}
	if c.Expect.Error {
		return errors.New("want an error")
	}
	data, err := json.Marshal(got)
	if err != nil {
		return err
	}
	var plain map[string]any
	if err := json.Unmarshal(data, &plain); err != nil {
		return err
	}
	if diff := cmp.Diff(c.Expect.Object, plain); diff != "" {
		return fmt.Errorf("-want +got %s", diff)
	}
	if diff := cmp.Diff(c.Expect.AppliedClusterOverridePolicies, appliedNames(applied.Cluster)); diff != "" {
		return fmt.Errorf("cluster policies: -want +got %s", diff)
	}
	if diff := cmp.Diff(c.Expect.AppliedOverridePolicies, appliedNames(applied.Namespaced)); diff != "" {
		return fmt.Errorf("policies: -want +got %s", diff)
	}
	return nil
}

func appliedNames(rules []override.AppliedRule) []string {
	var names []string
	for _, rule := range rules {
		names = append(names, rule.PolicyName)
	}
	return names
}
