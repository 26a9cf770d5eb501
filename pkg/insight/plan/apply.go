package plan

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/kubectl/pkg/util"

	"github.com/karmada-toolkit/karmada/internal/kube"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
	"github.com/karmada-toolkit/karmada/pkg/domain/propagation"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
	interpreter "github.com/karmada-toolkit/karmada/plugins/interpreter"
)

// Manifests makes changes of manifests.
type Manifests struct {
	scheme *runtime.Scheme
	strict runtime.Decoder
	warn   func(string)
}

// NewManifests returns Manifests, which pass warnings of admission to a function.
func NewManifests(warn func(string)) *Manifests {
	scheme := kube.NewScheme()
	return &Manifests{scheme: scheme, warn: warn, strict: serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()}
}

// Apply applies a manifest as "kubectl apply" does: it creates the object, or merges the fields that it has, and the absence of those
// that it had, into the one that exists. The error is that admission would refuse it.
func (m *Manifests) Apply(manifest *unstructured.Unstructured) Change {
	return func(w *World) error {
		if err := m.check(manifest); err != nil {
			return err
		}
		before := w.stored(m.scheme, keyOf(manifest))
		u, err := m.merged(before, manifest)
		if err != nil {
			return err
		}
		storeData(u)
		if u, err = m.admitted(w, u); err != nil {
			return err
		}
		if before != nil && keyOf(u).Group == policyv1alpha1.GroupName && equality.Semantic.DeepEqual(before.Object["spec"], u.Object["spec"]) {
			return nil // its generation stays, for which controllers wait
		}
		w.unread[keyOf(u)] = before == nil && w.Unreadable(u.GetKind(), u.GetNamespace())
		return Store(u)(w)
	}
}

// check refuses fields that the types which are known here do not have.
func (m *Manifests) check(manifest *unstructured.Unstructured) error {
	text, err := json.Marshal(manifest.Object)
	if err == nil && m.scheme.Recognizes(manifest.GroupVersionKind()) {
		_, _, err = m.strict.Decode(text, nil, nil)
	}
	if err != nil {
		return fmt.Errorf("%s would be refused: %w", keyOf(manifest), err)
	}
	return nil
}

// stored returns an object of the control plane; nil if it does not exist.
func (w *World) stored(scheme *runtime.Scheme, k key) *unstructured.Unstructured {
	switch o := w.objects()[k].(type) {
	case nil:
		return nil
	case *unstructured.Unstructured:
		return o
	default:
		return untyped(scheme, o.(runtime.Object))
	}
}

// untyped returns an object as its fields; nil for one of no known type.
func untyped(scheme *runtime.Scheme, o runtime.Object) *unstructured.Unstructured {
	kinds, _, err := scheme.ObjectKinds(o)
	if err != nil {
		return nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(kinds[0])
	return u
}

// merged returns an object with the changes of a manifest: a strategic merge for types that are known here, and a JSON merge for others.
func (m *Manifests) merged(before, manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	modified, err := util.GetModifiedConfiguration(manifest, true, unstructured.UnstructuredJSONScheme)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", keyOf(manifest), err)
	}
	if before == nil {
		u, err := decoded(modified)
		if err != nil {
			return nil, err
		}
		setDefaults(u)
		return u, nil
	}
	original := []byte(before.GetAnnotations()[corev1.LastAppliedConfigAnnotation])
	if len(original) == 0 {
		original = []byte("{}")
	}
	current, err := json.Marshal(before.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", keyOf(before), err)
	}
	after, err := m.patched(manifest.GroupVersionKind(), original, modified, current)
	if err != nil {
		return nil, fmt.Errorf("merging %s: %w", keyOf(manifest), err)
	}
	merged, err := decoded(after)
	if err != nil {
		return nil, err
	}
	applied := map[string]any{}
	if err := utiljson.Unmarshal(original, &applied); err != nil {
		return nil, fmt.Errorf("decoding what was applied last to %s: %w", keyOf(before), err)
	}
	storedAs(merged.Object, before.Object, applied, manifest.Object)
	return merged, nil
}

func decoded(text []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(text, &u.Object); err != nil {
		return nil, fmt.Errorf("decoding an object: %w", err)
	}
	return u, nil
}

func (m *Manifests) patched(kind schema.GroupVersionKind, original, modified, current []byte) ([]byte, error) {
	typed, err := m.scheme.New(kind)
	if err != nil || kind.GroupVersion() == policyv1alpha1.GroupVersion {
		patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current)
		if err != nil {
			return nil, err
		}
		return jsonpatch.MergePatch(current, patch)
	}
	lookup, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return nil, err
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(original, modified, current, lookup, true)
	if err != nil {
		return nil, err
	}
	return strategicpatch.StrategicMergePatchUsingLookupPatchMeta(current, patch, lookup)
}

// setDefaults gives a new object the defaults of the API server that decide about its replicas.
func setDefaults(u *unstructured.Unstructured) {
	field := map[schema.GroupKind]string{
		{Group: "apps", Kind: "Deployment"}: "replicas", {Group: "apps", Kind: "StatefulSet"}: "replicas", {Group: "apps", Kind: "ReplicaSet"}: "replicas",
		{Kind: "ReplicationController"}: "replicas", {Group: "batch", Kind: "Job"}: "parallelism",
	}[u.GroupVersionKind().GroupKind()]
	spec, ok := u.Object["spec"].(map[string]any)
	if _, set := spec[field]; ok && field != "" && !set {
		spec[field] = int64(1)
		if _, set := spec["completions"]; field == "parallelism" && !set {
			spec["completions"] = int64(1)
		}
	}
}

// storeData moves the field stringData of a Secret to data, as the API server does.
func storeData(u *unstructured.Unstructured) {
	texts, found, err := unstructured.NestedStringMap(u.Object, "stringData")
	if !found || err != nil || u.GetKind() != "Secret" || u.GetAPIVersion() != "v1" {
		return
	}
	data, _ := u.Object["data"].(map[string]any)
	if data == nil {
		data = map[string]any{}
		u.Object["data"] = data
	}
	for name, text := range texts {
		data[name] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	delete(u.Object, "stringData")
}

// admitted returns an object with the defaults of admission. The error is the reason for its rejection.
func (m *Manifests) admitted(w *World, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	judge := &validation.Judge{Compile: lua.Check}
	for _, c := range w.Customizations {
		if c.Name != u.GetName() {
			judge.Customizations = append(judge.Customizations, *c)
		}
	}
	warnings, err := judge.New(u)
	for _, text := range warnings {
		m.warn(fmt.Sprintf("%s: %s", keyOf(u), text))
	}
	if err != nil {
		return nil, fmt.Errorf("%s would be refused: %w", keyOf(u), err)
	}
	object, err := snapshot.Typed(u)
	if err != nil {
		return nil, err
	}
	switch o := object.(type) {
	case policyv1alpha1.Policy:
		policyv1alpha1.DefaultSelectorNamespaces(o.PropagationSpec().ResourceSelectors, o.GetNamespace())
		policyv1alpha1.DefaultPropagationSpec(o.PropagationSpec())
	case *policyv1alpha1.OverridePolicy:
		policyv1alpha1.DefaultSelectorNamespaces(o.Spec.ResourceSelectors, o.Namespace)
	default:
		return u, nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	return &unstructured.Unstructured{Object: fields}, err
}

// Namespaced reports whether a kind has a namespace, by a mapper and the CustomResourceDefinitions among the manifests. The error is that
// neither has it.
func Namespaced(kind schema.GroupVersionKind, mapper meta.RESTMapper, manifests []*unstructured.Unstructured) (bool, error) {
	for _, crd := range manifests {
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		of, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
		if crd.GetKind() == "CustomResourceDefinition" && group == kind.Group && of == kind.Kind {
			return scope == string(apiextensionsv1.NamespaceScoped), nil
		}
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return false, fmt.Errorf("the control plane does not have its kind: %w", err)
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// Kinds returns the kinds of templates that manifests are, or that policies among them select.
func Kinds(manifests []*unstructured.Unstructured) []schema.GroupKind {
	var out []schema.GroupKind
	for _, u := range manifests {
		object, err := snapshot.Typed(u)
		if err != nil {
			continue // applying it reports the error
		}
		switch o := object.(type) {
		case policyv1alpha1.Policy:
			out = append(out, snapshot.Kinds(o)...)
		case *unstructured.Unstructured:
			out = append(out, u.GroupVersionKind().GroupKind())
		}
	}
	return out
}

// NewWorld returns the world of contents. The error is that a customization cannot be loaded.
func NewWorld(c *snapshot.Contents) (*World, error) {
	in, err := interpreter.NewOffline(c.Customizations)
	return &World{Contents: *c, Interpreter: in, Skipped: propagation.DefaultNamespaces()}, err
}
