package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// What is preserved stays with what it depends on, and with its namespace, as the plan says; so does what others put there.
func TestDeletion_KeepsWhatIsPreserved(t *testing.T) {
	ns := namespace(t)
	other := ns + "-b"
	must(t, "create", "namespace", other)
	preserved := strings.Replace(policy("nginx", to("member1", "member2")), "spec:\n", "spec:\n  preserveResourcesOnDeletion: true\n  propagateDeps: true\n", 1)
	uses := strings.Replace(deployment("nginx", 1), "containers:", "volumes: [{name: c, configMap: {name: settings}}, {name: s, secret: {secretName: key}}]\n      containers:", 1)
	apply(t, ns, configMapNamed("settings"), "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {a: b}", preserved, uses)
	apply(t, other, deployment("web", 1), policy("web", to("member1", "member2")))
	both := func(check func(cluster, ns, object string) func() error, ns string, objects ...string) func() error {
		var checks []func() error
		for _, object := range objects {
			checks = append(checks, check("member1", ns, object), check("member2", ns, object))
		}
		return all(checks...)
	}
	there := func(cluster, ns, object string) func() error {
		return is(cluster, ns, object, "{.metadata.name}", object[strings.Index(object, "/")+1:])
	}
	eventually(t, both(there, ns, "deploy/nginx", "cm/settings", "secret/key"))
	eventually(t, both(there, other, "deploy/web"))
	mustWith(t, configMapNamed("theirs"), member("member1", "apply", "-n", other, "-f", "-")...)

	if r := ctl("", "plan", "--delete", "deployment/nginx", "-n", ns); strings.Contains(r.out, "deleted") || !strings.Contains(r.out, "what requires it is preserved") {
		t.Errorf("the plan says:\n%s%s", r.out, r.err)
	}
	must(t, "delete", "deploy", "nginx", "-n", ns)
	eventually(t, all(absent("", ns, "rb/nginx-deployment"), both(func(cluster, ns, object string) func() error {
		return is(cluster, ns, object, `{.metadata.labels.karmada\.io/managed}`, "")
	}, ns, "deploy/nginx", "cm/settings", "secret/key")))
	must(t, "delete", "ns", ns, other)
	eventually(t, all(absent("", "", "ns/"+ns), absent("", "", "ns/"+other), absent("member2", "", "ns/"+other), absent("member1", other, "deploy/web")))
	for _, name := range []string{"member1", "member2"} {
		eventually(t, is(name, "", "ns/"+ns, `{.metadata.labels.karmada\.io/managed}{.status.phase}`, "Active"))
	}
	eventually(t, is("member1", "", "ns/"+other, `{.metadata.labels.karmada\.io/managed}{.status.phase}`, "Active"))
	if err := all(there("member1", other, "cm/theirs"), both(there, ns, "deploy/nginx", "cm/settings", "secret/key"))(); err != nil {
		t.Error(err)
	}
}

// k
func TestConflict_ExistingObjectsAreNotTakenOver(t *testing.T) {
	inBothModes(t, conflictExistingObjectsAreNotTakenOver)
}

func conflictExistingObjectsAreNotTakenOver(t *testing.T, name string) {
	ns := namespace(t)
	// The namespace gets to the member by itself.
	eventually(t, is(name, "", "ns/"+ns, "{.metadata.name}", ns))
	mustWith(t, deployment("nginx", 3), member(name, "apply", "-n", ns, "-f", "-")...)

	apply(t, ns, deployment("nginx", 1), policy("nginx", to(name)))
	eventually(t, is("", ns, "rb/nginx-deployment", `{.status.conditions[?(@.type=="FullyApplied")].status}`, "False"))
	eventually(t, shows(row{"NAME": "nginx", "CLUSTER": name, "ADOPTION": "N"}, "get", "deploy", "-n", ns))
	if err := is(name, ns, "deploy/nginx", "{.spec.replicas}", "3")(); err != nil {
		t.Error(err)
	}

	must(t, "patch", "pp", "nginx", "-n", ns, "--type=merge", "-p", `{"spec":{"conflictResolution":"Overwrite"}}`)
	eventually(t, shows(row{"NAME": "nginx", "CLUSTER": name, "READY": "1/1", "ADOPTION": "Y"}, "get", "deploy", "-n", ns))
}

func TestDrift_IsReverted(t *testing.T) { inBothModes(t, driftIsReverted) }

func driftIsReverted(t *testing.T, name string) {
	ns := namespace(t)
	apply(t, ns, deployment("nginx", 1), policy("nginx", to(name)))
	eventually(t, is("", ns, "deploy/nginx", "{.status.readyReplicas}", "1"))

	must(t, member(name, "patch", "deploy", "nginx", "-n", ns, "-p", `{"spec":{"replicas":4}}`)...)
	eventually(t, is(name, ns, "deploy/nginx", "{.spec.replicas}", "1"))

	uid, err := value(name, ns, "deploy/nginx", "{.metadata.uid}")
	if err != nil {
		t.Fatal(err)
	}
	must(t, member(name, "delete", "deploy", "nginx", "-n", ns)...)
	eventually(t, func() error {
		now, err := value(name, ns, "deploy/nginx", "{.metadata.uid}")
		if err == nil && now == uid {
			err = fmt.Errorf("the object is still the old one")
		}
		return err
	})
	eventually(t, is(name, ns, "deploy/nginx", "{.status.readyReplicas}", "1"))
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
