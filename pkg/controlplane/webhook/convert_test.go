package webhook

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func convert(t *testing.T, version, object string) *apiextensionsv1.ConversionResponse {
	t.Helper()
	handlers, err := Handlers(deps())
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "ConversionReview"},
		Request:  &apiextensionsv1.ConversionRequest{UID: "u", DesiredAPIVersion: version, Objects: []runtime.RawExtension{{Raw: toJSON(t, object)}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var review apiextensionsv1.ConversionReview
	if err := json.Unmarshal(post(t, handlers["/convert"], "/convert", "application/json", body).Body.Bytes(), &review); err != nil {
		t.Fatal(err)
	}
	return review.Response
}

func TestConvert(t *testing.T) {
	const meta = `metadata: {name: a, namespace: ns, uid: u, resourceVersion: "5", generation: 2, labels: {l: m}, annotations: {k: v}, finalizers: [f/g], ownerReferences: [{apiVersion: v1, kind: A, name: b, uid: c}]}`
	const oldForm = `{apiVersion: work.karmada.io/v1alpha1, kind: ResourceBinding, ` + meta + `,
  spec: {resource: {apiVersion: apps/v1, kind: Deployment, namespace: ns, name: d, resourceVersion: "3", resourcePerReplicas: {cpu: 1}, replicas: 2}, clusters: [{name: m1, replicas: 2}]},
  status: {aggregatedStatus: [{clusterName: m1, status: {x: 1}, applied: true, appliedMessage: z}]}}`
	const newForm = `{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, ` + meta + `,
  spec: {resource: {apiVersion: apps/v1, kind: Deployment, namespace: ns, name: d, resourceVersion: "3"}, replicaRequirements: {resourceRequest: {cpu: 1}}, replicas: 2, clusters: [{name: m1, replicas: 2}]},
  status: {aggregatedStatus: [{clusterName: m1, status: {x: 1}, applied: true, appliedMessage: z}]}}`
	for version, forms := range map[string][2]string{"work.karmada.io/v1alpha1": {newForm, oldForm}, "work.karmada.io/v1alpha2": {oldForm, newForm}} {
		resp := convert(t, version, forms[0])
		if resp.Result.Status != metav1.StatusSuccess || resp.UID != "u" || len(resp.ConvertedObjects) != 1 {
			t.Fatalf("to %s: %+v", version, resp)
		}
		var got, want map[string]any
		if err := json.Unmarshal(resp.ConvertedObjects[0].Raw, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(toJSON(t, forms[1]), &want); err != nil {
			t.Fatal(err)
		}
		amount(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("to %s: %s", version, diff)
		}
	}
}

// amount writes cpu: 1 as the string that it is encoded as.
func amount(v map[string]any) {
	for key, value := range v {
		if key == "cpu" {
			v[key] = "1"
		}
		if m, ok := value.(map[string]any); ok {
			amount(m)
		}
	}
}

func TestConvert_Failures(t *testing.T) {
	handlers, err := Handlers(deps())
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"", "x", "{}"} {
		if code := post(t, handlers["/convert"], "/convert", "application/json", []byte(body)).Code; code != http.StatusBadRequest {
			t.Errorf("%q: %d", body, code)
		}
	}
	resp := convert(t, "work.karmada.io/v1alpha2", `{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {name: a}, spec: {}}`)
	if resp.Result.Status != metav1.StatusFailure {
		t.Errorf("%+v", resp.Result)
	}
}
