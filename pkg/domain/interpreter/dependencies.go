package interpreter

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
)

// VerifyDependencies returns an error for an invalid list of dependencies.
func VerifyDependencies(dependencies []configv1alpha1.DependentObjectReference) error {
	var errs field.ErrorList
	for i := range dependencies {
		path, d := field.NewPath("dependencies").Index(i), &dependencies[i]
		if d.APIVersion == "" {
			errs = append(errs, field.Invalid(path.Child("apiVersion"), d.APIVersion, "missing required apiVersion"))
		}
		if d.Kind == "" {
			errs = append(errs, field.Invalid(path.Child("kind"), d.Kind, "missing required kind"))
		}
		if d.Name == "" && d.LabelSelector == nil {
			errs = append(errs, field.Invalid(path, d, "dependency can not leave name and labelSelector all empty"))
		}
		errs = append(errs, metav1validation.ValidateLabelSelector(d.LabelSelector,
			metav1validation.LabelSelectorValidationOptions{}, path.Child("labelSelector"))...)
	}
	return errs.ToAggregate()
}

// references collects names of objects, each once.
type references struct {
	namespace string
	all       []configv1alpha1.DependentObjectReference
}

func (r *references) add(kind, name string) {
	if name == "" || slices.ContainsFunc(r.all, func(d configv1alpha1.DependentObjectReference) bool {
		return d.Kind == kind && d.Name == name
	}) {
		return
	}
	r.all = append(r.all, configv1alpha1.DependentObjectReference{
		APIVersion: "v1", Kind: kind, Namespace: r.namespace, Name: name,
	})
}

func (r *references) sorted() []configv1alpha1.DependentObjectReference {
	SortDependencies(r.all)
	return r.all
}

// SortDependencies sorts by kind, then namespace, name and API version.
func SortDependencies(dependencies []configv1alpha1.DependentObjectReference) {
	slices.SortFunc(dependencies, func(a, b configv1alpha1.DependentObjectReference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.APIVersion, b.APIVersion))
	})
}

// podDependencies returns the rule for kinds with a pod spec at the path.
func podDependencies(path ...string) func(*unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	return func(obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
		return PodDependencies(child(obj.Object, path...), obj.GetNamespace()), nil
	}
}

// PodDependencies returns what a pod spec refers to, sorted: ConfigMaps,
// Secrets, PersistentVolumeClaims and the ServiceAccount.
func PodDependencies(spec map[string]any, namespace string) []configv1alpha1.DependentObjectReference {
	refs := &references{namespace: namespace}
	for _, field := range []string{"containers", "initContainers", "ephemeralContainers"} {
		for _, entry := range list(spec, field) {
			c, _ := entry.(map[string]any)
			refs.container(c)
		}
	}
	for _, entry := range list(spec, "imagePullSecrets") {
		secret, _ := entry.(map[string]any)
		refs.add("Secret", text(secret, "name"))
	}
	for _, entry := range list(spec, "volumes") {
		volume, _ := entry.(map[string]any)
		refs.volume(volume)
	}
	if name := text(spec, "serviceAccountName"); name != "default" {
		refs.add("ServiceAccount", name)
	}
	return refs.sorted()
}

func (r *references) container(c map[string]any) {
	for _, entry := range list(c, "envFrom") {
		source, _ := entry.(map[string]any)
		r.add("ConfigMap", text(child(source, "configMapRef"), "name"))
		r.add("Secret", text(child(source, "secretRef"), "name"))
	}
	for _, entry := range list(c, "env") {
		env, _ := entry.(map[string]any)
		source := child(env, "valueFrom")
		r.add("ConfigMap", text(child(source, "configMapKeyRef"), "name"))
		r.add("Secret", text(child(source, "secretKeyRef"), "name"))
	}
}

func (r *references) volume(v map[string]any) {
	r.add("ConfigMap", text(child(v, "configMap"), "name"))
	r.add("Secret", text(child(v, "secret"), "secretName"))
	r.add("Secret", text(child(v, "azureFile"), "secretName"))
	r.add("Secret", text(child(v, "csi", "nodePublishSecretRef"), "name"))
	for _, source := range []string{"cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"} {
		r.add("Secret", text(child(v, source, "secretRef"), "name"))
	}
	for _, entry := range list(child(v, "projected"), "sources") {
		source, _ := entry.(map[string]any)
		r.add("ConfigMap", text(child(source, "configMap"), "name"))
		r.add("Secret", text(child(source, "secret"), "name"))
	}
	r.add("PersistentVolumeClaim", text(child(v, "persistentVolumeClaim"), "claimName"))
}

// statefulSetDependencies leaves out the claims that the StatefulSet makes
// itself.
func statefulSetDependencies(obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	spec := child(obj.Object, "spec")
	dependencies := PodDependencies(child(spec, "template", "spec"), obj.GetNamespace())
	own := map[string]bool{}
	for _, entry := range list(spec, "volumeClaimTemplates") {
		claim, _ := entry.(map[string]any)
		own[text(child(claim, "metadata"), "name")] = true
	}
	dependencies = slices.DeleteFunc(dependencies, func(d configv1alpha1.DependentObjectReference) bool {
		return d.Kind == "PersistentVolumeClaim" && own[d.Name]
	})
	if len(dependencies) == 0 {
		return nil, nil
	}
	return dependencies, nil
}

func ingressDependencies(obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	refs := &references{namespace: obj.GetNamespace()}
	for _, entry := range list(child(obj.Object, "spec"), "tls") {
		tls, _ := entry.(map[string]any)
		refs.add("Secret", text(tls, "secretName"))
	}
	return refs.sorted(), nil
}

func serviceImportDependencies(obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	name := "derived-" + obj.GetName()
	return []configv1alpha1.DependentObjectReference{
		{
			APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice", Namespace: obj.GetNamespace(),
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/service-name": name}},
		},
		{APIVersion: "v1", Kind: "Service", Namespace: obj.GetNamespace(), Name: name},
	}, nil
}
