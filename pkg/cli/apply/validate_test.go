package apply

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

const customizationYAML = `
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: NAME}
spec:
  target: {apiVersion: apps/v1, kind: Deployment}
  customizations:
    healthInterpretation: {luaScript: "function InterpretHealth(o) return true SCRIPT"}
`

func TestValidate(t *testing.T) {
	customization := func(name, script string) string {
		return strings.NewReplacer("NAME", name, "SCRIPT", script).Replace(customizationYAML)
	}
	for name, tt := range map[string]struct {
		objects []string
		want    string
	}{
		"no kind of ours": {[]string{`{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`}, ""},
		"a good policy": {[]string{`
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: p, namespace: default}
spec: {resourceSelectors: [{apiVersion: v1, kind: Pod}]}`}, ""},
		"a policy for another namespace": {[]string{`
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: p, namespace: default}
spec: {resourceSelectors: [{apiVersion: v1, kind: Pod, namespace: other}]}`},
			`PropagationPolicy "p" (f.yaml) would be refused: spec.resourceSelectors[0].namespace: Invalid value: "other": namespace of resource selector must be the same as the namespace of the policy`},
		"a script that is no Lua": {[]string{customization("a", "")},
			`ResourceInterpreterCustomization "a" (f.yaml) would be refused: InterpreterOperation(InterpretHealth) Lua script error: <string> at EOF:   syntax error`},
		"two scripts for one rule": {[]string{customization("a", "end"), customization("b", "end")},
			`ResourceInterpreterCustomization "b" (f.yaml) would be refused: conflicting with InterpreterOperation(InterpretHealth) of existing ResourceInterpreterCustomization(a)`},
	} {
		t.Run(name, func(t *testing.T) {
			var infos []*resource.Info
			for _, text := range tt.objects {
				obj := &unstructured.Unstructured{}
				if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
					t.Fatal(err)
				}
				infos = append(infos, &resource.Info{Object: obj, Name: obj.GetName(), Source: "f.yaml"})
			}
			var said bytes.Buffer
			got := ""
			if err := validate(&env.Env{IOStreams: genericiooptions.IOStreams{ErrOut: &said}}, infos); err != nil {
				got = strings.TrimSpace(err.Error())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s%s", diff, said.String())
			}
		})
	}
}
