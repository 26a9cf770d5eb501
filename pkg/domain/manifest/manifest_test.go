package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return obj
}

func TestPrune(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{
			name: "server metadata and status go, the rest stays",
			in: `{apiVersion: example.io/v1, kind: Foo, metadata: {name: a, uid: u, generation: 3, resourceVersion: "1", creationTimestamp: "2024-01-01T00:00:00Z",
  deletionTimestamp: "2024-01-01T00:00:00Z", deletionGracePeriodSeconds: 3, selfLink: x, managedFields: [], finalizers: [f], ownerReferences: [], labels: {a: b}}, spec: {x: 1}, status: {y: 2}}`,
			want: `{apiVersion: example.io/v1, kind: Foo, metadata: {name: a, labels: {a: b}}, spec: {x: 1}}`,
		},
		{
			name: "revision annotations of a Deployment go",
			in:   `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, annotations: {deployment.kubernetes.io/revision: "1", deployment.kubernetes.io/revision-history: "1,2", k: v}}}`,
			want: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, annotations: {k: v}}}`,
		},
		{
			name: "a Deployment of another group is left alone",
			in:   `{apiVersion: example.io/v1, kind: Deployment, metadata: {name: a, annotations: {deployment.kubernetes.io/revision: "1"}}}`,
			want: `{apiVersion: example.io/v1, kind: Deployment, metadata: {name: a, annotations: {deployment.kubernetes.io/revision: "1"}}}`,
		},
		{
			name: "generated labels and the time to live of a Job go",
			in: `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {ttlSecondsAfterFinished: 5,
  selector: {matchLabels: {controller-uid: x, batch.kubernetes.io/controller-uid: x, keep: it}},
  template: {metadata: {labels: {controller-uid: x, job-name: a, batch.kubernetes.io/controller-uid: x, batch.kubernetes.io/job-name: a, keep: it}}}}}`,
			want: `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {selector: {matchLabels: {keep: it}}, template: {metadata: {labels: {keep: it}}}}}`,
		},
		{
			name: "a Job with a manual selector keeps its labels",
			in: `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {manualSelector: true, ttlSecondsAfterFinished: 5,
  selector: {matchLabels: {controller-uid: x}}, template: {metadata: {labels: {controller-uid: x}}}}}`,
			want: `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {manualSelector: true, selector: {matchLabels: {controller-uid: x}}, template: {metadata: {labels: {controller-uid: x}}}}}`,
		},
		{
			name: "the data of a token Secret become null",
			in:   `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: a, annotations: {kubernetes.io/service-account.uid: u}}, data: {token: eA==}}`,
			want: `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: a, annotations: {}}, data: null}`,
		},
		{
			name: "other Secrets keep their data",
			in:   `{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: a}, data: {token: eA==}}`,
			want: `{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: a}, data: {token: eA==}}`,
		},
		{
			name: "every generated token of a ServiceAccount goes, also two in a row",
			in:   `{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, secrets: [{name: a-token-1}, {name: a-token-2}, {name: b-token-1}, x]}`,
			want: `{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, secrets: [{name: b-token-1}, x]}`,
		},
		{
			name: "allocated addresses of a Service go",
			in:   `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], type: ClusterIP}}`,
			want: `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ClusterIP}}`,
		},
		{
			name: "a headless Service stays headless",
			in:   `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None, clusterIPs: [None]}}`,
			want: `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None, clusterIPs: [None]}}`,
		},
		{
			name: "the node chosen for a claim goes",
			in:   `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, annotations: {volume.kubernetes.io/selected-node: n, k: v}}}`,
			want: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, annotations: {k: v}}}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := object(t, tc.in)
			if err := Prune(got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object(t, tc.want).Object, got.Object); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPrune_InvalidJob(t *testing.T) {
	if err := Prune(object(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {parallelism: x}}`)); err == nil {
		t.Error("want an error")
	}
}

func TestBookkeep(t *testing.T) {
	obj := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {k: v}, labels: {l: m}}}`)
	if !Bookkeep(obj, "id") {
		t.Error("the first pass changes nothing")
	}
	want := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {l: m, work.karmada.io/permanent-id: id},
  annotations: {k: v, resourcetemplate.karmada.io/managed-annotations: "k,resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels",
    resourcetemplate.karmada.io/managed-labels: "l,work.karmada.io/permanent-id"}}}`)
	if diff := cmp.Diff(want.Object, obj.Object); diff != "" {
		t.Error(diff)
	}
	if Bookkeep(obj, "id") {
		t.Error("the second pass changes something")
	}
	if !Bookkeep(obj, "other") {
		t.Error("another id changes nothing")
	}
}

func TestBookkeep_WithoutLabels(t *testing.T) {
	obj := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)
	if !Bookkeep(obj, "") || Bookkeep(obj, "") {
		t.Error("not idempotent")
	}
	if got, ok := obj.GetAnnotations()["resourcetemplate.karmada.io/managed-labels"]; !ok || got != "" {
		t.Errorf("managed labels %q, %v", got, ok)
	}
}

func TestPrepare(t *testing.T) {
	obj := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: u, generation: 2, labels: {l: m}}}`)
	err := Prepare(obj, Origin{
		Binding: &BindingRef{Namespace: "ns", Name: "a-configmap", PermanentID: "b"}, UID: "u", Generation: 2,
		WorkNamespace: "karmada-es-m1", WorkName: "a-x", WorkPermanentID: "w", ConflictResolution: "abort",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a,
  labels: {l: m, karmada.io/managed: "true", resourcebinding.karmada.io/permanent-id: b, work.karmada.io/permanent-id: w},
  annotations: {resourcetemplate.karmada.io/generation: "2", resourcetemplate.karmada.io/uid: u,
    resourcebinding.karmada.io/namespace: ns, resourcebinding.karmada.io/name: a-configmap,
    work.karmada.io/namespace: karmada-es-m1, work.karmada.io/name: a-x, work.karmada.io/conflict-resolution: abort,
    resourcetemplate.karmada.io/managed-annotations: "resourcebinding.karmada.io/name,resourcebinding.karmada.io/namespace,resourcetemplate.karmada.io/generation,resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels,resourcetemplate.karmada.io/uid,work.karmada.io/conflict-resolution,work.karmada.io/name,work.karmada.io/namespace",
    resourcetemplate.karmada.io/managed-labels: "karmada.io/managed,l,resourcebinding.karmada.io/permanent-id,work.karmada.io/permanent-id"}}}`)
	if diff := cmp.Diff(want.Object, obj.Object); diff != "" {
		t.Error(diff)
	}
	before := obj.DeepCopy()
	if err := Prune(obj); err != nil || Bookkeep(obj, "w") || !cmp.Equal(before.Object, obj.Object) {
		t.Error("admission would change a prepared manifest")
	}
}

func TestStripOwnership_UndoesPrepare(t *testing.T) {
	for _, binding := range []*BindingRef{{Namespace: "ns", Name: "b", PermanentID: "i"}, {Name: "b", PermanentID: "i"}, nil} {
		const text = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {l: m}, annotations: {k: v}}}`
		obj := object(t, text)
		obj.SetLabels(map[string]string{"l": "m", "propagationpolicy.karmada.io/permanent-id": "p", "clusterpropagationpolicy.karmada.io/permanent-id": "c"})
		obj.SetAnnotations(map[string]string{"k": "v", "propagationpolicy.karmada.io/name": "p", "propagationpolicy.karmada.io/namespace": "n", "clusterpropagationpolicy.karmada.io/name": "c"})
		o := Origin{Binding: binding, UID: "u", Generation: 1, WorkNamespace: "n", WorkName: "w", WorkPermanentID: "i", ConflictResolution: "overwrite"}
		if err := Prepare(obj, o); err != nil {
			t.Fatal(err)
		}
		if !Owned(obj) {
			t.Error("a prepared manifest is not owned")
		}
		if !StripOwnership(obj) || StripOwnership(obj) {
			t.Error("want one change")
		}
		if diff := cmp.Diff(object(t, text).Object, obj.Object); diff != "" {
			t.Error(diff)
		}
	}
}

func TestConflictResolution(t *testing.T) {
	for _, tc := range []struct {
		annotation string
		binding    policyv1alpha1.ConflictResolution
		want       string
	}{
		{"overwrite", policyv1alpha1.ConflictAbort, "overwrite"},
		{"abort", policyv1alpha1.ConflictOverwrite, "abort"},
		{"Overwrite", policyv1alpha1.ConflictAbort, "abort"},
		{"", policyv1alpha1.ConflictOverwrite, "overwrite"},
		{"", "", "abort"},
	} {
		obj := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)
		obj.SetAnnotations(map[string]string{"work.karmada.io/conflict-resolution": tc.annotation})
		if got := ConflictResolution(obj, tc.binding); got != tc.want {
			t.Errorf("%+v: got %q", tc, got)
		}
	}
}

func TestRetainMetadata(t *testing.T) {
	desired := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: [x], annotations: {a: new}, labels: {l: new}}}`)
	observed := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, resourceVersion: "7", uid: u, ownerReferences: [{name: o}],
  annotations: {a: old, removed: x, member: it, resourcetemplate.karmada.io/managed-annotations: "a,removed", resourcetemplate.karmada.io/managed-labels: "gone,l"},
  labels: {l: old, gone: x, member: it}}}`)
	before := observed.DeepCopy()
	RetainMetadata(desired, observed)
	want := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, resourceVersion: "7", ownerReferences: [{name: o}],
  annotations: {a: new, member: it, resourcetemplate.karmada.io/managed-annotations: "a,removed", resourcetemplate.karmada.io/managed-labels: "gone,l"}, labels: {l: new, member: it}}}`)
	if diff := cmp.Diff(want.Object, desired.Object); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before.Object, observed.Object); diff != "" {
		t.Error("observed changed:", diff)
	}
}

func TestEqual(t *testing.T) {
	for _, tc := range []struct {
		name, a, b string
		want       bool
	}{
		{"status and server metadata are ignored",
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: u, resourceVersion: "3", generation: 1}, data: {k: v}, status: {x: 1}}`, true},
		{"data count", `{apiVersion: v1, kind: ConfigMap, data: {k: v}}`, `{apiVersion: v1, kind: ConfigMap, data: {k: w}}`, false},
		{"an added field counts", `{apiVersion: v1, kind: ConfigMap}`, `{apiVersion: v1, kind: ConfigMap, data: {k: w}}`, false},
		{"labels count", `{apiVersion: v1, kind: ConfigMap, metadata: {labels: {a: b}}}`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: ""}}`, false},
		{"annotations count", `{apiVersion: v1, kind: ConfigMap, metadata: {annotations: {a: b}}}`, `{apiVersion: v1, kind: ConfigMap, metadata: {annotations: {a: c}}}`, false},
		{"null is absent", `{apiVersion: v1, kind: ConfigMap, spec: {x: null}}`, `{apiVersion: v1, kind: ConfigMap, spec: {}}`, true},
		{"an empty map is not absent", `{apiVersion: v1, kind: Foo, spec: {x: {}}}`, `{apiVersion: v1, kind: Foo, spec: {}}`, false},
		{"numbers compare by value", `{apiVersion: v1, kind: Foo, spec: {x: 1.0}}`, `{apiVersion: v1, kind: Foo, spec: {x: 1}}`, true},
		{"lists compare in order", `{apiVersion: v1, kind: Foo, spec: {x: [1, 2]}}`, `{apiVersion: v1, kind: Foo, spec: {x: [2, 1]}}`, false},
		{"addresses of a Service are ignored",
			`{apiVersion: v1, kind: Service, spec: {clusterIP: 10.0.0.1, ports: [{port: 80}]}}`,
			`{apiVersion: v1, kind: Service, spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 80}]}}`, true},
		{"ports of a Service count",
			`{apiVersion: v1, kind: Service, spec: {clusterIP: 10.0.0.1, ports: [{port: 80}]}}`,
			`{apiVersion: v1, kind: Service, spec: {clusterIP: 10.0.0.1, ports: [{port: 81}]}}`, false},
		{"the revision of a Deployment is ignored",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {annotations: {deployment.kubernetes.io/revision: "1"}}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {annotations: {deployment.kubernetes.io/revision: "2"}}}`, true},
		{"the template generation of a DaemonSet is ignored",
			`{apiVersion: apps/v1, kind: DaemonSet, metadata: {annotations: {deprecated.daemonset.template.generation: "1"}}}`,
			`{apiVersion: apps/v1, kind: DaemonSet, metadata: {annotations: {deprecated.daemonset.template.generation: "2"}}}`, true},
		{"two different empty lists count", `{apiVersion: v1, kind: Foo, spec: {a: [], b: 1}}`, `{apiVersion: v1, kind: Foo, spec: {a: {}, b: 1}}`, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, b := object(t, tc.a), object(t, tc.b)
			x, y := a.DeepCopy(), b.DeepCopy()
			if got := Equal(a, b); got != tc.want {
				t.Errorf("got %v", got)
			}
			if got := Equal(b, a); got != tc.want {
				t.Errorf("the other way round: got %v", got)
			}
			if !cmp.Equal(x.Object, a.Object) || !cmp.Equal(y.Object, b.Object) {
				t.Error("an input changed")
			}
		})
	}
}

func BenchmarkBookkeep_UpToDate(b *testing.B) {
	obj := object(b, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {k: v}, labels: {l: m}}}`)
	Bookkeep(obj, "id")
	b.ReportAllocs()
	for b.Loop() {
		Bookkeep(obj, "id")
	}
}
