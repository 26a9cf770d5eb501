package snapshot

import (
	"bytes"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

const secretYAML = `
apiVersion: v1
kind: Secret
metadata:
  namespace: ns
  name: s
  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"stringData":{"a":"hunter2"}}'}
data: {a: aHVudGVyMg==, b: aHVudGVyMg==, c: eA==}
`

func TestFile(t *testing.T) {
	secret := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(secretYAML), &secret.Object); err != nil {
		t.Fatal(err)
	}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }
	c := &Contents{
		Now: time.Unix(1000, 0).UTC(), Templates: []*unstructured.Unstructured{secret},
		Clusters: []*clusterv1alpha1.Cluster{{
			ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Spec: clusterv1alpha1.ClusterSpec{ResourceModels: []clusterv1alpha1.ResourceModel{{Grade: 1}}},
		}, {ObjectMeta: metav1.ObjectMeta{Name: "m2"}}},
		Policies:  []policyv1alpha1.Policy{&policyv1alpha1.PropagationPolicy{ObjectMeta: meta("p")}},
		Overrides: []policyv1alpha1.OverridePolicyObject{&policyv1alpha1.OverridePolicy{ObjectMeta: meta("o")}},
		Quotas:    []*policyv1alpha1.FederatedResourceQuota{{ObjectMeta: meta("q")}},
		Bindings:  []workv1alpha2.Binding{&workv1alpha2.ResourceBinding{ObjectMeta: meta("b")}},
		Kinds:     []Kind{{schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, true}},
	}
	var file bytes.Buffer
	if err := c.Write(&file); err != nil {
		t.Fatal(err)
	}
	if text := file.String(); strings.Contains(text, "aHVudGVyMg") || strings.Contains(text, "hunter2") {
		t.Errorf("it has values of Secrets:\n%s", text)
	}
	got, err := Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Clusters) != 2 || len(got.Policies) != 1 || len(got.Overrides) != 1 || len(got.Quotas) != 1 || len(got.Bindings) != 1 || len(got.Templates) != 1 ||
		!got.Hashed || !got.Now.Equal(c.Now) || got.Kinds[0] != c.Kinds[0] {
		t.Errorf("got %+v", got)
	}
	data, _, _ := unstructured.NestedStringMap(got.Templates[0].Object, "data")
	if data["a"] != data["b"] || data["a"] == data["c"] || data["a"] == "" {
		t.Errorf("hashes: %v", data)
	}
	if _, _, err := unstructured.NestedStringMap(secret.Object, "data"); err != nil || secret.GetAnnotations() == nil {
		t.Errorf("the Secret was changed: %v", secret)
	}
}

func TestRead_Refuses(t *testing.T) {
	for text, want := range map[string]string{
		`{`: "decoding the snapshot",
		`{"kind":"FederationSnapshot","schemaVersion":"v0"}`: `schemaVersion "v0", want "FederationSnapshot", "v1": it is no snapshot of this version of the command`,
		`{"kind":"List"}`: `kind "List"`,
		`{"kind":"FederationSnapshot","schemaVersion":"v1","objects":[{"apiVersion":"cluster.karmada.io/v1alpha1","kind":"Cluster","metadata":{"name":"m1"},"spec":3}]}`: "objects[0] of the snapshot: decoding Cluster m1",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
