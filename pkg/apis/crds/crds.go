// Package crds holds the CustomResourceDefinitions of the control plane, as
// generated from the types in pkg/apis.
package crds

import (
	"embed"
	"fmt"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed bases/*.yaml
var files embed.FS

// ConvertPath is the path of the webhook that converts the versions of bindings.
const ConvertPath = "/convert"

// All returns the definitions, sorted by name. Each call returns new objects.
func All() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	entries, err := fs.ReadDir(files, "bases")
	if err != nil {
		return nil, fmt.Errorf("listing CRDs: %w", err)
	}
	out := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(entries))
	for _, entry := range entries {
		data, err := files.ReadFile("bases/" + entry.Name())
		if err != nil {
			return nil, fmt.Errorf("reading CRD %q: %w", entry.Name(), err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			return nil, fmt.Errorf("decoding CRD %q: %w", entry.Name(), err)
		}
		out = append(out, crd)
	}
	return out, nil
}

// WithConversion returns All with the definitions that serve several versions
// pointed at the conversion webhook at baseURL, such as
// https://karmada-webhook.karmada-system.svc:443.
func WithConversion(baseURL string, caBundle []byte) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	return ConvertedBy(all, baseURL, caBundle), nil
}

// ConvertedBy points those of the given definitions that serve several versions
// at the conversion webhook at baseURL. It changes and returns them.
func ConvertedBy(all []*apiextensionsv1.CustomResourceDefinition, baseURL string, caBundle []byte) []*apiextensionsv1.CustomResourceDefinition {
	url := baseURL + ConvertPath
	for _, crd := range all {
		if len(crd.Spec.Versions) < 2 {
			continue
		}
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: caBundle},
				ConversionReviewVersions: []string{"v1"},
			},
		}
	}
	return all
}
