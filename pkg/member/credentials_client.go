package member

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karmadaappsv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/apps/v1alpha1"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// NewClient returns a client for the kinds that joining and leaving touch, in a
// control plane or a member. Their REST mappings are built in, so it sends no
// discovery requests. Warnings are dropped, unless the configuration has a handler for
// them.
func NewClient(config *rest.Config) (client.Client, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	if config.WarningHandler == nil && config.WarningHandlerWithContext == nil {
		config.WarningHandlerWithContext = rest.NoWarnings{}
	}
	config.QPS, config.Burst = -1, 0
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: newMapper()})
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	return c, nil
}

// NewMemberClient is NewClient for a member, which may answer anything: answers have
// limits, and redirects are not followed.
func NewMemberClient(config *rest.Config) (client.Client, error) {
	return NewClient(access.Guard(rest.CopyConfig(config)))
}

// NewScheme returns the kinds that commands read and write as typed objects.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(
		corev1.AddToScheme, rbacv1.AddToScheme, appsv1.AddToScheme, certificatesv1.AddToScheme, authenticationv1.AddToScheme, coordinationv1.AddToScheme, metav1.AddMetaToScheme,
		karmadaappsv1alpha1.AddToScheme, clusterv1alpha1.AddToScheme, networkingv1alpha1.AddToScheme, workv1alpha1.AddToScheme, workv1alpha2.AddToScheme,
	)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	return scheme, nil
}

func newMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	add := func(gv schema.GroupVersion, scope meta.RESTScope, kinds ...string) {
		for _, kind := range kinds {
			mapper.Add(gv.WithKind(kind), scope)
		}
	}
	add(corev1.SchemeGroupVersion, meta.RESTScopeRoot, "Namespace")
	add(corev1.SchemeGroupVersion, meta.RESTScopeNamespace, "Secret", "Service", "ServiceAccount", "ConfigMap", "Pod", "PersistentVolumeClaim")
	add(rbacv1.SchemeGroupVersion, meta.RESTScopeRoot, "ClusterRole", "ClusterRoleBinding")
	add(rbacv1.SchemeGroupVersion, meta.RESTScopeNamespace, "Role", "RoleBinding")
	add(appsv1.SchemeGroupVersion, meta.RESTScopeNamespace, "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")
	add(authenticationv1.SchemeGroupVersion, meta.RESTScopeRoot, "TokenReview")
	add(coordinationv1.SchemeGroupVersion, meta.RESTScopeNamespace, "Lease")
	add(certificatesv1.SchemeGroupVersion, meta.RESTScopeRoot, "CertificateSigningRequest")
	add(karmadaappsv1alpha1.GroupVersion, meta.RESTScopeRoot, "WorkloadRebalancer")
	add(clusterv1alpha1.GroupVersion, meta.RESTScopeRoot, "Cluster")
	add(networkingv1alpha1.GroupVersion, meta.RESTScopeNamespace, "MultiClusterService")
	add(workv1alpha1.GroupVersion, meta.RESTScopeNamespace, "Work")
	add(workv1alpha2.GroupVersion, meta.RESTScopeNamespace, "ResourceBinding")
	add(workv1alpha2.GroupVersion, meta.RESTScopeRoot, "ClusterResourceBinding")
	return mapper
}
