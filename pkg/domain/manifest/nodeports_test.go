package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A Service whose node ports the control plane allocated: of 80 and for health checks, not of 443.
func allocatedService(t *testing.T, ports string) string {
	t.Helper()
	obj := object(t, `{apiVersion: v1, kind: Service, metadata: {managedFields: [{manager: kubectl, operation: Update, fieldsV1: {
  "f:spec": {"f:ports": {"k:{\"port\":443,\"protocol\":\"TCP\"}": {"f:nodePort": {}}}}}}]},
  spec: {healthCheckNodePort: 30000, ports: [{port: 80, protocol: TCP, nodePort: 30001}, {port: 443, protocol: TCP, nodePort: 30002}]}}`)
	StripUnowned(obj)
	return `{apiVersion: v1, kind: Service, metadata: {annotations: {propagation.karmada.io/allocated-node-ports: "` +
		obj.GetAnnotations()["propagation.karmada.io/allocated-node-ports"] + `"}}, spec: ` + ports + "}"
}

func TestKeepNodePorts(t *testing.T) {
	const asAllocated = `{healthCheckNodePort: 30000, ports: [{port: 80, protocol: TCP, nodePort: 30001}, {port: 443, protocol: TCP, nodePort: 30002}]}`
	for name, tc := range map[string]struct {
		desired, observed, want string
		different               []string
	}{
		"the member has the same":       {asAllocated, asAllocated, asAllocated, nil},
		"the member has none yet":       {asAllocated, `{ports: [{port: 80, protocol: TCP}, {port: 443, protocol: TCP}]}`, asAllocated, nil},
		"a port that a user set wins":   {asAllocated, `{ports: [{port: 443, protocol: TCP, nodePort: 31002}]}`, asAllocated, nil},
		"another protocol of that port": {asAllocated, `{ports: [{port: 80, protocol: UDP, nodePort: 31001}]}`, asAllocated, nil},
		"the member chose others": {
			asAllocated, `{healthCheckNodePort: 31000, ports: [{port: 80, protocol: TCP, nodePort: 31001}, {port: 443, protocol: TCP, nodePort: 31002}]}`,
			`{healthCheckNodePort: 31000, ports: [{port: 80, protocol: TCP, nodePort: 31001}, {port: 443, protocol: TCP, nodePort: 30002}]}`,
			[]string{"spec.healthCheckNodePort 30000 is 31000 there", "spec.ports[0].nodePort 30001 is 31001 there"},
		},
		"an override wins": {
			`{ports: [{port: 80, protocol: TCP, nodePort: 30500}]}`, `{ports: [{port: 80, protocol: TCP, nodePort: 31001}]}`, `{ports: [{port: 80, protocol: TCP, nodePort: 30500}]}`, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			desired := object(t, allocatedService(t, tc.desired))
			different := KeepNodePorts(desired, object(t, `{apiVersion: v1, kind: Service, spec: `+tc.observed+`}`))
			if diff := cmp.Diff(tc.different, different); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(object(t, `{apiVersion: v1, kind: Service, spec: `+tc.want+`}`).Object["spec"], desired.Object["spec"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDropNodePorts(t *testing.T) {
	desired := object(t, allocatedService(t, `{healthCheckNodePort: 30000, ports: [{port: 80, protocol: TCP, nodePort: 30001}, {port: 443, protocol: TCP, nodePort: 30002}]}`))
	before := desired.DeepCopy()
	for _, tc := range []struct{ refused, want string }{
		{"spec.ports[0].nodePort", `{healthCheckNodePort: 30000, ports: [{port: 80, protocol: TCP}, {port: 443, protocol: TCP, nodePort: 30002}]}`},
		{"spec.healthCheckNodePort", `{ports: [{port: 80, protocol: TCP, nodePort: 30001}, {port: 443, protocol: TCP, nodePort: 30002}]}`},
		{"spec.ports[1].nodePort", ""}, // a user set it
	} {
		got := DropNodePorts(desired, func(path string) bool { return path == tc.refused })
		if (got == nil) != (tc.want == "") {
			t.Errorf("%s: got %v", tc.refused, got)
		} else if got != nil {
			if diff := cmp.Diff(object(t, `{apiVersion: v1, kind: Service, spec: `+tc.want+`}`).Object["spec"], got.Object["spec"]); diff != "" {
				t.Errorf("%s: %s", tc.refused, diff)
			}
		}
	}
	if diff := cmp.Diff(before, desired); diff != "" {
		t.Errorf("the manifest changed: %s", diff)
	}
}
