package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/operate/promote"
)

// promoteCase is one line of promote.jsonl.
type promoteCase struct {
	Name                 string                       `json:"name"`
	Tags                 []string                     `json:"tags"`
	Args                 []string                     `json:"args"`
	Object               *unstructured.Unstructured   `json:"object"`
	MemberObjects        []*unstructured.Unstructured `json:"memberObjects"`
	ControlPlaneObjects  []*unstructured.Unstructured `json:"controlPlaneObjects"`
	ControlPlanePolicies []struct{ Kind, Name, Namespace string }
	Expect               struct {
		Created       []map[string]any `json:"created"`
		Deleted       []string         `json:"deleted"`
		MemberUpdated []map[string]any `json:"memberUpdated"`
		Policies      []map[string]any `json:"policies"`
		Printed       []map[string]any `json:"printed"`
		Stdout        *string          `json:"stdout"`
		Error         string           `json:"error"`
	} `json:"expect"`
}

func TestPromote(t *testing.T) {
	replayLines(t, "promote", func(t *testing.T, line []byte) (string, error) {
		var c promoteCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(c.Args, "-o") {
			// Dependencies were created, and changed where they were, although output was requested. Nothing is written here
			// then: docs/differences.md declares it.
			c.Expect.Created, c.Expect.Deleted, c.Expect.MemberUpdated = nil, nil, nil
		}
		return c.Name, c.run(t)
	})
}

func (c *promoteCase) run(t *testing.T) error {
	t.Helper()
	request, printer := c.request()
	mapper, lists := kindsOf(append(append([]*unstructured.Unstructured{c.Object}, c.MemberObjects...), c.ControlPlaneObjects...))
	controlPlane, member := newRecorder(lists, c.ControlPlaneObjects), newRecorder(lists, c.MemberObjects)
	for _, p := range c.ControlPlanePolicies {
		policy := &unstructured.Unstructured{}
		policy.SetAPIVersion("policy.karmada.io/v1alpha1")
		policy.SetKind(p.Kind)
		policy.SetName(p.Name)
		policy.SetNamespace(p.Namespace)
		controlPlane.add(t, policy)
	}
	native := interpreter.New()
	var out bytes.Buffer
	err := promote.Run(t.Context(), promote.Deps{
		ControlPlane: controlPlane.client, Member: member.client, Mapper: mapper, Printer: printer, Out: &out, Warn: func(string, ...any) {},
		Interpreters: []promote.Interpreter{{Name: "default", Rules: func(gvk schema.GroupVersionKind) *interpreter.Rules {
			if !native.HookEnabled(gvk, configv1alpha1.InterpreterOperationInterpretDependency) {
				return nil
			}
			return &interpreter.Rules{Dependencies: native.GetDependencies}
		}}},
	}, request, c.Object)
	return c.compare(err, out.String(), controlPlane, member)
}

func (c *promoteCase) compare(err error, out string, controlPlane, member *recorder) error {
	if (err != nil) != (c.Expect.Error != "") {
		return fmt.Errorf("error is not %q: %w", c.Expect.Error, err)
	}
	if err != nil && err.Error() != c.Expect.Error {
		return fmt.Errorf("error is not %q: %w", c.Expect.Error, err)
	}
	var policies []map[string]any
	for _, p := range controlPlane.policies {
		policies = append(policies, map[string]any{"kind": p["kind"], "metadata": p["metadata"], "spec": p["spec"]})
	}
	diffs := []string{
		cmp.Diff(normal(c.Expect.Created), normal(controlPlane.created)),
		cmp.Diff(c.Expect.Deleted, controlPlane.deleted),
		cmp.Diff(normal(c.Expect.MemberUpdated), normal(member.updated)),
		cmp.Diff(normal(c.Expect.Policies), normal(policies)),
	}
	if c.Expect.Printed != nil {
		var printed []map[string]any
		for decoder := json.NewDecoder(strings.NewReader(out)); decoder.More(); {
			var one map[string]any
			if err := decoder.Decode(&one); err != nil {
				return err
			}
			printed = append(printed, one)
		}
		diffs = append(diffs, cmp.Diff(normal(c.Expect.Printed), normal(printed)))
	} else if c.Expect.Stdout != nil {
		diffs = append(diffs, cmp.Diff(*c.Expect.Stdout, out))
	}
	if all := strings.Join(diffs, ""); all != "" {
		return errors.New("-want +got " + all)
	}
	return nil
}

// request parses the arguments as the command does.
func (c *promoteCase) request() (promote.Request, printers.ResourcePrinter) {
	r := promote.Request{CreatePolicy: true}
	var printer printers.ResourcePrinter
	for i := 0; i < len(c.Args); i++ {
		name, value, _ := strings.Cut(c.Args[i], "=")
		switch name {
		case "-n":
			i++
			r.Namespace = c.Args[i]
		case "-C":
			i++
			r.Cluster = c.Args[i]
		case "-o":
			i++
			printer = &printers.JSONPrinter{}
		case "-d":
			r.Dependencies = true
		case "--dry-run":
			r.DryRun = true
		case "--policy-name":
			r.PolicyName = value
		case "--auto-create-policy":
			r.CreatePolicy = value != "false"
		}
	}
	return r, printer
}

// kindsOf returns a mapper that knows the kinds of the objects, of pods' references and of policies.
func kindsOf(objects []*unstructured.Unstructured) (meta.RESTMapper, map[schema.GroupVersionResource]string) {
	mapper := meta.NewDefaultRESTMapper(nil)
	lists := map[schema.GroupVersionResource]string{}
	add := func(gvk schema.GroupVersionKind, namespaced bool) {
		scope := meta.RESTScopeRoot
		if namespaced {
			scope = meta.RESTScopeNamespace
		}
		mapper.Add(gvk, scope)
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		lists[plural] = gvk.Kind + "List"
	}
	for _, kind := range []string{"ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim", "Service"} {
		add(schema.GroupVersionKind{Version: "v1", Kind: kind}, true)
	}
	add(schema.GroupVersionKind{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "PropagationPolicy"}, true)
	add(schema.GroupVersionKind{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "ClusterPropagationPolicy"}, false)
	for _, obj := range objects {
		add(obj.GroupVersionKind(), obj.GetNamespace() != "")
	}
	return mapper, lists
}

// recorder is a cluster that records what is written to it.
type recorder struct {
	client                     *fake.FakeDynamicClient
	created, updated, policies []map[string]any
	deleted                    []string
}

func newRecorder(lists map[schema.GroupVersionResource]string, objects []*unstructured.Unstructured) *recorder {
	var existing []runtime.Object
	for _, obj := range objects {
		existing = append(existing, obj.DeepCopy())
	}
	r := &recorder{client: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, existing...)}
	next := r.client.ReactionChain
	r.client.ReactionChain = nil
	r.client.AddReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		for _, reactor := range next {
			if !reactor.Handles(action) {
				continue
			}
			handled, obj, err := reactor.React(action)
			if handled && err == nil {
				r.record(action)
			}
			return handled, obj, err
		}
		return false, nil, nil
	})
	return r
}

func (r *recorder) record(action clienttesting.Action) {
	switch a := action.(type) {
	case clienttesting.CreateActionImpl:
		obj := plain(a.GetObject())
		if a.GetResource().Group == "policy.karmada.io" {
			r.policies = append(r.policies, obj)
			return
		}
		r.created = append(r.created, obj)
	case clienttesting.UpdateActionImpl:
		r.updated = append(r.updated, plain(a.GetObject()))
	case clienttesting.DeleteActionImpl:
		r.deleted = append(r.deleted, strings.TrimSuffix(fmt.Sprintf("%s %s/%s", a.GetResource().Resource, a.GetNamespace(), a.GetName()), "/"))
	}
}

func (r *recorder) add(t *testing.T, obj *unstructured.Unstructured) {
	t.Helper()
	if err := r.client.Tracker().Add(obj); err != nil {
		t.Fatal(err)
	}
}

// plain returns an object as JSON has it.
func plain(obj runtime.Object) map[string]any {
	data, err := json.Marshal(obj)
	if err != nil {
		panic(err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		panic(err)
	}
	return out
}

// normal leaves out what the cases leave out: versions, empty maps, and the value of deletion timestamps.
func normal(objects []map[string]any) []any {
	var out []any
	for _, obj := range objects {
		data, err := json.Marshal(obj)
		if err != nil {
			panic(err)
		}
		var copied map[string]any
		if err := json.Unmarshal(data, &copied); err != nil {
			panic(err)
		}
		if metadata, ok := copied["metadata"].(map[string]any); ok {
			delete(metadata, "resourceVersion")
			if _, ok := metadata["deletionTimestamp"]; ok {
				metadata["deletionTimestamp"] = "<set>"
			}
		}
		if status, ok := copied["status"].(map[string]any); ok && len(status) == 0 {
			delete(copied, "status")
		}
		out = append(out, copied)
	}
	return out
}
