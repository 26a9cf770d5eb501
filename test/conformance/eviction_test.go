package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
)

// evictionCase is one line of eviction.jsonl.
type evictionCase struct {
	Name         string          `json:"name"`
	Operation    string          `json:"operation"`
	Now          metav1.Time     `json:"now"`
	FeatureGates map[string]bool `json:"featureGates"`
	Binding      json.RawMessage `json:"binding"`
	Expect       evictionExpect  `json:"expect"`
	binding      workv1alpha2.Binding
	Flags        struct {
		Enabled   bool                     `json:"enableNoExecuteTaintEviction"`
		PurgeMode policyv1alpha1.PurgeMode `json:"noExecuteTaintEvictionPurgeMode"`
	} `json:"flags"`
	Cluster     *clusterv1alpha1.Cluster `json:"cluster"`
	ClusterName string                   `json:"clusterName"`

	UnhealthySince map[string]metav1.Time `json:"unhealthySince"`
	Steps          []struct {
		Now              metav1.Time                         `json:"now"`
		AggregatedStatus []workv1alpha2.AggregatedStatusItem `json:"aggregatedStatus"`
		Expect           evictionExpect                      `json:"expect"`
	} `json:"steps"`

	Spec          workv1alpha2.ResourceBindingSpec `json:"spec"`
	TargetCluster string                           `json:"targetCluster"`
	Object        *unstructured.Unstructured       `json:"object"`
}

type evictionExpect struct {
	Clusters              []workv1alpha2.TargetCluster        `json:"clusters"`
	GracefulEvictionTasks []workv1alpha2.GracefulEvictionTask `json:"gracefulEvictionTasks"`
	Ended                 []string                            `json:"ended"`
	RequeueAfterSeconds   float64                             `json:"requeueAfterSeconds"`
	Decision              string                              `json:"decision"`
	AfterSeconds          float64                             `json:"afterSeconds"`
	Error                 string                              `json:"error"`
	Unchanged             bool                                `json:"unchanged"`
	UnhealthySince        map[string]metav1.Time              `json:"unhealthySince"`
	Labels                map[string]string                   `json:"labels"`
}

func TestEviction(t *testing.T) {
	replayLines(t, "eviction", func(t *testing.T, line []byte) (string, error) {
		var c evictionCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		if len(c.Binding) > 0 {
			var meta metav1.TypeMeta
			if err := json.Unmarshal(c.Binding, &meta); err != nil {
				t.Fatal(err)
			}
			c.binding = &workv1alpha2.ResourceBinding{}
			if meta.Kind == "ClusterResourceBinding" {
				c.binding = &workv1alpha2.ClusterResourceBinding{}
			}
			if err := json.Unmarshal(c.Binding, c.binding); err != nil {
				t.Fatal(err)
			}
			c.dropRefusedPaths()
		}
		switch c.Operation {
		case "gracefulEviction":
			return c.Name, c.graceful()
		case "taintManager":
			return c.Name, c.taint()
		case "applicationFailover":
			return c.Name, c.application()
		case "injectState":
			got, _ := eviction.Inject(&c.Spec, c.TargetCluster, c.Object.GetLabels())
			return c.Name, differs(c.Expect.Labels, got)
		}
		return c.Name, fmt.Errorf("unknown operation %q", c.Operation)
	})
}

// dropRefusedPaths takes a declared difference out of a case: JSONPaths of preserved state that the reference evaluates and
// ours refuses, such as those with wildcards, become plain text. Cases that expect an error keep them.
func (c *evictionCase) dropRefusedPaths() {
	spec := c.binding.GetSpec()
	expected := []*evictionExpect{&c.Expect}
	for i := range c.Steps {
		expected = append(expected, &c.Steps[i].Expect)
	}
	if spec.Failover == nil || slices.ContainsFunc(expected, func(e *evictionExpect) bool { return e.Error != "" }) {
		return
	}
	stored := map[string]bool{}
	for i := range spec.GracefulEvictionTasks {
		stored[spec.GracefulEvictionTasks[i].FromCluster] = true
	}
	drop := func(rules *policyv1alpha1.StatePreservation) {
		if rules == nil {
			return
		}
		for i := range rules.Rules {
			rule := &rules.Rules[i]
			if validation.CheckStatePath(rule.JSONPath) == nil || jsonpath.New("").Parse(rule.JSONPath) != nil {
				continue
			}
			rule.JSONPath = "refused" // plain text, which is its own result
			for _, e := range expected {
				for j := range e.GracefulEvictionTasks {
					if task := &e.GracefulEvictionTasks[j]; !stored[task.FromCluster] && task.PreservedLabelState[rule.AliasLabelName] != "" {
						task.PreservedLabelState[rule.AliasLabelName] = rule.JSONPath
					}
				}
			}
		}
	}
	if app := spec.Failover.Application; app != nil {
		drop(app.StatePreservation)
	}
	if cluster := spec.Failover.Cluster; cluster != nil {
		drop(cluster.StatePreservation)
	}
}

// differs compares a recorded value with ours.
func differs(want, got any) error {
	times := cmp.Comparer(func(a, b metav1.Time) bool { return a.Equal(&b) })
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), times); diff != "" {
		return errors.New("-want +got " + diff)
	}
	return nil
}

func (c *evictionCase) graceful() error {
	v := eviction.Graceful(eviction.GracefulFacts{
		Now: c.Now.Time, Timeout: 10 * time.Minute, Terminating: c.binding.GetDeletionTimestamp() != nil, Generation: c.binding.GetGeneration(), Spec: c.binding.GetSpec(), Status: c.binding.GetStatus(),
	})
	return errors.Join(differs(c.Expect.GracefulEvictionTasks, v.Keep), differs(c.Expect.Ended, v.Ended), differs(c.Expect.RequeueAfterSeconds, v.RequeueAfter.Seconds()))
}

func (c *evictionCase) taint() error {
	v, err := eviction.Taint(eviction.TaintFacts{
		Now: c.Now.Time, ClusterName: c.ClusterName, Cluster: c.Cluster, Binding: c.binding, Enabled: c.Flags.Enabled,
		PurgeMode: c.Flags.PurgeMode, PreserveState: c.FeatureGates["StatefulFailoverInjection"],
	})
	decision := "stay"
	switch {
	case err != nil:
		decision = "error"
	case v.Evict:
		decision = "evict"
	case v.After > 0:
		decision = "later"
	}
	if decision != c.Expect.Decision {
		return fmt.Errorf("decision is %s, want %s: %w", decision, c.Expect.Decision, errors.Join(err, errors.New(c.Expect.Error)))
	}
	if v.Evict {
		err = errors.Join(differs(c.Expect.Clusters, v.Spec.Clusters), differs(c.Expect.GracefulEvictionTasks, v.Spec.GracefulEvictionTasks))
	} else {
		err = nil
	}
	return errors.Join(err, differs(c.Expect.AfterSeconds, v.After.Seconds()))
}

func (c *evictionCase) application() error {
	gate := func(name string, byDefault bool) bool {
		if on, ok := c.FeatureGates[name]; ok {
			return on
		}
		return byDefault
	}
	_, namespaced := c.binding.(*workv1alpha2.ResourceBinding)
	f := eviction.ApplicationFacts{
		Binding: c.binding, Producer: eviction.ProducerClusterResourceBindingFailover, NeedsDependencies: namespaced,
		HasHealth:        slices.Contains([]string{"Deployment", "ClusterThing"}, c.binding.GetSpec().Resource.Kind),
		GracefulEviction: gate("GracefulEviction", true), PreserveState: gate("StatefulFailoverInjection", false),
		UnhealthySince: map[string]time.Time{},
	}
	if namespaced {
		f.Producer = eviction.ProducerResourceBindingFailover
	}
	for cluster, since := range c.UnhealthySince {
		f.UnhealthySince[cluster] = since.Time
	}
	for i, step := range c.Steps {
		f.Now = step.Now.Time
		c.binding.GetStatus().AggregatedStatus = step.AggregatedStatus
		v, err := eviction.Application(f)
		if (err != nil) != (step.Expect.Error != "") {
			return fmt.Errorf("step %d: error is %w, want %q", i, err, step.Expect.Error)
		}
		since := map[string]metav1.Time{}
		for cluster, at := range v.UnhealthySince {
			since[cluster] = metav1.NewTime(at)
		}
		errs := []error{differs(step.Expect.RequeueAfterSeconds, v.RequeueAfter.Seconds()), differs(step.Expect.UnhealthySince, since)}
		if step.Expect.Unchanged != (v.Spec == nil) {
			errs = append(errs, fmt.Errorf("unchanged is %t, want %t", v.Spec == nil, step.Expect.Unchanged))
		}
		if v.Spec != nil {
			errs = append(errs, differs(step.Expect.Clusters, v.Spec.Clusters), differs(step.Expect.GracefulEvictionTasks, v.Spec.GracefulEvictionTasks))
			*c.binding.GetSpec() = *v.Spec
		}
		if err := errors.Join(errs...); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		f.UnhealthySince = v.UnhealthySince
	}
	return nil
}
