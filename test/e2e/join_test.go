//go:build !kind

package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// A cluster that joins is used at once; it leaves although the policies of what runs there are gone; it can be abandoned
// and joined again.
func TestJoin_UseLeaveAbandonAndJoinAgain(t *testing.T) {
	ns := namespace(t)
	o := newOutsider(t, "joiner")
	join := func() { must(t, "join", "m4", "--cluster-kubeconfig", o.cluster.Kubeconfig) }
	join()
	t.Cleanup(func() { ctl("", "unjoin", "m4", "--force") }) // of a test that fails

	divided := strings.TrimSpace(to("m4")) + "\nreplicaScheduling: {replicaSchedulingType: Divided}"
	apply(t, ns, deployment("web", 2), policy("web", divided), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}",
		policyFor("settings", "{apiVersion: v1, kind: ConfigMap, name: settings}", to("m4", "member1")))
	eventually(t, all(
		is("", ns, "deploy/web", "{.status.readyReplicas}", "2"),
		func() error { return o.has("configmap/settings", ns) },
	))

	// Its credentials are revoked. The same command renews them, and what runs there goes on running.
	inside, err := kubernetes.NewForConfig(o.cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	if err := inside.CoreV1().Secrets("karmada-cluster").DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if r := ctl("", "join", "m4", "--cluster-kubeconfig", o.cluster.Kubeconfig); r.code != 0 || !strings.Contains(r.err, "secret karmada-cluster/m4 has new credentials") {
		t.Fatalf("renewing the credentials: %s%s", r.out, r.err)
	}
	apply(t, ns, deployment("web", 3))
	eventually(t, is("", ns, "deploy/web", "{.status.readyReplicas}", "3"))

	// What is preserved stays when it leaves, with what it depends on and the namespace, as the plan says.
	preserved := strings.Replace(policy("kept", to("m4")), "spec:\n", "spec:\n  preserveResourcesOnDeletion: true\n  propagateDeps: true\n", 1)
	apply(t, ns, configMapNamed("depends"), preserved, strings.Replace(deployment("kept", 1), "containers:", "volumes: [{name: c, configMap: {name: depends}}]\n      containers:", 1))
	eventually(t, all(func() error { return o.has("deploy/kept", ns) }, func() error { return o.has("configmap/depends", ns) }))
	if r := ctl("", "plan", "--unjoin", "m4"); !strings.Contains(r.out, "what requires it is preserved") || !strings.Contains(r.out, "kept: it has ConfigMap "+ns+"/depends, which stays") {
		t.Errorf("the plan says:\n%s%s", r.out, r.err)
	}

	must(t, "delete", "pp", "web", "settings", "-n", ns)
	eventually(t, is("", ns, "deploy/web", `{.metadata.labels.propagationpolicy\.karmada\.io/permanent-id}`, ""))
	must(t, "unjoin", "m4", "--wait", under.timeout().String())
	eventually(t, targets(ns, "settings-configmap", "member1"))
	for _, object := range []string{"deploy/web", "configmap/settings"} {
		if o.has(object, ns) == nil {
			t.Errorf("%s is left in the cluster", object)
		}
	}
	for _, object := range []string{"deploy/kept", "configmap/depends"} {
		if err := o.has(object, ns); err != nil {
			t.Errorf("%s is preserved: %v", object, err)
		}
	}
	must(t, "delete", "pp/kept", "deploy/kept", "configmap/depends", "-n", ns)

	join()
	apply(t, ns, policy("web", to("m4")))
	eventually(t, is("", ns, "deploy/web", "{.status.readyReplicas}", "3"))
	must(t, "unjoin", "m4", "--abandon")
	join()
	eventually(t, all(
		func() error {
			if r := ctl("", "get", "configmap", "m4-abandoned", "-n", "karmada-cluster", "-s", "karmada"); !strings.Contains(r.err, "not found") {
				return fmt.Errorf("the record of the abandoned cluster is there: %s%s", r.out, r.err)
			}
			return nil
		},
		shows(row{"NAME": "m4", "MODE": "Push", "READY": "True"}, "get", "clusters"),
		is("", ns, "deploy/web", "{.status.readyReplicas}", "3"),
	))
	must(t, "unjoin", "m4", "--wait", under.timeout().String())
	fails(t, "", "get", "cluster", "m4")
}
