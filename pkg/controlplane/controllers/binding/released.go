package binding

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/override"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// delivered returns the wanted Work of a cluster that has one of a binding which no policy claims any more: the object as it was
// delivered, whatever became of the template and the override policies. What the spec of the binding says of suspension,
// preservation and replicas applies, the latter unless an override may have set them: a cluster that leaves leaves its replicas to
// the others. It returns nil for other bindings and clusters.
func (w *workWriter) delivered(j *job, target *workv1alpha2.TargetCluster) (*works.Want, error) {
	if !scope.Released(j.binding) {
		return nil, nil
	}
	i := slices.IndexFunc(j.existing, func(work workv1alpha1.Work) bool {
		return work.Namespace == names.ExecutionNamespace(target.Name) && len(work.Spec.Workload.Manifests) == 1 && carries(&work, j.template)
	})
	if i < 0 {
		return nil, nil
	}
	work := &j.existing[i]
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(work.Spec.Workload.Manifests[0].Raw); err != nil {
		return nil, fmt.Errorf("decoding the manifest of work %s/%s: %w", work.Namespace, work.Name, err)
	}
	overrides, mayScale := map[string]string{}, false
	for _, key := range []string{policyv1alpha1.AppliedOverridesAnnotation, policyv1alpha1.AppliedClusterOverridesAnnotation} {
		if text, ok := work.Annotations[key]; ok {
			overrides[key] = text
			mayScale = mayScale || changesFields(text)
		}
	}
	if !mayScale {
		var err error
		if obj, err = j.object.Scale(obj, target); err != nil {
			return nil, err
		}
	}
	want := w.want(j, obj, target.Name, overrides)
	want.Generation = 0 // the manifest has that of the template that was delivered
	return want, nil
}

// changesFields reports whether the overriders that a Work records may have changed any field of the object.
func changesFields(applied string) bool {
	var rules []override.AppliedRule
	return json.Unmarshal([]byte(applied), &rules) != nil || slices.ContainsFunc(rules, func(r override.AppliedRule) bool {
		return len(r.Overriders.Plaintext)+len(r.Overriders.FieldOverrider) > 0
	})
}
