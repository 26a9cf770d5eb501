//go:build kind

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// audit has the API server of the host log the requests of the operator.
func (o *operator) audit(t *testing.T) {
	t.Helper()
	const manifest, policy = "/etc/kubernetes/manifests/kube-apiserver.yaml", "/etc/kubernetes/pki/audit.yaml"
	o.file(t, "audit.yaml", "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata, users: ['system:serviceaccount:operator:karmada-operator']}, {level: None}]\n")
	o.does(t, "docker cp audit.yaml "+node("host")+":"+policy)
	docker(t, "exec", node("host"), "sed", "-i", `s#^    - kube-apiserver$#&\n    - --audit-log-path=-\n    - --audit-policy-file=`+policy+"#", manifest)
	within(t, 2*time.Minute, func() error {
		r := o.run("kubectl --context host get --raw /readyz && kubectl --context host -n kube-system get pod kube-apiserver-" + node("host") + " -o jsonpath='{.spec.containers[0].command} {.status.containerStatuses[0].ready}'")
		if r.code != 0 || !strings.Contains(r.out, policy) || !strings.HasSuffix(r.out, " true") {
			return fmt.Errorf("the API server of the host does not log requests: %s%s", r.out, r.err)
		}
		return nil
	})
}

// testRights compares the rights that the chart gives the operator with what it did: it has no others.
func (o *operator) testRights(t *testing.T) {
	// What it does in cases that are not tested here.
	used := []string{
		"get pods/log.",                     // of pods that fail
		"list karmadas.operator.karmada.io", // of API servers that do not stream lists
		"patch events.",                     // that happen again
		"patch nodes.",                      // whose disk etcd uses
	}
	for line := range strings.SplitSeq(docker(t, "exec", node("host"), "sh", "-c", "zcat -f /var/log/pods/kube-system_kube-apiserver-*/kube-apiserver/*.log*"), "\n") {
		var e auditv1.Event
		i := strings.Index(line, `{"kind":"Event"`)
		if i < 0 || json.Unmarshal([]byte(line[i:]), &e) != nil || e.ObjectRef == nil {
			continue
		}
		resource := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			resource += "/" + e.ObjectRef.Subresource
		}
		if did := e.Verb + " " + resource + "." + e.ObjectRef.APIGroup; !slices.Contains(used, did) {
			used = append(used, did)
		}
	}
	slices.Sort(used)
	t.Logf("the operator did %q", used)
	for _, line := range []string{o.own + "get clusterrole karmada-operator -o json", o.own + "get role karmada-operator -o json"} {
		role := &rbacv1.ClusterRole{} // as a Role
		if err := json.Unmarshal([]byte(o.does(t, line)), role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						right := verb + " " + resource + "." + group
						applied := verb == "create" && slices.Contains(used, "patch "+resource+"."+group) // to apply what is not there takes both
						if !applied && !slices.Contains(used, right) {
							t.Errorf("the chart gives the right to %s, which the operator did not use", right)
						}
					}
				}
			}
		}
	}
}
