package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// The test of docs/charts.md: what charts install acts in the members, and not on the control plane that holds it.
func TestCharts_TemplatesDoNotAct(t *testing.T) {
	ns := namespace(t)
	const hook, policies = "e2e-charts", "e2e-charts"
	selected := strings.ReplaceAll(`
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: NAME}
spec:
  resourceSelectors:
  - {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration}
  - {apiVersion: apiregistration.k8s.io/v1, kind: APIService, name: v1.charts.example.com}
  - {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: shelves.charts.example.com}
  placement: {clusterAffinity: {clusterNames: [member1]}}`, "NAME", policies)
	t.Cleanup(func() {
		ctl("", "delete", "cpp", policies, "--ignore-not-found")
		ctl("", "delete", "validatingwebhookconfiguration", hook, "--ignore-not-found")
		ctl("", "delete", "apiservice", "v1.charts.example.com", "--ignore-not-found")
		ctl("", "delete", "crd", "shelves.charts.example.com", "--ignore-not-found")
	})
	apply(t, ns, selected, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %s}
webhooks:
- name: charts.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: {service: {name: absent, namespace: %s}}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}
  rules: [{apiGroups: [networking.k8s.io], apiVersions: [v1], operations: [CREATE], resources: [ingresses]}]`, hook, ns, ns), fmt.Sprintf(`
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.charts.example.com}
spec: {group: charts.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 10, insecureSkipTLSVerify: true, service: {name: absent, namespace: %s}}`, ns), fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shelves.charts.example.com}
spec:
  group: charts.example.com
  scope: Namespaced
  names: {plural: shelves, singular: shelf, kind: Shelf, listKind: ShelfList}
  versions:
  - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: absent, namespace: %s}}}}`, ns))

	const inert, condition = `{.metadata.annotations.propagation\.karmada\.io/inert}`, "{.webhooks[0].matchConditions[*].expression}"
	eventually(t, all(
		is("", "", "validatingwebhookconfiguration/"+hook, condition, "false"),
		is("", "", "apiservice/v1.charts.example.com", "{.spec.service.name}", ""),
		is("", "", "crd/shelves.charts.example.com", "{.spec.conversion.strategy}", "None"),
		is("member1", "", "validatingwebhookconfiguration/"+hook, condition, ""),
		is("member1", "", "validatingwebhookconfiguration/"+hook, inert, ""),
		is("member1", "", "apiservice/v1.charts.example.com", "{.spec.service.name}", "absent"),
		is("member1", "", "crd/shelves.charts.example.com", "{.spec.conversion.strategy}", "Webhook"),
	))
	// The configuration of a webhook takes effect with a delay, in both directions.
	ingress := func() error {
		r := ctl("{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web}, spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}}",
			"create", "-n", ns, "--dry-run=server", "-f", "-")
		if r.code != 0 {
			return fmt.Errorf("%s", r.err)
		}
		return nil
	}
	eventually(t, ingress)

	// The webhooks of the control plane itself, which the policy selects too, are not propagated, and the policy says so.
	if err := absent("member1", "", "validatingwebhookconfiguration/validating-config")(); err != nil {
		t.Error(err)
	}
	eventually(t, func() error {
		if out := must(t, "describe", "cpp", policies); !strings.Contains(out, `"validating-config" belongs to the control plane and is not propagated`) {
			return fmt.Errorf("no event:\n%s", out)
		}
		return nil
	})

	// Without a policy they are no templates, and act.
	must(t, "delete", "cpp", policies)
	eventually(t, all(
		is("", "", "validatingwebhookconfiguration/"+hook, condition+inert, ""),
		is("", "", "apiservice/v1.charts.example.com", "{.spec.service.name}", "absent"),
		is("", "", "crd/shelves.charts.example.com", "{.spec.conversion.strategy}", "Webhook"),
		func() error {
			if err := ingress(); err == nil || !strings.Contains(err.Error(), "charts.example.com") {
				return fmt.Errorf("the webhook does not act: %w", err)
			}
			return nil
		},
	))
}
