package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// j
func TestDeletion_TemplateGoesEverywhere(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, deployment("nginx", 1), policy("nginx", to("member1", "member2")))
	eventually(t, is("", ns, "deploy/nginx", "{.status.readyReplicas}", "2"))
	must(t, "delete", "deploy", "nginx", "-n", ns)
	eventually(t, all(absent("member1", ns, "deploy/nginx"), absent("member2", ns, "deploy/nginx"), absent("", ns, "rb/nginx-deployment")))
}

func TestDeletion_PolicyLeavesTheWorkloads(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, deployment("nginx", 1), policy("nginx", to("member1", "member2")))
	eventually(t, is("", ns, "deploy/nginx", "{.status.readyReplicas}", "2"))
	must(t, "delete", "pp", "nginx", "-n", ns)
	eventually(t, is("", ns, "deploy/nginx", `{.metadata.labels.propagationpolicy\.karmada\.io/permanent-id}`, ""))
	if err := all(
		is("member1", ns, "deploy/nginx", "{.status.readyReplicas}", "1"),
		is("member2", ns, "deploy/nginx", "{.status.readyReplicas}", "1"),
	)(); err != nil {
		t.Error(err)
	}
}

// k
func TestConflict_ExistingObjectsAreNotTakenOver(t *testing.T) {
	ns := namespace(t)
	// The namespace gets to the member by itself.
	eventually(t, is("member1", "", "ns/"+ns, "{.metadata.name}", ns))
	mustWith(t, deployment("nginx", 3), member("member1", "apply", "-n", ns, "-f", "-")...)

	apply(t, ns, deployment("nginx", 1), policy("nginx", to("member1")))
	eventually(t, is("", ns, "rb/nginx-deployment", `{.status.conditions[?(@.type=="FullyApplied")].status}`, "False"))
	eventually(t, shows(row{"NAME": "nginx", "CLUSTER": "member1", "ADOPTION": "N"}, "get", "deploy", "-n", ns))
	if err := is("member1", ns, "deploy/nginx", "{.spec.replicas}", "3")(); err != nil {
		t.Error(err)
	}

	must(t, "patch", "pp", "nginx", "-n", ns, "--type=merge", "-p", `{"spec":{"conflictResolution":"Overwrite"}}`)
	eventually(t, shows(row{"NAME": "nginx", "CLUSTER": "member1", "READY": "1/1", "ADOPTION": "Y"}, "get", "deploy", "-n", ns))
}

func TestDrift_IsReverted(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, deployment("nginx", 1), policy("nginx", to("member1")))
	eventually(t, is("", ns, "deploy/nginx", "{.status.readyReplicas}", "1"))

	must(t, member("member1", "patch", "deploy", "nginx", "-n", ns, "-p", `{"spec":{"replicas":4}}`)...)
	eventually(t, is("member1", ns, "deploy/nginx", "{.spec.replicas}", "1"))

	uid, err := value("member1", ns, "deploy/nginx", "{.metadata.uid}")
	if err != nil {
		t.Fatal(err)
	}
	must(t, member("member1", "delete", "deploy", "nginx", "-n", ns)...)
	eventually(t, func() error {
		now, err := value("member1", ns, "deploy/nginx", "{.metadata.uid}")
		if err == nil && now == uid {
			err = fmt.Errorf("the object is still the old one")
		}
		return err
	})
	eventually(t, is("member1", ns, "deploy/nginx", "{.status.readyReplicas}", "1"))
}

// Policies that are deleted together leave what they delivered, overrides included.
func TestPolicies_DeletedTogetherLeaveWhatIsDelivered(t *testing.T) {
	ns := namespace(t)
	const override = `
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: web}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  overrideRules:
  - targetCluster: {clusterNames: [member1]}
    overriders: {plaintext: [{path: /spec/replicas, operator: replace, value: 0}]}
`
	policies := override + "---" + policy("web", to("member1"))
	apply(t, ns, override, deployment("web", 2), policy("web", to("member1")))
	eventually(t, is("member1", ns, "deploy/web", "{.spec.replicas}", "0"))
	mustWith(t, policies, "delete", "-n", ns, "-f", "-")
	eventually(t, is("", ns, "deploy/web", `{.metadata.labels.propagationpolicy\.karmada\.io/permanent-id}`, ""))
	// A later change of the same kind, which enqueues the same bindings, shows that this one was looked at.
	apply(t, ns, strings.ReplaceAll(override, "web", "later"), deployment("later", 2), policy("later", to("member1")))
	eventually(t, is("member1", ns, "deploy/later", "{.spec.replicas}", "0"))
	mustWith(t, strings.ReplaceAll(override, "web", "later"), "delete", "-n", ns, "-f", "-")
	eventually(t, is("member1", ns, "deploy/later", "{.spec.replicas}", "2"))
	if err := is("member1", ns, "deploy/web", "{.spec.replicas}", "0")(); err != nil {
		t.Error(err)
	}
}
