//go:build !kind

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
)

const workshopCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: KINDs.crafts.example.io}
spec:
  group: crafts.example.io
  names: {kind: KIND, listKind: KINDList, plural: KINDs, singular: KIND}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    subresources: {status: {}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: KIND-crd}
spec:
  resourceSelectors: [{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: KINDs.crafts.example.io}]
  placement: {clusterAffinity: {clusterNames: [member1, member2]}}
`

// custom creates a kind without built-in rules, and an object of it with four workers
// to divide.
func custom(t *testing.T, ns, kind string) {
	t.Helper()
	lower := strings.ToLower(kind)
	apply(t, ns, strings.NewReplacer("KINDs", lower+"s", "singular: KIND", "singular: "+lower, "KIND-crd", lower+"-crd", "KIND", kind).Replace(workshopCRD))
	t.Cleanup(func() {
		ctl("", "delete", "ric,resourceinterpreterwebhookconfigurations", "--all")
		ctl("", "delete", lower+"s", "--all", "-n", ns, "--wait=false")
		ctl("", "delete", "crd", lower+"s.crafts.example.io", "--ignore-not-found", "--wait=false")
		ctl("", "delete", "cpp", lower+"-crd", "--ignore-not-found")
	})
	for _, m := range []string{"member1", "member2"} {
		eventually(t, is(m, "default", "crd/"+lower+"s.crafts.example.io", `{.status.conditions[?(@.type=="Established")].status}`, "True"))
	}
	eventually(t, func() error {
		r := ctl(fmt.Sprintf(`{apiVersion: crafts.example.io/v1, kind: %s, metadata: {name: craft}, spec: {workers: 4}}
---
`, kind)+policyFor(lower, "{apiVersion: crafts.example.io/v1, kind: "+kind+"}", weighted(1, 1)), "apply", "-n", ns, "-f", "-")
		if r.code != 0 {
			return fmt.Errorf("%s%s", r.out, r.err)
		}
		return nil
	})
	for _, m := range []string{"member1", "member2"} {
		eventually(t, is(m, ns, lower+"s/craft", "{.spec.workers}", "4"))
	}
}

const workshopRules = `
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: workshop}
spec:
  target: {apiVersion: crafts.example.io/v1, kind: Workshop}
  customizations:
    replicaResource:
      luaScript: |
        function GetReplicas(obj) return obj.spec.workers, nil end
    replicaRevision:
      luaScript: |
        function ReviseReplica(obj, n) obj.spec.workers = n return obj end
    healthInterpretation:
      luaScript: |
        function InterpretHealth(obj) return obj.status ~= nil and obj.status.busy == obj.spec.workers end
    statusAggregation:
      luaScript: |
        function AggregateStatus(obj, items)
          local busy = 0
          for i = 1, #(items or {}) do
            busy = busy + FACTOR * ((items[i].status or {}).busy or 0)
          end
          obj.status = {busy = busy}
          return obj
        end
`

// A customization is created, changed and deleted while objects of its kind exist, and
// each time they are reconciled; no other object is written.
func TestInterpreter_CustomizationsApplyToExistingObjects(t *testing.T) {
	ns := namespace(t)
	custom(t, ns, "Workshop")
	apply(t, ns, deployment("bystander", 2), policy("bystander", to("member1", "member2")))
	eventually(t, is("", ns, "deploy/bystander", "{.status.readyReplicas}", "4"))
	versions := func() string {
		t.Helper()
		var all []string
		for _, object := range []string{"deploy/bystander", "rb/bystander-deployment"} {
			v, err := value("", ns, object, "{.metadata.resourceVersion}")
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, v)
		}
		return strings.Join(all, " ")
	}
	atRest(t)
	before := versions()

	apply(t, ns, strings.ReplaceAll(workshopRules, "FACTOR", "1"))
	eventually(t, is("", ns, "rb/craft-workshop", "{.spec.replicas}", "4"))
	for _, m := range []string{"member1", "member2"} {
		eventually(t, is(m, ns, "workshops/craft", "{.spec.workers}", "2"))
		must(t, member(m, "patch", "workshops", "craft", "-n", ns, "--subresource=status", "--type=merge", "-p", `{"status":{"busy":2}}`)...)
	}
	eventually(t, is("", ns, "workshops/craft", "{.status.busy}", "4"))
	eventually(t, is("", ns, "rb/craft-workshop", "{.status.aggregatedStatus[*].health}", "Healthy Healthy"))

	apply(t, ns, strings.ReplaceAll(workshopRules, "FACTOR", "10"))
	eventually(t, is("", ns, "workshops/craft", "{.status.busy}", "40"))

	apply(t, ns, strings.Replace(strings.ReplaceAll(workshopRules, "FACTOR", "10"), "return obj.status ~= nil and", "return obj.status == nil and", 1))
	eventually(t, is("", ns, "rb/craft-workshop", "{.status.aggregatedStatus[*].health}", "Unhealthy Unhealthy"))

	must(t, "delete", "ric", "workshop")
	eventually(t, is("", ns, "rb/craft-workshop", "{.spec.replicas}", ""))
	eventually(t, is("member1", ns, "workshops/craft", "{.spec.workers}", "4"))
	eventually(t, is("", ns, "rb/craft-workshop", "{.status.aggregatedStatus[*].health}", "Healthy Healthy"))
	if after := versions(); after != before {
		t.Errorf("an object of another kind was written: %s, then %s", before, after)
	}
}

const runawayRules = `
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: runaway}
spec:
  target: {apiVersion: crafts.example.io/v1, kind: Runaway}
  customizations:
    healthInterpretation:
      luaScript: |
        function InterpretHealth(obj) while true do end end
    statusAggregation:
      luaScript: |
        function AggregateStatus(obj, items)
          local hoard = {}
          for i = 1, 1e9 do hoard[i] = {i} end
          return obj
        end
`

// Scripts that never end or take all memory are stopped. The objects say so, and
// those of other kinds are served as ever.
func TestInterpreter_RunawayScriptsDoNotAffectOtherKinds(t *testing.T) {
	ns := namespace(t)
	custom(t, ns, "Runaway")
	apply(t, ns, runawayRules)
	for _, m := range []string{"member1", "member2"} {
		must(t, member(m, "patch", "runaways", "craft", "-n", ns, "--subresource=status", "--type=merge", "-p", `{"status":{"busy":2}}`)...)
	}
	eventually(t, is("", ns, "rb/craft-runaway", "{.status.aggregatedStatus[*].health}", "Unknown Unknown"))
	eventually(t, func() error {
		conditions := must(t, "get", "works", "-A", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Interpreted")].message}`)
		if strings.Count(conditions, "Interpret health of object(Runaway/"+ns+"/craft) failed, err: context deadline exceeded.") != 2 {
			return fmt.Errorf("the works say %q", conditions)
		}
		return nil
	})
	eventually(t, func() error {
		events := must(t, "get", "events", "-A", "-o", `jsonpath={range .items[*]}{.reason} {.message}{"\n"}{end}`)
		for _, want := range []string{"InterpretHealthFailed Interpret health of object(Runaway/", "AggregateStatusFailed "} {
			if !strings.Contains(events, want) {
				return fmt.Errorf("no event begins with %q", want)
			}
		}
		return nil
	})
	apply(t, ns, deployment("bystander", 2), policy("bystander", to("member1", "member2")))
	eventually(t, is("", ns, "deploy/bystander", "{.status.readyReplicas}", "4"))
}

// A webhook of the user's answers for a kind.
func TestInterpreter_Webhook(t *testing.T) {
	ns := namespace(t)
	custom(t, ns, "Studio")
	server := httptest.NewTLSServer(http.HandlerFunc(answerForStudios))
	t.Cleanup(server.Close)
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	apply(t, ns, fmt.Sprintf(`
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterWebhookConfiguration
metadata: {name: studios}
webhooks:
- name: studios.example.io
  rules: [{operations: ["InterpretReplica", "ReviseReplica", "InterpretHealth", "AggregateStatus"], apiGroups: [crafts.example.io], apiVersions: [v1], kinds: [Studio]}]
  clientConfig: {url: "%s/interpret", caBundle: %s}
  timeoutSeconds: 5
  interpreterContextVersions: [v1alpha1]
`, server.URL, ca))
	eventually(t, is("", ns, "rb/craft-studio", "{.spec.replicas}", "4"))
	for _, m := range []string{"member1", "member2"} {
		eventually(t, is(m, ns, "studios/craft", "{.spec.workers}", "2"))
		must(t, member(m, "patch", "studios", "craft", "-n", ns, "--subresource=status", "--type=merge", "-p", `{"status":{"busy":2}}`)...)
	}
	eventually(t, is("", ns, "studios/craft", "{.status.clusters}", "2"))
	eventually(t, is("", ns, "rb/craft-studio", "{.status.aggregatedStatus[*].health}", "Unhealthy Unhealthy"))
}

func answerForStudios(w http.ResponseWriter, r *http.Request) {
	var c configv1alpha1.ResourceInterpreterContext
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil || c.Request == nil {
		http.Error(w, "no request", http.StatusBadRequest)
		return
	}
	patch := configv1alpha1.PatchTypeJSONPatch
	response := &configv1alpha1.ResourceInterpreterResponse{UID: c.Request.UID, Successful: true}
	switch c.Request.Operation {
	case configv1alpha1.InterpreterOperationInterpretReplica:
		response.Replicas = new(int32(4))
	case configv1alpha1.InterpreterOperationReviseReplica:
		response.Patch, response.PatchType = fmt.Appendf(nil, `[{"op":"replace","path":"/spec/workers","value":%d}]`, *c.Request.DesiredReplicas), &patch
	case configv1alpha1.InterpreterOperationAggregateStatus:
		response.Patch, response.PatchType = fmt.Appendf(nil, `[{"op":"add","path":"/status","value":{"clusters":%d}}]`, len(c.Request.AggregatedStatus)), &patch
	case configv1alpha1.InterpreterOperationInterpretHealth:
		response.Healthy = new(false)
	default:
		response.Successful, response.Status = false, &configv1alpha1.RequestStatus{Code: http.StatusNotImplemented, Message: "unexpected operation"}
	}
	_ = json.NewEncoder(w).Encode(configv1alpha1.ResourceInterpreterContext{Response: response})
}
