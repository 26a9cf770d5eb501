package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

func TestDeactivate(t *testing.T) {
	for name, tc := range map[string]struct {
		in, want string // want has no metadata
		active   bool
		kept     string
	}{
		"webhooks": {
			in: `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a},
  webhooks: [{name: a, matchConditions: [{name: mine, expression: "true"}]}, {name: b, clientConfig: {url: u}}]}`,
			want: `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, webhooks: [
  {name: a, matchConditions: [{name: mine, expression: "true"}, {name: inert.propagation.karmada.io, expression: "false"}]},
  {name: b, clientConfig: {url: u}, matchConditions: [{name: inert.propagation.karmada.io, expression: "false"}]}]}`,
			kept: "{}",
		},
		"an admission policy": {
			in: `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, metadata: {name: a}, spec: {failurePolicy: Fail}}`,
			want: `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, spec: {failurePolicy: Fail,
  matchConditions: [{name: inert.propagation.karmada.io, expression: "false"}]}}`,
			kept: "{}",
		},
		"the binding of one": {
			in: `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: a},
  spec: {policyName: p, matchResources: {objectSelector: {matchExpressions: [{key: a, operator: In, values: [b]}]}}}}`,
			want: `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding,
  spec: {policyName: p, matchResources: {objectSelector: {matchExpressions: [{key: a, operator: In, values: [b]},
  {key: inert.propagation.karmada.io, operator: Exists}, {key: inert.propagation.karmada.io, operator: DoesNotExist}]}}}}`,
			kept: "{}",
		},
		"a CRD with a webhook": {
			in: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a},
  spec: {group: g, conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1]}}}}`,
			want: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, conversion: {strategy: None}}}`,
			kept: `{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"]}}}`,
		},
		"a CRD without": {
			in:     `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {group: g, conversion: {strategy: None}}}`,
			active: true,
		},
		"an APIService": {
			in: `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a},
  spec: {group: g, service: {name: s, namespace: ns}, insecureSkipTLSVerify: true}}`,
			want: `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, spec: {group: g}}`,
			kept: `{"insecureSkipTLSVerify":true,"service":{"name":"s","namespace":"ns"}}`,
		},
		"an APIService without a Service": {
			in:     `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a}, spec: {group: g, caBundle: c}}`,
			active: true,
		},
		"the default PriorityClass": {
			in:   `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a}, value: 5, globalDefault: true}`,
			want: `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, value: 5, globalDefault: false}`,
			kept: `{"globalDefault":true}`,
		},
		"another kind": {in: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`, active: true},
	} {
		t.Run(name, func(t *testing.T) {
			before, obj := object(t, tc.in), object(t, tc.in)
			if got := Deactivate(obj); got == tc.active {
				t.Fatalf("changed: %v", got)
			}
			if tc.active {
				return
			}
			once := obj.DeepCopy()
			if Deactivate(obj) || !cmp.Equal(once.Object, obj.Object) {
				t.Error("the second time differs")
			}
			if got := obj.GetAnnotations()[workv1alpha2.InertAnnotation]; got != tc.kept {
				t.Errorf("the annotation is %s, want %s", got, tc.kept)
			}
			delete(once.Object, "metadata")
			if diff := cmp.Diff(object(t, tc.want).Object, once.Object); diff != "" {
				t.Error(diff)
			}
			if !Reactivate(obj) || Reactivate(obj) {
				t.Error("it was not reactivated once")
			}
			before.SetAnnotations(map[string]string{})
			if diff := cmp.Diff(before.Object, obj.Object); diff != "" {
				t.Errorf("not as before: %s", diff)
			}
		})
	}
}

func TestDeactivate_NotWhatIsKeptActive(t *testing.T) {
	obj := object(t, `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a, annotations: {propagation.karmada.io/keep-active: "true"}}, value: 5, globalDefault: true}`)
	if Deactivate(obj) || obj.Object["globalDefault"] != true {
		t.Error("it was deactivated")
	}
	obj.SetAnnotations(nil)
	Deactivate(obj)
	obj.SetAnnotations(map[string]string{
		workv1alpha2.InertAnnotation: obj.GetAnnotations()[workv1alpha2.InertAnnotation], workv1alpha2.KeepActiveAnnotation: "true",
	})
	if !Deactivate(obj) || obj.Object["globalDefault"] != true {
		t.Error("it was not reactivated")
	}
}

func TestCannotDeactivate(t *testing.T) {
	const condition = "{name: %d, expression: 'true'},"
	many := func(n int) string {
		var out strings.Builder
		for i := range n {
			fmt.Fprintf(&out, condition, i)
		}
		return "matchConditions: [" + out.String() + "]"
	}
	hooks := func(n int) string {
		return "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: b}, {name: c, " + many(n) + "}]}"
	}
	policy := "{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, metadata: {name: a}, spec: {" + many(64) + "}}"
	inert := object(t, hooks(63))
	Deactivate(inert)
	kept := object(t, hooks(64))
	kept.SetAnnotations(map[string]string{workv1alpha2.KeepActiveAnnotation: "true"})
	for name, tc := range map[string]struct {
		obj  *unstructured.Unstructured
		want bool
	}{
		"a webhook with room": {object(t, hooks(63)), false}, "one without": {object(t, hooks(64)), true}, "an admission policy without": {object(t, policy), true},
		"one that is inert": {inert, false}, "one that is kept active": {kept, false}, "no webhook": {object(t, "{apiVersion: v1, kind: ConfigMap}"), false},
	} {
		if got := CannotDeactivate(tc.obj); (got != "") != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Users can write the annotation, and change the template afterwards.
func TestReactivate_TakesNothingElse(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"another identity": {
			`{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a, annotations: {propagation.karmada.io/inert: '{"kind":"Secret","metadata":{"name":"b"},"value":7}'}}, value: 5}`,
			`{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a, annotations: {}}, value: 5}`,
		},
		"a webhook that was set since": {
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a, annotations: {propagation.karmada.io/inert: '{"conversion":{"strategy":"Webhook","a":1}}'}}, spec: {conversion: {strategy: Webhook}}}`,
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a, annotations: {}}, spec: {conversion: {strategy: Webhook}}}`,
		},
		"no JSON": {
			`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a, annotations: {propagation.karmada.io/inert: '{'}}, spec: {group: g}}`,
			`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a, annotations: {}}, spec: {group: g}}`,
		},
		"of a kind that always acts": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {propagation.karmada.io/inert: '{"data":{"a":"b"}}'}}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := object(t, tc.in)
			Reactivate(obj)
			if diff := cmp.Diff(object(t, tc.want).Object, obj.Object); diff != "" {
				t.Error(diff)
			}
		})
	}
}
