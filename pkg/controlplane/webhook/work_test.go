package webhook

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

const (
	bookedAnnotations = `resourcetemplate.karmada.io/managed-annotations: "resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels", resourcetemplate.karmada.io/managed-labels: work.karmada.io/permanent-id`
	bookedMeta        = `annotations: {` + bookedAnnotations + `}, labels: {work.karmada.io/permanent-id: w}`
)

func work(labels, spec string) string {
	return `{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {name: a, labels: {` + labels + `}}, spec: ` + spec + `}`
}

func manifests(m ...string) string {
	return `{workload: {manifests: [` + strings.Join(m, ",") + `]}}`
}

func TestMutateWork(t *testing.T) {
	const id = "work.karmada.io/permanent-id: w"
	for _, tc := range []struct{ name, in, want string }{
		{
			name: "a Work without id",
			in:   work("", manifests(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {n: "1"}, big: 9007199254740993}`)),
			want: work("work.karmada.io/permanent-id: id-1", manifests(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c,
  labels: {work.karmada.io/permanent-id: id-1}, annotations: {`+bookedAnnotations+`}}, data: {n: "1"}, big: 9007199254740993}`)),
		},
		{
			name: "what is in shape stays untouched, what is not is shaped",
			in:   work(id, manifests(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, `+bookedMeta+`}}`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: d, uid: u}, status: {}}`)),
			want: work(id, manifests(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, `+bookedMeta+`}}`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: d, `+bookedMeta+`}}`)),
		},
		{
			name: "a status goes even if the books are right",
			in:   work(id, manifests(`{apiVersion: v1, kind: Pod, metadata: {name: c, `+bookedMeta+`}, status: {phase: Running}}`)),
			want: work(id, manifests(`{apiVersion: v1, kind: Pod, metadata: {name: c, `+bookedMeta+`}}`)),
		},
		{
			name: "an allocated address goes even if the books are right",
			in:   work(id, manifests(`{apiVersion: v1, kind: Service, metadata: {name: c, `+bookedMeta+`}, spec: {clusterIP: 10.0.0.1}}`)),
			want: work(id, manifests(`{apiVersion: v1, kind: Service, metadata: {name: c, `+bookedMeta+`}, spec: {}}`)),
		},
		{name: "no workload", in: work(id, `{}`), want: work(id, `{workload: {}}`)},
		{name: "no manifests", in: work(id, `{workload: {manifests: []}, suspendDispatching: false}`), want: work(id, `{workload: {}, suspendDispatching: false}`)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := question{path: "/mutate-work", object: tc.in}
			resp := ask(t, deps(), q)
			wantObject(t, q, resp, tc.want)
			again, err := json.Marshal(patchedObject(t, tc.in, resp))
			if err != nil {
				t.Fatal(err)
			}
			if resp := ask(t, deps(), question{path: "/mutate-work", operation: admissionv1.Update, object: string(again)}); len(resp.Patch) > 0 {
				t.Errorf("the second pass changes %s", resp.Patch)
			}
		})
	}
}

func TestMutateWork_InShape(t *testing.T) {
	for _, m := range []string{
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, ` + bookedMeta + `}}`,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: c, ` + bookedMeta + `}, spec: {replicas: 1}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: c, ` + bookedMeta + `}, spec: {clusterIP: None}}`,
		`{apiVersion: batch/v1, kind: Job, metadata: {name: c, ` + bookedMeta + `}, spec: {template: {spec: {containers: []}}}}`,
		`{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: c, ` + bookedMeta + `}, data: {a: eA==}}`,
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: c, ` + bookedMeta + `}, secrets: []}`,
		`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, ` + bookedMeta + `}}`,
	} {
		resp := ask(t, deps(), question{path: "/mutate-work", object: work("work.karmada.io/permanent-id: w", manifests(m))})
		if !resp.Allowed || len(resp.Patch) > 0 {
			t.Errorf("%s: %v %s", m, resp.Allowed, resp.Patch)
		}
	}
}

func TestMutateWork_BadManifest(t *testing.T) {
	resp := ask(t, deps(), question{path: "/mutate-work", object: work("", manifests(`{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: x}}`))})
	if resp.Allowed || resp.Result.Code != 500 || !strings.Contains(resp.Result.Message, "manifest 0") {
		t.Errorf("%+v", resp.Result)
	}
}

func BenchmarkMutateWork(b *testing.B) {
	handlers, err := Handlers(deps())
	if err != nil {
		b.Fatal(err)
	}
	q := question{path: "/mutate-work", object: work("work.karmada.io/permanent-id: w", manifests(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: c, namespace: default, `+bookedMeta+`},
  spec: {replicas: 2, selector: {matchLabels: {app: nginx}}, template: {metadata: {labels: {app: nginx}}, spec: {containers: [{name: nginx, image: "nginx:1.27", ports: [{containerPort: 80}], resources: {requests: {cpu: 100m}}}]}}}}`))}
	body := q.body(b)
	b.ReportAllocs()
	for b.Loop() {
		post(b, handlers[q.path], q.path, "application/json", body)
	}
}

func BenchmarkMutateBinding(b *testing.B) {
	handlers, err := Handlers(deps())
	if err != nil {
		b.Fatal(err)
	}
	q := question{path: "/mutate-resourcebinding", object: `{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {name: a, namespace: default, annotations: {a: b}, finalizers: [x]},
  spec: {resource: {apiVersion: apps/v1, kind: Deployment, namespace: default, name: c, uid: u, resourceVersion: "1"}, replicas: 2, schedulerName: default-scheduler, conflictResolution: Abort,
    placement: {clusterAffinity: {clusterNames: [m1, m2]}}, replicaRequirements: {resourceRequest: {cpu: 100m}}}, status: {}}`}
	body := q.body(b)
	b.ReportAllocs()
	for b.Loop() {
		post(b, handlers[q.path], q.path, "application/json", body)
	}
}
