package components

import (
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestCRDs_OnlyKindsWithSeveralVersionsAreConverted(t *testing.T) {
	objects, err := CRDs("https://h:1", []byte("ca"))
	if err != nil {
		t.Fatal(err)
	}
	converted := map[string]string{}
	for _, o := range objects {
		crd := o.(*apiextensionsv1.CustomResourceDefinition)
		if crd.Spec.Conversion != nil {
			converted[crd.Name] = *crd.Spec.Conversion.Webhook.ClientConfig.URL
		}
	}
	if len(converted) != 2 || converted["resourcebindings.work.karmada.io"] != "https://h:1/convert" ||
		converted["clusterresourcebindings.work.karmada.io"] != "https://h:1/convert" {
		t.Errorf("converted: %v", converted)
	}
}

func TestLocalServing_EveryObjectIsNamedOnce(t *testing.T) {
	objects := append(SystemNamespaces(), FederationRBAC()...)
	objects = append(objects, LocalServing(Serving{WebhookURL: "https://h:1", AggregatedHost: "localhost", AggregatedPort: 2})...)
	type id struct {
		kind any
		key  client.ObjectKey
	}
	seen := map[id]bool{}
	for _, o := range objects {
		i := id{kindOf(o), client.ObjectKeyFromObject(o)}
		if o.GetName() == "" || seen[i] {
			t.Errorf("%v is unnamed or there twice", i)
		}
		seen[i] = true
	}
}

func kindOf(o client.Object) string { return fmt.Sprintf("%T", o) }
