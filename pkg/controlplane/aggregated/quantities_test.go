package aggregated

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestServer_QuantitiesThatTakeMinutes writes the resource summary of a cluster as a hostile agent may.
func TestServer_QuantitiesThatTakeMinutes(t *testing.T) {
	etcd, _ := startEtcd(t, t.TempDir())
	s := startServer(t, etcd, newControlPlane(t), nil)
	clusters := s.client(t, "admin").ClusterV1alpha1().Clusters()
	if _, err := clusters.Create(t.Context(), pushCluster("m1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const merge, apply = `{"status":{"resourceSummary":{"allocatable":{"cpu":VALUE}}}}`,
		"apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: m1}\nstatus: {resourceSummary: {allocatable: {cpu: VALUE}}}\n"
	for name, tc := range map[string]struct {
		kind        types.PatchType
		body, value string
	}{
		"text":                {types.MergePatchType, merge, `"1e-300000000"`},
		"number":              {types.MergePatchType, merge, `1e-300000000`},
		"escaped":             {types.MergePatchType, merge, `"1\u0065-300000000"`},
		"replaced in place":   {types.MergePatchType, `{"status":{"resourceSummary":{"allocatable":{"cpu":VALUE,"cpu":"1"}}}}`, `"1e-300000000"`},
		"with a space":        {types.MergePatchType, merge, `" 1e-300000000"`},
		"strategic merge":     {types.StrategicMergePatchType, merge, `"1e-300000000"`},
		"steps":               {types.JSONPatchType, `[{"op":"add","path":"/status/resourceSummary","value":{"allocatable":{"cpu":VALUE}}}]`, `1e-300000000`},
		"steps, twice":        {types.JSONPatchType, `[{"op":"add","path":"/status/resourceSummary","value":{"allocatable":{"cpu":VALUE,"cpu":"1"}}}]`, `1e-300000000`},
		"server-side apply":   {types.ApplyPatchType, apply, `"1e-300000000"`},
		"escaped in an apply": {types.ApplyPatchType, apply, `"1\x65-300000000"`},
	} {
		t.Run(name, func(t *testing.T) {
			patch := func(value string) error {
				body := []byte(strings.ReplaceAll(tc.body, "VALUE", value))
				options := metav1.PatchOptions{}
				if tc.kind == types.ApplyPatchType {
					options.FieldManager, options.Force = "test", new(true) // other cases write the field too
				}
				_, err := clusters.Patch(t.Context(), "m1", tc.kind, body, options, "status")
				return err
			}
			if err := patch(tc.value); !apierrors.IsBadRequest(err) {
				t.Errorf("got %v", err)
			}
			if err := patch(`"2e3"`); err != nil {
				t.Errorf("a quantity of the usual size: %v", err)
			}
		})
	}
	// The cases run in any order, and one of them has a second value.
	last := []byte(strings.ReplaceAll(merge, "VALUE", `"2e3"`))
	if _, err := clusters.Patch(t.Context(), "m1", types.MergePatchType, last, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	got, err := clusters.Get(t.Context(), "m1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if cpu := got.Status.ResourceSummary.Allocatable.Cpu().String(); cpu != "2e3" {
		t.Errorf("cpu is %s", cpu)
	}
	for body, ok := range map[string]bool{
		`[{"op":"add","path":"/metadata/labels","value":{"commit":"1e23456"}},{"op":"copy","from":"/metadata/labels/commit","path":"/metadata/labels/other"}]`: true,
		`[{"op":"copy","from":"/metadata/labels/commit","path":"/status/resourceSummary/allocatable/cpu"}]`:                                                    false,
		`[{"op":"add","path":"/status/resourceSummary/allocatable/cpu","value":"1e-300000000","Path":"/metadata/x"}]`:                                          false,
	} {
		_, err := clusters.Patch(t.Context(), "m1", types.JSONPatchType, []byte(body), metav1.PatchOptions{})
		if (err == nil) != ok || err != nil && !apierrors.IsBadRequest(err) {
			t.Errorf("%s: got %v", body, err)
		}
	}
	if _, err := clusters.Patch(t.Context(), "m1", types.MergePatchType, []byte(`{"metadata":{"labels":{"commit":"1e23457"}}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("a label like a number: %v", err)
	}
	raw := `{"apiVersion":"cluster.karmada.io/v1alpha1","kind":"Cluster","metadata":{"name":"m2"},"spec":{"syncMode":"Push","id":"m2","resourceModels":[{"grade":0,"ranges":[{"name":"cpu","min":"0","max":1e-300000000}]}]}}`
	err = s.client(t, "admin").ClusterV1alpha1().RESTClient().Post().Resource("clusters").Body([]byte(raw)).SetHeader("Content-Type", "application/json").Do(t.Context()).Error()
	if !apierrors.IsBadRequest(err) {
		t.Errorf("a creation: %v", err)
	}
	twice := types.PatchType("application/merge-patch+json; as=yaml")
	if _, err := clusters.Patch(t.Context(), "m1", twice, []byte(`{"status":{"resourceSummary":{"allocatable":{"cpu":1e-300000000,"cpu":"1"}}}}`), metav1.PatchOptions{}, "status"); !apierrors.IsBadRequest(err) {
		t.Errorf("a media type with a parameter: %v", err)
	}
}
