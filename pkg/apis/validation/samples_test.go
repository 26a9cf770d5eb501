package validation

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/karmada-toolkit/karmada/internal/kube"
	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// TestSamples decodes every object of the samples strictly and validates it as admission does.
func TestSamples(t *testing.T) {
	// Groups of kinds that the samples have and the scheme does not.
	foreign := []string{"webapp.my.domain/", "argoproj.io/", "apiextensions.k8s.io/"}
	decoder := serializer.NewCodecFactory(kube.NewScheme(), serializer.EnableStrict).UniversalDeserializer()
	seen := map[string]bool{}
	err := filepath.WalkDir(filepath.Join("..", "..", "..", "samples"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, doc := range bytes.Split(text, []byte("\n---\n")) {
			// Placeholders of addresses, which the documentation replaces.
			doc = bytes.ReplaceAll(doc, []byte("ADDRESS"), []byte("172.18.0.4"))
			raw := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict(doc, &raw.Object); err != nil {
				t.Errorf("%s, document %d: %v", path, i, err)
				continue
			}
			seen[raw.GetKind()] = true
			if slices.ContainsFunc(foreign, func(group string) bool { return strings.HasPrefix(raw.GetAPIVersion(), group) }) {
				continue
			}
			obj, _, err := decoder.Decode(doc, nil, nil)
			if err != nil {
				t.Errorf("%s, document %d: %v", path, i, err)
				continue
			}
			switch named := obj.(type) {
			case *autoscalingv1alpha1.FederatedHPA, *networkingv1alpha1.MultiClusterService:
				// As the API server does. Selectors of policies get the namespace from a webhook.
				named.(metav1.Object).SetNamespace(metav1.NamespaceDefault)
			}
			if err := validated(obj); err != nil {
				t.Errorf("%s, document %d: %v", path, i, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"PropagationPolicy", "OverridePolicy", "FederatedHPA", "FederatedResourceQuota", "MultiClusterService", "ResourceInterpreterCustomization"} {
		if !seen[kind] {
			t.Errorf("no sample of a %s", kind)
		}
	}
}

func validated(obj runtime.Object) error {
	var errs field.ErrorList
	switch o := obj.(type) {
	case *autoscalingv1alpha1.FederatedHPA:
		errs = ValidateFederatedHPA(o)
	case *policyv1alpha1.FederatedResourceQuota:
		errs = ValidateFederatedResourceQuota(o)
	case *networkingv1alpha1.MultiClusterService:
		errs = ValidateMultiClusterService(o)
	case policyv1alpha1.Policy:
		errs = ValidatePropagationPolicy(o)
	case policyv1alpha1.OverridePolicyObject:
		errs = ValidateOverridePolicy(o)
	}
	return errs.ToAggregate()
}
