package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
)

// interpreterCase is one line of interpreter.jsonl.
type interpreterCase struct {
	Name          string                              `json:"name"`
	Operation     string                              `json:"operation"`
	DesiredObj    *unstructured.Unstructured          `json:"desiredObj"`
	ObservedObj   *unstructured.Unstructured          `json:"observedObj"`
	StatusItems   []workv1alpha2.AggregatedStatusItem `json:"statusItems"`
	InputReplicas int64                               `json:"inputReplicas"`
	Output        map[string]any                      `json:"output"`
}

func (c *interpreterCase) object() *unstructured.Unstructured {
	if c.DesiredObj != nil {
		return c.DesiredObj
	}
	return c.ObservedObj
}

func TestInterpreter(t *testing.T) {
	in := interpreter.New()
	replayLines(t, "interpreter", func(t *testing.T, line []byte) (string, error) {
		var c interpreterCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		return c.Name, runInterpreterCase(in, &c)
	})
}

func runInterpreterCase(in *interpreter.Interpreter, c *interpreterCase) error {
	desired, observed := c.DesiredObj.DeepCopy(), c.ObservedObj.DeepCopy()
	got, err := interpretCase(in, c)
	if err != nil {
		if c.Output["error"] == true {
			return nil
		}
		return err
	}
	if diff := cmp.Diff(desired, c.DesiredObj); diff != "" {
		return fmt.Errorf("the desired object changed: %s", diff)
	}
	if diff := cmp.Diff(observed, c.ObservedObj); diff != "" {
		return fmt.Errorf("the observed object changed: %s", diff)
	}
	data, err := json.Marshal(got)
	if err != nil {
		return err
	}
	var plain map[string]any
	if err := json.Unmarshal(data, &plain); err != nil {
		return err
	}
	if c.unreportedClaim() {
		removePhase(c.Output)
		removePhase(plain)
	}
	if diff := cmp.Diff(c.Output, plain); diff != "" {
		return fmt.Errorf("-want +got %s", diff)
	}
	return nil
}

// unreportedClaim reports whether the phase of a claim is compared without: it is Pending while a cluster has not reported its
// own, a difference that docs/differences.md declares.
func (c *interpreterCase) unreportedClaim() bool {
	return c.Operation == "AggregateStatus" && c.object().GetKind() == "PersistentVolumeClaim" && c.object().GetAPIVersion() == "v1" &&
		(len(c.StatusItems) == 0 || slices.ContainsFunc(c.StatusItems, func(i workv1alpha2.AggregatedStatusItem) bool { return i.Status == nil }))
}

func removePhase(output map[string]any) {
	if status, ok := output["aggregatedStatus"].(map[string]any); ok {
		delete(status, "phase")
	}
}

// interpretCase runs the operation of a case and names its results.
func interpretCase(in *interpreter.Interpreter, c *interpreterCase) (map[string]any, error) {
	switch c.Operation {
	case "InterpretReplica":
		replicas, requirements, err := in.GetReplicas(c.object())
		return map[string]any{"replica": replicas, "requires": requirements}, err
	case "InterpretComponent":
		components, err := in.GetComponents(c.object())
		return map[string]any{"components": components}, err
	case "ReviseReplica":
		revised, err := in.ReviseReplica(c.object(), c.InputReplicas)
		return map[string]any{"revised": revised}, err
	case "Retain":
		retained, err := in.Retain(c.DesiredObj, c.ObservedObj)
		return map[string]any{"retained": retained}, err
	case "AggregateStatus":
		aggregated, err := in.AggregateStatus(c.object(), c.StatusItems)
		if err != nil {
			return nil, err
		}
		return map[string]any{"aggregatedStatus": aggregated.Object["status"]}, nil
	case "InterpretDependency":
		dependencies, err := in.GetDependencies(c.object())
		return map[string]any{"dependencies": dependencies}, err
	case "InterpretStatus":
		status, err := in.ReflectStatus(c.object())
		if status == nil {
			return map[string]any{}, err
		}
		return map[string]any{"status": status}, err
	case "InterpretHealth":
		healthy, err := in.InterpretHealth(c.object())
		return map[string]any{"healthy": healthy}, err
	}
	return nil, fmt.Errorf("unknown operation %q", c.Operation)
}
