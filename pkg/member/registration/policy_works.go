package registration

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// The finalizers that the controllers of an agent set on Works.
const (
	endpointSliceFinalizer         = "karmada.io/endpointslice-controller"
	endpointSliceDispatchFinalizer = "karmada.io/mcs-endpointslice-dispatch-controller"
)

// metadataRules keep agents from holding objects with finalizers of others, and from
// tying them to objects that are not theirs.
func metadataRules() []admissionregistrationv1.Validation {
	finalizers := celList(workv1alpha2.ExecutionControllerFinalizer, endpointSliceFinalizer, endpointSliceDispatchFinalizer)
	added := celField("object", "finalizers", "[]") + `.all(f, f in variables.oldFinalizers || request.resource.resource == "works" && f in ` + finalizers + `)`
	removed := `variables.oldFinalizers.all(f, f in ` + celField("object", "finalizers", "[]") + ` || f in ` + finalizers + `)`
	return []admissionregistrationv1.Validation{
		forbid(added+" && "+removed, "an agent may set and remove only the finalizers of its own controllers, on Works"),
		forbid(celField("object", "ownerReferences", "[]")+`.all(o, o in variables.oldOwners || o.kind == "Cluster" && o.apiVersion.startsWith("cluster.karmada.io/") && o.name == variables.cluster)`,
			"an agent may name no owner but its own cluster"),
	}
}

// metadataVariables are what metadataRules and workRules refer to.
func metadataVariables() []admissionregistrationv1.Variable {
	old := func(field, empty string) string {
		return `oldObject == null ? ` + empty + ` : ` + celField("oldObject", field, empty)
	}
	return []admissionregistrationv1.Variable{
		{Name: "oldFinalizers", Expression: old("finalizers", "[]")},
		{Name: "oldOwners", Expression: old("ownerReferences", "[]")},
		{Name: "works", Expression: `request.resource.resource == "works"`},
		{Name: "collected", Expression: `variables.works && ` + collected("object")},
		{Name: "wasCollected", Expression: `variables.works && oldObject != null && ` + collected("oldObject")},
	}
}

// workRules let an agent write Works of its own for the EndpointSlices that it
// collected, which no controller applies; all other Works belong to the control
// plane, and the agent writes their status.
func workRules() []admissionregistrationv1.Validation {
	labels, oldLabels := celField("object", "labels", "{}"), celField("oldObject", "labels", "{}")
	annotations, oldAnnotations := celField("object", "annotations", "{}"), celField("oldObject", "annotations", "{}")
	// Admission may have given the Work an id meanwhile.
	sameLabels := labels + `.all(k, k == "` + workv1alpha2.WorkPermanentIDLabel + `" || k in ` + oldLabels + ` && ` + oldLabels + `[k] == ` + labels + `[k]) && ` +
		oldLabels + `.all(k, k in ` + labels + `)`
	ours := `!k.contains("karmada.io/")`
	sameAnnotations := annotations + `.all(k, ` + ours + ` || k in ` + oldAnnotations + ` && ` + oldAnnotations + `[k] == ` + annotations + `[k]) && ` +
		oldAnnotations + `.all(k, ` + ours + ` || k in ` + annotations + `)`
	unchanged := `has(oldObject.metadata.deletionTimestamp) || object.?spec == oldObject.?spec && ` + sameLabels + ` && ` + sameAnnotations
	return []admissionregistrationv1.Validation{
		forbid(`!variables.works || request.operation != "CREATE" || variables.collected`,
			"an agent may create Works only for EndpointSlices that it collected, with suspendDispatching and without the labels of a binding"),
		forbid(`!variables.works || request.operation != "UPDATE" || variables.wasCollected && variables.collected || !variables.wasCollected && (`+unchanged+`)`,
			"an agent may not change the spec, the labels and the annotations of a Work of the control plane"),
	}
}

// collected reports in CEL whether a Work holds one EndpointSlice that an agent
// collected and belongs to no binding.
func collected(work string) string {
	manifests := work + `.?spec.?workload.?manifests.orValue([])`
	binding := celList(
		workv1alpha2.ResourceBindingPermanentIDLabel, workv1alpha2.ClusterResourceBindingPermanentIDLabel,
		workv1alpha2.ResourceBindingNameAnnotation, workv1alpha2.ResourceBindingNamespaceAnnotation, workv1alpha2.ClusterResourceBindingAnnotation,
	)
	return work + `.?spec.?suspendDispatching.orValue(false) && ` +
		manifests + `.size() == 1 && ` +
		manifests + `.all(m, m.?kind.orValue("") == "EndpointSlice" && m.?apiVersion.orValue("").startsWith("discovery.k8s.io/")) && ` +
		celField(work, "labels", "{}") + `.all(k, !(k in ` + binding + `)) && ` +
		celField(work, "annotations", "{}") + `.all(k, !(k in ` + binding + `))`
}

// celField returns a field of an object's metadata, or empty.
func celField(object, field, empty string) string {
	return object + `.metadata.?` + field + `.orValue(` + empty + `)`
}

func celList(values ...string) string { return `["` + strings.Join(values, `", "`) + `"]` }
