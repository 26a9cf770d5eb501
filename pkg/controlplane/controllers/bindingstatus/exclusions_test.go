package bindingstatus

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// adding sums readyReplicas; other types than numbers are an error.
type adding struct{ env.Interpreter }

func (adding) HookEnabled(schema.GroupVersionKind, configv1alpha1.InterpreterOperation) bool {
	return true
}

func (adding) AggregateStatus(obj *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	sum := int64(0)
	for _, item := range items {
		var status struct{ ReadyReplicas int64 }
		if item.Status == nil {
			continue
		}
		if err := json.Unmarshal(item.Status.Raw, &status); err != nil {
			return nil, err
		}
		sum += status.ReadyReplicas
	}
	obj.Object["status"] = map[string]any{"readyReplicas": sum}
	return obj, nil
}

func itemsOf(statuses map[string]string) []workv1alpha2.AggregatedStatusItem {
	var out []workv1alpha2.AggregatedStatusItem
	for _, cluster := range slices.Sorted(maps.Keys(statuses)) {
		item := workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: true}
		if statuses[cluster] != "" {
			item.Status = raw(statuses[cluster])
		}
		out = append(out, item)
	}
	return out
}

func TestAggregation_ExcludesStatusesThatFail(t *testing.T) {
	for name, tc := range map[string]struct {
		statuses map[string]string
		want     int64
		left     []string
		fails    bool
	}{
		"all can be added":                     {map[string]string{"m1": `{"readyReplicas":1}`, "m2": `{"readyReplicas":2}`}, 3, nil, false},
		"a status of another type":             {map[string]string{"m1": `{"readyReplicas":"many"}`, "m2": `{"readyReplicas":2}`}, 2, []string{"m1"}, false},
		"a number that the API server rejects": {map[string]string{"m1": `{"readyReplicas":-5}`, "m2": `{"readyReplicas":2}`, "m3": ""}, 2, []string{"m1"}, false},
		"a sum that overflows":                 {map[string]string{"m1": `{"readyReplicas":2147483647}`, "m2": `{"readyReplicas":2}`}, 2, []string{"m1"}, false},
		"two of them, in different ways":       {map[string]string{"m1": `{"readyReplicas":[]}`, "m2": `{"readyReplicas":2}`, "m3": `{"readyReplicas":-9}`}, 2, []string{"m1", "m3"}, false},
		"every one, for the API server":        {map[string]string{"m1": `{"readyReplicas":-5}`, "m2": `{"readyReplicas":-6}`}, 0, nil, true},
		"every one":                            {map[string]string{"m1": `{"readyReplicas":"x"}`, "m2": `{"readyReplicas":"y"}`}, 0, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			template := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "default", "name": "a", "uid": "template"},
			}}
			m := memory.New(t, template)
			m.Clock.SetTime(time.Unix(1000, 0))
			c := interceptor.NewClient(m.Client, interceptor.Funcs{
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
					data, err := patch.Data(obj)
					if err != nil {
						return err
					}
					var sent struct{ Status struct{ ReadyReplicas int64 } }
					if err := json.Unmarshal(data, &sent); err != nil {
						return err
					}
					if n := sent.Status.ReadyReplicas; n < 0 || n > math.MaxInt32 {
						return apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "a", nil)
					}
					if len((&client.SubResourcePatchOptions{}).ApplyOptions(opts).DryRun) > 0 {
						return nil
					}
					return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
				},
			})
			binding := scope.NamespacedBinding().New()
			r := newReconciler(&env.Env{Client: c, Live: c, Interpreter: adding{}, Clock: m.Clock}, scope.NamespacedBinding(), m.Recorder, Options{})
			s := &templateState{}
			aggregate := func(template *unstructured.Unstructured) error {
				run := aggregation{aggregator: r.templates, binding: binding, template: template, cached: template, state: s}
				_, err := run.write(t.Context(), itemsOf(tc.statuses))
				return err
			}
			err := aggregate(template.DeepCopy())
			if (err != nil) != tc.fails {
				t.Fatal(err)
			}
			if tc.fails {
				return
			}
			stored := template.DeepCopy()
			m.Refresh(stored)
			if got, _, _ := unstructured.NestedInt64(stored.Object, "status", "readyReplicas"); got != tc.want {
				t.Errorf("ready replicas %d, want %d", got, tc.want)
			}
			if got := slices.Sorted(maps.Keys(s.excluded)); !slices.Equal(got, tc.left) {
				t.Errorf("left out %v, want %v", got, tc.left)
			}
			events := m.Events()
			if len(events) != 2*len(tc.left) {
				t.Errorf("%d events", len(events))
			}
			for _, text := range events {
				if !strings.Contains(text, "Warning AggregateStatusFailed The status in cluster ") {
					t.Error(text)
				}
			}
			// The second time they are known.
			m.Stable(func() { m.Must(aggregate(stored)) })
		})
	}
}

func TestExclude_StopsWhenProceedFails(t *testing.T) {
	enough := errors.New("enough")
	_, _, err := exclude(itemsOf(map[string]string{"m1": "{}"}), func([]workv1alpha2.AggregatedStatusItem) error { return nil }, func() error { return enough })
	if !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}

func TestLargest(t *testing.T) {
	for in, want := range map[string]float64{
		`{}`: 0, `{"a":1,"b":[-7,{"c":3.5}]}`: 7, `{"a":"9"}`: 0, `{"a":1e999}`: math.Inf(1), `{"a":`: math.Inf(1), ` {"a":2} `: 2,
	} {
		if got := largest([]byte(in)); got != want {
			t.Errorf("%s: got %v, want %v", in, got, want)
		}
	}
}
