package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// promotable are objects that a member has before they are promoted. Kubernetes gives each of them something that is
// unique in its cluster: addresses, ports, volumes and claims.
const promotable = `
apiVersion: v1
kind: Service
metadata: {name: internal}
spec: {selector: {app: web}, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: headless}
spec: {clusterIP: None, selector: {app: web}, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: node}
spec: {type: NodePort, selector: {app: web}, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: balanced}
spec: {type: LoadBalancer, externalTrafficPolicy: Local, selector: {app: web}, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: external}
spec: {type: ExternalName, externalName: example.com}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: VOLUME}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  storageClassName: VOLUME
  hostPath: {path: /tmp/VOLUME}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: bound}
spec: {accessModes: [ReadWriteOnce], storageClassName: VOLUME, volumeName: VOLUME, resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store, labels: {app: store}}
spec:
  serviceName: headless
  replicas: 2
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec:
      containers: [{name: store, image: IMAGE, volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: VOLUME, resources: {requests: {storage: 1Gi}}}
`

// TestPromote_KeepsWhatTheMemberAllocated promotes Services of each type, claims, and a StatefulSet with claims. In the
// member they stay the same objects with the same addresses, ports and volumes.
func TestPromote_KeepsWhatTheMemberAllocated(t *testing.T) {
	ns := namespace(t)
	eventually(t, is("member1", "", "ns/"+ns, "{.metadata.name}", ns))
	objects := strings.NewReplacer("VOLUME", ns, "IMAGE", image).Replace(promotable)
	mustWith(t, objects, member("member1", "apply", "-n", ns, "-f", "-")...)
	t.Cleanup(func() { ctl("", member("member1", "delete", "pv", ns, "--wait=false")...) })
	const service = "{.metadata.uid} {.spec.type} {.spec.clusterIP} {.spec.ports[*].nodePort} {.spec.healthCheckNodePort}"
	for _, tc := range []struct{ kind, name, allocated string }{
		{"service", "internal", service},
		{"service", "headless", service},
		{"service", "node", service},
		{"service", "balanced", service},
		{"service", "external", service},
		{"persistentvolumeclaim", "data", "{.metadata.uid} {.spec.volumeName}"},
		{"persistentvolumeclaim", "bound", "{.metadata.uid} {.spec.volumeName}"},
		{"statefulset", "store", "{.metadata.uid} {.spec.replicas} {.spec.volumeClaimTemplates[*].metadata.name} {.metadata.generation}"},
	} {
		t.Run(tc.kind+"/"+tc.name, func(t *testing.T) {
			object := tc.kind + "/" + tc.name
			before, err := value("member1", ns, object, tc.allocated)
			if err != nil {
				t.Fatal(err)
			}
			must(t, "promote", tc.kind, tc.name, "-n", ns, "-C", "member1")
			binding := fmt.Sprintf("rb/%s-%s", tc.name, tc.kind)
			eventually(t, all(
				is("", ns, binding, `{.status.conditions[?(@.type=="FullyApplied")].status}`, "True"),
				is("member1", ns, object, `{.metadata.labels.karmada\.io/managed}`, "true"),
			))
			if err := is("member1", ns, object, tc.allocated, before)(); err != nil {
				t.Error(err)
			}
		})
	}
}
