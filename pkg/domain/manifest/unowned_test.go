package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStripUnowned(t *testing.T) {
	const managed = "managedFields: [{manager: kubectl, operation: Update, fieldsV1: {"
	for name, tc := range map[string]struct{ in, want string }{
		"a Service": {
			`{apiVersion: v1, kind: Service, metadata: {` + managed + `"f:spec": {"f:type": {}, "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {"f:port": {}},
  "k:{\"port\":443,\"protocol\":\"TCP\"}": {"f:port": {}, "f:nodePort": {}}}}}}]},
  spec: {type: NodePort, ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, healthCheckNodePort: 30000, ports: [
  {port: 80, protocol: TCP, nodePort: 30001}, {port: 443, protocol: TCP, nodePort: 30002}]}}`,
			`{type: NodePort, healthCheckNodePort: 30000, ports: [{port: 80, protocol: TCP, nodePort: 30001}, {port: 443, protocol: TCP, nodePort: 30002}]}`,
		},
		"what a user set": {
			`{apiVersion: v1, kind: Service, metadata: {` + managed + `"f:spec": {"f:ipFamilyPolicy": {}, "f:ipFamilies": {}}}}]}, spec: {ipFamilies: [IPv4, IPv6], ipFamilyPolicy: RequireDualStack}}`,
			`{ipFamilies: [IPv4, IPv6], ipFamilyPolicy: RequireDualStack}`,
		},
		"what the status has owned": {
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {managedFields: [{subresource: status, fieldsV1: {"f:spec": {"f:storageClassName": {}}}}]}, spec: {storageClassName: standard, volumeName: v}}`,
			`{volumeName: v}`,
		},
		"nothing is known of the managers": {
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {storageClassName: standard}}`, `{storageClassName: standard}`,
		},
		"a Pod": {
			`{apiVersion: v1, kind: Pod, metadata: {` + managed + `"f:spec": {"f:priorityClassName": {}}}}]}, spec: {priority: 5, priorityClassName: high, tolerations: [{key: a}], nodeSelector: {a: b}}}`,
			`{priorityClassName: high, nodeSelector: {a: b}}`,
		},
		"an Ingress": {
			`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {` + managed + `"f:spec": {"f:rules": {}}}}]}, spec: {ingressClassName: nginx, rules: []}}`, `{rules: []}`,
		},
		"another kind": {
			`{apiVersion: example.io/v1, kind: Pod, metadata: {` + managed + `}}]}, spec: {priority: 5}}`, `{priority: 5}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := object(t, tc.in)
			StripUnowned(obj)
			if diff := cmp.Diff(object(t, "{apiVersion: v1, kind: X, spec: "+tc.want+"}").Object["spec"], obj.Object["spec"]); diff != "" {
				t.Error(diff)
			}
		})
	}
	role := object(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, aggregationRule: {}, rules: [{verbs: ["*"]}]}`)
	StripUnowned(role)
	if diff := cmp.Diff([]any{}, role.Object["rules"]); diff != "" {
		t.Errorf("the rules of an aggregated ClusterRole: %s", diff)
	}
}
