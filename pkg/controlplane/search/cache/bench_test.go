package cache

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// pod returns a Pod of about 5 KB.
func pod(b *testing.B, i int) *unstructured.Unstructured {
	b.Helper()
	text := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-7d9f8c6b5d-%05d","namespace":"team-%d","uid":"8c1f6a2e-0b7d-4d3c-9a51-%012d","resourceVersion":"%d","creationTimestamp":"2026-11-23T10:00:00Z","labels":{"app":"web","pod-template-hash":"7d9f8c6b5d","tier":"front"},"annotations":{"prometheus.io/scrape":"true","checksum/config":"%064x"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-7d9f8c6b5d","uid":"11111111-0b7d-4d3c-9a51-000000000000","controller":true,"blockOwnerDeletion":true}]},"spec":{"nodeName":"node-%d","containers":[%s],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"default","schedulerName":"default-scheduler","tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"volumes":[{"name":"kube-api-access","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}}]}}]},"status":{"phase":"Running","podIP":"10.0.%d.%d","conditions":[{"type":"Initialized","status":"True","lastTransitionTime":"2026-11-23T10:00:01Z"},{"type":"Ready","status":"True","lastTransitionTime":"2026-11-23T10:00:09Z"}]}}`
	container := `{"name":"web","image":"registry.example/team/web:1.2.3","ports":[{"containerPort":8080,"protocol":"TCP"}],"env":[{"name":"A","value":"%d"},{"name":"POD","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}}],"resources":{"limits":{"cpu":"500m","memory":"512Mi"},"requests":{"cpu":"100m","memory":"128Mi"}},"volumeMounts":[{"name":"kube-api-access","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],"livenessProbe":{"httpGet":{"path":"/healthz","port":8080,"scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}`
	containers := fmt.Sprintf(container, i) + "," + fmt.Sprintf(container, i+1) + "," + fmt.Sprintf(container, i+2)
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(fmt.Appendf(nil, text, i, i%10, i, 1000+i, i*7919, i%100, containers, i/250, i%250)); err != nil {
		b.Fatal(err)
	}
	return u
}

// BenchmarkObject reports what it takes to keep and to read a Pod, and how much memory it takes.
func BenchmarkObject(b *testing.B) {
	c := &codec{}
	raw, err := pod(b, 1).MarshalJSON()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("keep", func(b *testing.B) {
		size := 0
		for i := range b.N {
			o, err := c.keep(pod(b, i), nil, "m1")
			if err != nil {
				b.Fatal(err)
			}
			size += o.size()
		}
		b.ReportMetric(float64(size)/float64(b.N), "cached-B/op")
		b.ReportMetric(float64(len(raw)), "json-B/op")
	})
	o, err := c.keep(pod(b, 1), nil, "m1")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("decode for a field selector", func(b *testing.B) {
		for range b.N {
			if _, err := o.Decode(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		for range b.N {
			if _, err := o.JSON(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
