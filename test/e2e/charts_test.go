package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
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

	// Who may write policies, but not this webhook, does not take it out of effect; who may update it keeps it in effect.
	a := newAttackers(t)
	tenant := a.client(a.serviceAccount(ns, "policies"))
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: ns + "-policies"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"policy.karmada.io"}, Resources: []string{"clusterpropagationpolicies"}, Verbs: []string{"*"}}},
	}
	granted := &rbacv1.ClusterRoleBinding{ObjectMeta: role.ObjectMeta, RoleRef: clusterRole(role.Name), Subjects: subject(ns, "policies")}
	a.must(errors.Join(a.admin.Create(t.Context(), role), a.admin.Create(t.Context(), granted)))
	t.Cleanup(func() { ctl("", "delete", "clusterrole,clusterrolebinding", role.Name) })
	cpp := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	cpp.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration", Name: hook}}
	eventually(t, func() error { // the right takes effect with a delay
		err := tenant.Create(t.Context(), cpp)
		if err == nil || !strings.Contains(err.Error(), `may not update validatingwebhookconfigurations.admissionregistration.k8s.io "`+hook+`"`) {
			return fmt.Errorf("a policy of who may not update the webhook: %w", err)
		}
		return nil
	})
	must(t, "annotate", "validatingwebhookconfiguration", hook, "propagation.karmada.io/keep-active=true")
	eventually(t, is("", "", "validatingwebhookconfiguration/"+hook, condition+inert, ""))
	must(t, "annotate", "validatingwebhookconfiguration", hook, "propagation.karmada.io/keep-active-")
	eventually(t, is("", "", "validatingwebhookconfiguration/"+hook, condition, "false"))

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

// Members choose what a template leaves to them, by their own configuration, and keep it when the template changes. Each object is
// as bare as can be; its label changes, which writes it again.
func TestCharts_MembersKeepWhatTheyChoose(t *testing.T) {
	ns := namespace(t)
	const policies = "e2e-charts-fields"
	inMembers := func(manifest string, clusters ...string) {
		for _, cluster := range clusters {
			mustWith(t, manifest, member(cluster, "apply", "-f", "-")...)
			t.Cleanup(func() { ctl(manifest, member(cluster, "delete", "--ignore-not-found", "-f", "-")...) })
		}
	}
	inMembers(`
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: e2e-standard, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: example.com/none
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: e2e-ingress, annotations: {ingressclass.kubernetes.io/is-default-class: "true"}}
spec: {controller: example.com/none}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: e2e-priority}
globalDefault: true
value: 7`, "member1", "member2")
	inMembers(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: e2e-charts-member, labels: {e2e-charts: "true"}}
rules: [{apiGroups: [""], resources: [secrets], verbs: [list]}]`, "member1")
	const service = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: NodePort, selector: {app: web}, ports: [{port: 80}]}`
	apply(t, ns, service)
	port, err := value("", ns, "svc/web", "{.spec.ports[0].nodePort}")
	if err != nil {
		t.Fatal(err)
	}
	inMembers(fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: e2e-taken, namespace: default}
spec: {type: NodePort, selector: {app: x}, ports: [{port: 80, nodePort: %s}]}`, port), "member2")

	objects := strings.ReplaceAll(`
apiVersion: v1
kind: Service
metadata: {name: balanced, labels: {e2e: LABEL}}
spec: {type: LoadBalancer, externalTrafficPolicy: Local, selector: {app: web}, ports: [{name: http, port: 80}, {name: https, port: 443}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, labels: {e2e: LABEL}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, labels: {e2e: LABEL}}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
---
apiVersion: v1
kind: Pod
metadata: {name: bare, labels: {e2e: LABEL}}
spec: {containers: [{name: main, image: "IMAGE"}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: e2e-charts-all, labels: {e2e: LABEL}}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {e2e-charts: "true"}}]}
rules: []
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: system:e2e-charts-part, labels: {e2e: LABEL, e2e-charts: "true"}}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: e2e-charts-ca, labels: {e2e: LABEL}}
webhooks:
- name: ca.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig: {service: {name: absent, namespace: default}}
  rules: [{apiGroups: [charts.example.com], apiVersions: [v1], operations: [CREATE], resources: [things]}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {e2e: LABEL}}
spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "IMAGE"}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once, labels: {e2e: LABEL}}
spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: main, image: "IMAGE"}]}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, labels: {e2e: LABEL}}
spec:
  replicas: 0
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: main, image: "IMAGE"}]}}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot, labels: {e2e: LABEL}}
---
apiVersion: v1
kind: Secret
metadata: {name: robot, labels: {e2e: LABEL}, annotations: {kubernetes.io/service-account.name: robot}}
type: kubernetes.io/service-account-token
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: e2e-charts, labels: {e2e: LABEL}}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteMany], storageClassName: manual, hostPath: {path: /data/e2e}}
`, "IMAGE", image)
	labelled := []string{
		"svc/web", "svc/balanced", "pvc/data", "ingress/web", "pod/bare", "clusterrole/e2e-charts-all", "clusterrole/system:e2e-charts-part",
		"validatingwebhookconfiguration/e2e-charts-ca", "deploy/web", "job/once", "sts/db", "sa/robot", "secret/robot", "pv/e2e-charts",
	}
	t.Cleanup(func() {
		ctl("", "delete", "cpp", policies, "--ignore-not-found")
		ctl("", "delete", "clusterrole/e2e-charts-all", "clusterrole/system:e2e-charts-part", "validatingwebhookconfiguration/e2e-charts-ca", "pv/e2e-charts", "--ignore-not-found")
	})
	apply(t, ns, strings.Replace(service, "{name: web}", "{name: web, labels: {e2e: one}}", 1), strings.ReplaceAll(objects, "LABEL", "one"), fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: %s}
spec:
  resourceSelectors:
  - {apiVersion: v1, kind: Service, namespace: %[2]s}
  - {apiVersion: v1, kind: PersistentVolumeClaim, namespace: %[2]s}
  - {apiVersion: v1, kind: PersistentVolume, name: e2e-charts}
  - {apiVersion: v1, kind: ServiceAccount, namespace: %[2]s, name: robot}
  - {apiVersion: v1, kind: Secret, namespace: %[2]s}
  - {apiVersion: v1, kind: Pod, namespace: %[2]s}
  - {apiVersion: apps/v1, kind: Deployment, namespace: %[2]s}
  - {apiVersion: apps/v1, kind: StatefulSet, namespace: %[2]s}
  - {apiVersion: batch/v1, kind: Job, namespace: %[2]s}
  - {apiVersion: networking.k8s.io/v1, kind: Ingress, namespace: %[2]s}
  - {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, labelSelector: {matchLabels: {e2e: one}}}
  - {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, labelSelector: {matchLabels: {e2e: two}}}
  - {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, name: e2e-charts-ca}
  placement: {clusterAffinity: {clusterNames: [member1, member2]}}`, policies, ns))
	arrived := func(label string) func() error {
		return func() error {
			for _, cluster := range []string{"member1", "member2"} {
				for _, object := range labelled {
					if err := is(cluster, ns, object, "{.metadata.labels.e2e}", label)(); err != nil {
						return err
					}
				}
			}
			return nil
		}
	}
	eventually(t, arrived("one"))
	chosen := all(
		is("member1", ns, "pvc/data", "{.spec.storageClassName}", "e2e-standard"),
		is("member1", ns, "ingress/web", "{.spec.ingressClassName}", "e2e-ingress"),
		is("member1", ns, "pod/bare", "{.spec.priority}", "7"),
		is("member1", "", "clusterrole/e2e-charts-all", "{.rules[*].resources[0]}", "secrets pods"),
		is("member2", "", "clusterrole/e2e-charts-all", "{.rules[*].resources[0]}", "pods"),
	)
	eventually(t, chosen)
	// A controller in the member writes its certificate, and a user restarts a workload.
	must(t, member("member1", "patch", "validatingwebhookconfiguration", "e2e-charts-ca", "--type=json", "-p",
		`[{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "Y2E="}]`)...)
	const restartedAt = `{.spec.template.metadata.annotations.kubectl\.kubernetes\.io/restartedAt}`
	must(t, member("member1", "patch", "deploy", "web", "-n", ns, "--type=merge", "-p",
		`{"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}}}}}`)...)
	// Node ports that the control plane allocated are the same in all members, except where one is taken, which is reported.
	const nodePorts = "{.spec.ports[*].nodePort} {.spec.healthCheckNodePort}"
	ports, err := value("", ns, "svc/balanced", nodePorts)
	if err != nil {
		t.Fatal(err)
	}
	other, err := value("member2", ns, "svc/web", "{.spec.ports[0].nodePort}")
	if err != nil || other == "" || other == port {
		t.Errorf("member2, in which node port %s is taken, has %q: %v", port, other, err)
	}
	const contested = `{.status.conditions[?(@.type=="Contested")].`
	eventually(t, all(
		is("member1", ns, "svc/web", "{.spec.ports[0].nodePort}", port), is("member1", ns, "svc/balanced", nodePorts, ports), is("member2", ns, "svc/balanced", nodePorts, ports),
		is("", ns, "rb/web-service", contested+"reason}", "NodePortTaken"), is("", ns, "rb/balanced-service", contested+"reason}", ""),
		func() error {
			said := must(t, "describe", "svc", "web", "-n", ns) + must(t, "why", "svc/web", "-n", ns)
			for _, want := range []string{"NodePortTaken", "member cluster(member2): spec.ports[0].nodePort " + port + " is " + other + " there", "set nodePort in the template"} {
				if !strings.Contains(said, want) {
					return fmt.Errorf("%q is not in:\n%s", want, said)
				}
			}
			return nil
		},
	))

	apply(t, ns, strings.Replace(service, "{name: web}", "{name: web, labels: {e2e: two}}", 1), strings.ReplaceAll(objects, "LABEL", "two"))
	eventually(t, arrived("two"))
	eventually(t, all(chosen,
		is("member1", ns, "svc/balanced", nodePorts, ports), is("member2", ns, "svc/web", "{.spec.ports[0].nodePort}", other),
		is("member1", "", "validatingwebhookconfiguration/e2e-charts-ca", "{.webhooks[0].clientConfig.caBundle}", "Y2E="),
		is("member1", ns, "deploy/web", restartedAt, "2026-01-01T00:00:00Z"),
	))
}

// A controller in a member that changes a field as often as it is written has its way but for a write a minute, and whoever looks
// at the Work or the binding learns of it. Other fields of the object, and other members, do not wait.
func TestCharts_ContestedFieldIsLeftAlone(t *testing.T) {
	inBothModes(t, chartsContestedFieldIsLeftAlone)
}

func chartsContestedFieldIsLeftAlone(t *testing.T, name string) {
	ns := namespace(t)
	web := func(label string) string {
		return strings.Replace(deployment("web", 1), "labels: {app: web}", "labels: {app: web, e2e: "+label+"}", 1)
	}
	apply(t, ns, web("one"), policy("web", to("member1", "member2")))
	arrived := func(label string) func() error {
		return all(is("member1", ns, "deploy/web", "{.metadata.labels.e2e}", label), is("member2", ns, "deploy/web", "{.metadata.labels.e2e}", label))
	}
	eventually(t, arrived("one"))
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	deployments := kubernetes.NewForConfigOrDie(cfg).AppsV1().Deployments(ns)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for tick := time.NewTicker(50 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			_, _ = deployments.Patch(ctx, "web", types.MergePatchType, []byte(`{"spec": {"minReadySeconds": 1}}`), metav1.PatchOptions{FieldManager: "rival"})
		}
	}()
	const contested = `{.status.conditions[?(@.type=="Contested")].message}`
	eventually(t, func() error {
		message, err := value("", ns, "rb/web-deployment", contested)
		if err != nil {
			return err
		}
		for _, want := range []string{"Cluster " + name + ": ", `spec.minReadySeconds of Deployment ` + ns + `/web by "rival"`, "retention rule"} {
			if !strings.Contains(message, want) {
				return fmt.Errorf("the condition says %q, not %q", message, want)
			}
		}
		return nil
	})
	apply(t, ns, web("two"))
	eventually(t, arrived("two"))
	d, err := deployments.Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if d.Generation > 60 {
		t.Errorf("the Deployment has generation %d: it is written without end", d.Generation)
	}
}

// What a member does not change is said, with what helps.
func TestCharts_ImmutableFieldIsSaid(t *testing.T) {
	ns := namespace(t)
	const claim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [MODE], resources: {requests: {storage: 1Gi}}}`
	apply(t, ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: first}}`, policyFor("first", "{apiVersion: v1, kind: ConfigMap, name: first}", to("member1")))
	eventually(t, is("member1", ns, "cm/first", "{.metadata.name}", "first"))
	mustWith(t, strings.Replace(claim, "MODE", "ReadWriteMany", 1), member("member1", "apply", "-n", ns, "-f", "-")...)
	apply(t, ns, strings.Replace(claim, "MODE", "ReadWriteOnce", 1), strings.Replace(policyFor("data", "{apiVersion: v1, kind: PersistentVolumeClaim, name: data}", to("member1")),
		"spec:", "spec:\n  conflictResolution: Overwrite", 1))
	const applied = `{range .items[?(@.metadata.annotations.resourcebinding\.karmada\.io/name=="data-persistentvolumeclaim")]}{.status.conditions[?(@.type=="Applied")].reason}: {.status.conditions[?(@.type=="Applied")].message}{end}`
	eventually(t, func() error {
		out := must(t, "get", "works", "-n", "karmada-es-member1", "-o", "jsonpath="+applied)
		for _, want := range []string{"ImmutableField: ", "spec of PersistentVolumeClaim " + ns + "/data cannot be changed in cluster member1", "delete it there"} {
			if !strings.Contains(out, want) {
				return fmt.Errorf("the condition is %q, not %q", out, want)
			}
		}
		return nil
	})
}
