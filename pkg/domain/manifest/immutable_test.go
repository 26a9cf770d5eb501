package manifest

import "testing"

func TestImmutable(t *testing.T) {
	for name, tc := range map[string]struct{ before, next, want string }{
		"completions of a Job":              {`{apiVersion: batch/v1, kind: Job, spec: {completions: 4}}`, `{apiVersion: batch/v1, kind: Job, spec: {completions: 6}}`, "spec.completions"},
		"completions of an elastic Job":     {`{apiVersion: batch/v1, kind: Job, spec: {completionMode: Indexed, completions: 4, parallelism: 4}}`, `{apiVersion: batch/v1, kind: Job, spec: {completionMode: Indexed, completions: 6, parallelism: 6}}`, ""},
		"completions of an indexed Job":     {`{apiVersion: batch/v1, kind: Job, spec: {completionMode: Indexed, completions: 4, parallelism: 4}}`, `{apiVersion: batch/v1, kind: Job, spec: {completionMode: Indexed, completions: 6, parallelism: 4}}`, "spec.completions"},
		"parallelism of a Job":              {`{apiVersion: batch/v1, kind: Job, spec: {parallelism: 4}}`, `{apiVersion: batch/v1, kind: Job, spec: {parallelism: 6}}`, ""},
		"a resource called Job":             {`{apiVersion: example.io/v1, kind: Job, spec: {completions: 4}}`, `{apiVersion: example.io/v1, kind: Job, spec: {completions: 6}}`, ""},
		"the selector of a Deployment":      {`{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {a: b}}}}`, `{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {a: c}}}}`, "spec.selector"},
		"claims of a StatefulSet":           {`{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 1, volumeClaimTemplates: []}}`, `{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 1, volumeClaimTemplates: [{}]}}`, "spec"},
		"replicas of a StatefulSet":         {`{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 1, serviceName: a}}`, `{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 2, serviceName: a}}`, ""},
		"storage of a claim":                {`{apiVersion: v1, kind: PersistentVolumeClaim, spec: {resources: {requests: {storage: 1Gi}}}}`, `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {resources: {requests: {storage: 2Gi}}}}`, ""},
		"an immutable ConfigMap":            {`{apiVersion: v1, kind: ConfigMap, immutable: true, data: {a: b}}`, `{apiVersion: v1, kind: ConfigMap, immutable: true, data: {a: c}}`, "data"},
		"a ConfigMap that becomes one":      {`{apiVersion: v1, kind: ConfigMap, data: {a: b}}`, `{apiVersion: v1, kind: ConfigMap, immutable: true, data: {a: c}}`, ""},
		"the type of a Secret":              {`{apiVersion: v1, kind: Secret, type: a}`, `{apiVersion: v1, kind: Secret, type: b}`, "type"},
		"the role of a RoleBinding":         {`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {name: a}}`, `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {name: b}}`, "roleRef"},
		"the subjects of a RoleBinding":     {`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {name: a}}`, `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {name: a}, subjects: [{name: a}]}`, ""},
		"the provisioner of a StorageClass": {`{apiVersion: storage.k8s.io/v1, kind: StorageClass, provisioner: a}`, `{apiVersion: storage.k8s.io/v1, kind: StorageClass, provisioner: b}`, "provisioner"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Immutable(object(t, tc.before), object(t, tc.next)).String(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
