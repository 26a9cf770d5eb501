package registry

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

func TestCredentials(t *testing.T) {
	stored := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Spec: clusterv1alpha1.ClusterSpec{
		SyncMode: clusterv1alpha1.Push, APIEndpoint: "https://m1",
		SecretRef:             &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "m1"},
		ImpersonatorSecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "m1-impersonator"},
	}}
	ref := func(name string) *clusterv1alpha1.LocalSecretReference {
		return &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: name}
	}
	own := []string{"m1", "m1-impersonator"}
	for name, tc := range map[string]struct {
		readable []string
		create   bool
		change   func(*clusterv1alpha1.Cluster)
		want     string
	}{
		"created by who may read both":               {readable: own, create: true},
		"created by who may read neither":            {create: true, want: `user "bob" cannot get Secret karmada-cluster/m1,`},
		"created by who may not read the second":     {readable: own[:1], create: true, want: `user "bob" cannot get Secret karmada-cluster/m1-impersonator,`},
		"without Secrets":                            {create: true, change: func(c *clusterv1alpha1.Cluster) { c.Spec.SecretRef, c.Spec.ImpersonatorSecretRef = nil, nil }},
		"another Secret":                             {readable: own, change: func(c *clusterv1alpha1.Cluster) { c.Spec.SecretRef = ref("root") }, want: "karmada-cluster/root"},
		"another endpoint":                           {change: func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = "https://evil" }, want: "cannot get"},
		"a proxy":                                    {change: func(c *clusterv1alpha1.Cluster) { c.Spec.ProxyURL = "http://evil" }, want: "cannot get"},
		"headers of the proxy":                       {change: func(c *clusterv1alpha1.Cluster) { c.Spec.ProxyHeader = map[string]string{"a": "b"} }, want: "cannot get"},
		"no verification":                            {change: func(c *clusterv1alpha1.Cluster) { c.Spec.InsecureSkipTLSVerification = true }, want: "cannot get"},
		"another mode":                               {change: func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Pull }, want: "cannot get"},
		"another endpoint by who may read":           {readable: own, change: func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = "https://new" }},
		"a taint":                                    {change: func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = []corev1.Taint{{Key: "a", Effect: "NoSchedule"}} }},
		"a label and a region":                       {change: func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{"a": "b"}; c.Spec.Region = "eu" }},
		"the Secret of another cluster":              {readable: []string{"m2", "m1-impersonator"}, change: func(c *clusterv1alpha1.Cluster) { c.Spec.SecretRef = ref("m2") }, want: `belongs to cluster "m2"`},
		"the impersonator's Secret of another":       {readable: []string{"m1", "m2"}, change: func(c *clusterv1alpha1.Cluster) { c.Spec.ImpersonatorSecretRef = ref("m2") }, want: `belongs to cluster "m2"`},
		"a Secret that is not there yet":             {readable: append(own, "later"), change: func(c *clusterv1alpha1.Cluster) { c.Spec.SecretRef = ref("later") }},
		"created with the Secret of another cluster": {readable: append(own, "m2"), create: true, change: func(c *clusterv1alpha1.Cluster) { c.Spec.SecretRef = ref("m2") }, want: `belongs to cluster "m2"`},
	} {
		t.Run(name, func(t *testing.T) {
			check := &credentials{
				authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
					if a.GetUser().GetName() == "bob" && a.GetVerb() == "get" && a.GetResource() == "secrets" && a.GetNamespace() == "karmada-cluster" && slices.Contains(tc.readable, a.GetName()) {
						return authorizer.DecisionAllow, "", nil
					}
					return authorizer.DecisionNoOpinion, "", nil
				}),
				secret: func(_ context.Context, namespace, name string) (*corev1.Secret, error) {
					if name == "later" {
						return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
					}
					secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
					owner := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: strings.TrimSuffix(name, "-impersonator")}}
					secret.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, clusterv1alpha1.GroupVersion.WithKind("Cluster"))}
					return secret, nil
				},
			}
			updated, old := stored.DeepCopy(), stored
			if tc.change != nil {
				tc.change(updated)
			}
			if tc.create {
				old = nil
			}
			err := check.check(genericrequest.WithUser(t.Context(), &user.DefaultInfo{Name: "bob"}), updated, old)
			if tc.want == "" && err != nil || tc.want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
