package operator

import (
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	operatorv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/operator/v1alpha1"
)

// maxName is the length of the name of a Karmada, from which those of Services and pods are made.
const maxName = 30

// validate returns what is wrong with a Karmada, with the fields.
func validate(k *operatorv1alpha1.Karmada) field.ErrorList {
	var all field.ErrorList
	spec := field.NewPath("spec")
	if problems := validation.IsDNS1123Label(k.Name); len(problems) > 0 || len(k.Name) > maxName {
		all = append(all, field.Invalid(field.NewPath("metadata", "name"), k.Name, fmt.Sprintf("names of Services begin with it: at most %d lower case letters, digits and dashes", maxName)))
	}
	if t := k.Spec.CRDTarball; t != nil && t.HTTPSource != nil {
		path := spec.Child("crdTarball", "httpSource")
		if !httpURL(t.HTTPSource.URL) {
			all = append(all, field.Invalid(path.Child("url"), t.HTTPSource.URL, "invalid CRDs remote URL"))
		}
		if t.HTTPSource.Proxy != nil {
			all = append(all, field.Forbidden(path.Child("proxy"), "the proxy of downloads is that of the environment of the operator (HTTPS_PROXY)"))
		}
	}
	if h := k.Spec.HostCluster; h != nil && h.APIEndpoint != "" && remote(k) == nil {
		// The operator's own token would be sent there.
		all = append(all, field.Forbidden(spec.Child("hostCluster", "apiEndpoint"), "it is the server for the kubeconfig that secretRef names"))
	}
	parts := spec.Child("components")
	if k.Spec.Components != nil {
		all = append(all, validateEtcd(k.Spec.Components.Etcd, parts.Child("etcd"))...)
		if a := k.Spec.Components.KarmadaAPIServer; a != nil {
			all = append(all, validateAPIServer(k, a, parts.Child("karmadaAPIServer"))...)
		}
	}
	if remote(k) != nil && componentsOf(k).KarmadaAPIServer.ServiceType == corev1.ServiceTypeClusterIP {
		all = append(all, field.Invalid(parts.Child("karmadaAPIServer", "serviceType"), "ClusterIP", "the operator does not reach it in another host cluster: use NodePort or LoadBalancer"))
	}
	return all
}

func validateEtcd(e *operatorv1alpha1.Etcd, path *field.Path) field.ErrorList {
	var all field.ErrorList
	switch {
	case e == nil || e.Local == nil && e.External == nil:
		return append(all, field.Required(path, "unexpected empty etcd configuration"))
	case e.Local != nil && e.External != nil:
		return append(all, field.Invalid(path, "local, external", "one of the two is wanted"))
	case e.External != nil:
		return validateExternal(e.External, path.Child("external"))
	}
	if e.Local.VolumeData == nil {
		return all
	}
	data := path.Child("local", "volumeData")
	if e.Local.VolumeData.HostPath != nil && e.Local.Replicas != nil && *e.Local.Replicas > 1 {
		all = append(all, field.Invalid(path.Child("local", "replicas"), *e.Local.Replicas, "members on one node share a hostPath: use volumeClaim"))
	}
	if h := e.Local.VolumeData.HostPath; h != nil && !strings.HasPrefix(h.Path, "/") {
		all = append(all, field.Invalid(data.Child("hostPath", "path"), h.Path, "write an absolute path"))
	}
	return all
}

func validateExternal(e *operatorv1alpha1.ExternalEtcd, path *field.Path) field.ErrorList {
	var all field.ErrorList
	if len(e.Endpoints) == 0 {
		all = append(all, field.Required(path.Child("endpoints"), "there is none"))
	}
	for i, endpoint := range e.Endpoints {
		if !httpURL(endpoint) {
			all = append(all, field.Invalid(path.Child("endpoints").Index(i), endpoint, "write a URL such as https://etcd.example.org:2379"))
		}
	}
	if e.SecretRef.Name == "" {
		all = append(all, field.Required(path.Child("secretRef", "name"), "the Secret has the keys ca.crt, tls.crt and tls.key"))
	}
	return all
}

func validateAPIServer(k *operatorv1alpha1.Karmada, a *operatorv1alpha1.KarmadaAPIServer, path *field.Path) field.ErrorList {
	var all field.ErrorList
	switch a.ServiceType {
	case "", corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer:
	default:
		all = append(all, field.NotSupported(path.Child("serviceType"), a.ServiceType, []corev1.ServiceType{corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer}))
	}
	if class := a.LoadBalancerClass; class != nil {
		if problems := validation.IsQualifiedName(*class); len(problems) > 0 {
			all = append(all, field.Invalid(path.Child("loadBalancerClass"), *class, strings.Join(problems, "; ")))
		}
		if componentsOf(k).KarmadaAPIServer.ServiceType != corev1.ServiceTypeLoadBalancer {
			all = append(all, field.Forbidden(path.Child("loadBalancerClass"), "it is for serviceType LoadBalancer"))
		}
	}
	return all
}

// remote returns the Secret with the kubeconfig of another host cluster; nil for that of the operator.
func remote(k *operatorv1alpha1.Karmada) *operatorv1alpha1.LocalSecretReference {
	if h := k.Spec.HostCluster; h != nil && h.SecretRef != nil && h.SecretRef.Name != "" {
		return h.SecretRef
	}
	return nil
}

func httpURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
}
