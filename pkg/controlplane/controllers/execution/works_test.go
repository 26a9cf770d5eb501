package execution

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestIdentify(t *testing.T) {
	o, err := identify([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"n","name":"a"}}`))
	if err != nil || o.gvk.String() != "apps/v1, Kind=Deployment" || o.key.String() != "n/a" {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, bad := range []string{`{`, `{"apiVersion":"a/b/c"}`} {
		if _, err := identify([]byte(bad)); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

func decode(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return obj
}
