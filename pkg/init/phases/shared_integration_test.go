//go:build integration

package phases

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
)

var sharedAPIServer = testenv.Shared(testenv.ControlPlane())

func TestMain(m *testing.M) { testenv.Main(m) }

// emptied returns the API server that the tests share, one after the other, without the admission and the types that earlier ones
// installed.
func emptied(t *testing.T) (*testenv.Cluster, client.Client) {
	t.Helper()
	cluster := sharedAPIServer(t)
	c, err := client.New(cluster.Config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		var left []error
		for _, list := range []client.ObjectList{
			&admissionregistrationv1.ValidatingWebhookConfigurationList{}, &admissionregistrationv1.MutatingWebhookConfigurationList{},
			&admissionregistrationv1.ValidatingAdmissionPolicyBindingList{}, &admissionregistrationv1.ValidatingAdmissionPolicyList{},
			&admissionregistrationv1.MutatingAdmissionPolicyBindingList{}, &admissionregistrationv1.MutatingAdmissionPolicyList{},
			&apiregistrationv1.APIServiceList{}, &apiextensionsv1.CustomResourceDefinitionList{}, &corev1.NamespaceList{},
		} {
			if err := c.List(ctx, list); err != nil {
				return err
			}
			if err := meta.EachListItem(list, func(o runtime.Object) error {
				obj := o.(client.Object)
				switch o := o.(type) {
				case *apiregistrationv1.APIService:
					if o.Spec.Service == nil {
						return nil // the API server's own
					}
				case *corev1.Namespace:
					if o.DeletionTimestamp == nil {
						return nil
					}
				}
				left = append(left, fmt.Errorf("%T %s is there", obj, obj.GetName()), client.IgnoreNotFound(c.Delete(ctx, obj)))
				return nil
			}); err != nil {
				return err
			}
		}
		return errors.Join(left...)
	})
	return cluster, c
}
