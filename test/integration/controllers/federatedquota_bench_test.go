//go:build integration

package controllers_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	"github.com/karmada-toolkit/karmada/pkg/apis/crds"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/federatedquota"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/webhook"
)

const (
	benchQuotaBindings = 1000
	benchQuotaClients  = 16
	benchQuotas        = 100
)

// BenchmarkEnforcement compares how fast bindings are written in a namespace with many quotas and in one without, with
// the webhook and the controller.
func BenchmarkEnforcement(b *testing.B) {
	c := startQuotaPlane(b)
	for _, namespace := range []string{"warm", "without", "with"} {
		must(b, c.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	}
	for i := range benchQuotas {
		q := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "with", Name: fmt.Sprintf("q%d", i)}}
		q.Spec.Overall = corev1.ResourceList{"cpu": resource.MustParse("1000000")}
		must(b, c.Create(b.Context(), q))
	}
	rate := func(namespace string) float64 {
		began := time.Now()
		writeQuotaBindings(b, c, namespace)
		return benchQuotaBindings / time.Since(began).Seconds()
	}
	rate("warm")
	without, with := rate("without"), rate("with")
	b.ReportMetric(without, "bindings/s-without")
	b.ReportMetric(with, "bindings/s-with")
	b.ReportMetric(with/without, "ratio")
	b.ReportMetric(0, "ns/op")
	testenv.Eventually(b, 30*time.Second, func(ctx context.Context) error {
		q := &policyv1alpha1.FederatedResourceQuota{}
		err := c.Get(ctx, client.ObjectKey{Namespace: "with", Name: "q7"}, q)
		if used := q.Status.OverallUsed["cpu"]; err == nil && used.Value() != benchQuotaBindings {
			err = fmt.Errorf("%s is used", used.String())
		}
		return err
	})
}

// quotaBinding is a binding of which a replica uses a CPU.
func quotaBinding(namespace, name string) *workv1alpha2.ResourceBinding {
	return &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource:            workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: name},
			ReplicaRequirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("1")}},
			Clusters:            []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 1}},
		},
	}
}

// writeQuotaBindings creates bindings from several clients at once.
func writeQuotaBindings(b *testing.B, c client.Client, namespace string) {
	b.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	for range benchQuotaClients {
		all.Go(func() {
			for i := next.Add(1); i <= benchQuotaBindings; i = next.Add(1) {
				if err := c.Create(b.Context(), quotaBinding(namespace, fmt.Sprintf("b%d", i))); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// startQuotaPlane starts an API server with the webhook and the controller.
func startQuotaPlane(b *testing.B) client.Client {
	b.Helper()
	cluster := testenv.Start(b, testenv.ControlPlane())
	c, err := client.New(cluster.Config, client.Options{Scheme: kube.NewScheme()})
	must(b, err)
	all, err := crds.All()
	must(b, err)
	for _, crd := range all {
		crd.Spec.Conversion = nil
		must(b, c.Create(b.Context(), crd))
	}
	testenv.Eventually(b, 20*time.Second, func(ctx context.Context) error {
		return errors.Join(c.List(ctx, &workv1alpha2.ResourceBindingList{}), c.List(ctx, &policyv1alpha1.FederatedResourceQuotaList{}))
	})
	must(b, client.IgnoreAlreadyExists(c.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-system"}})))
	config := rest.CopyConfig(cluster.Config)
	config.QPS = -1
	mgr, err := manager.New(config, manager.Options{Scheme: kube.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"}})
	must(b, err)
	must(b, federatedquota.SetupEnforcement(b.Context(), env.New(mgr), 0))
	go func() { _ = mgr.Start(b.Context()) }()
	mgr.GetCache().WaitForCacheSync(b.Context())
	handlers, err := webhook.Handlers(webhook.Deps{
		Reader: mgr.GetClient(), LiveReader: mgr.GetAPIReader(), Writer: mgr.GetClient(), Metrics: prometheus.NewRegistry(), Enforcement: true,
	})
	must(b, err)
	registerValidation(b, c, handlers["/validate-resourcebinding"])
	return c
}

// registerValidation has the API server call a handler for bindings.
func registerValidation(b *testing.B, c client.Client, handler http.Handler) {
	b.Helper()
	server := httptest.NewTLSServer(handler)
	b.Cleanup(server.Close)
	fail, none := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNoneOnDryRun
	must(b, c.Create(b.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "validating-config"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "resourcebinding.karmada.io", FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"work.karmada.io"}, APIVersions: []string{"*"}, Resources: []string{"resourcebindings"}},
			}},
		}},
	}))
	// The API server calls it with a delay: a binding that exceeds a quota is refused then.
	must(b, c.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}))
	q := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "probe", Name: "q"}}
	q.Spec.Overall = corev1.ResourceList{"cpu": resource.MustParse("0")}
	must(b, c.Create(b.Context(), q))
	testenv.Eventually(b, 20*time.Second, func(ctx context.Context) error {
		if err := c.Create(ctx, quotaBinding("probe", "probe"), client.DryRunAll); err == nil {
			return errors.New("the webhook is not called yet")
		}
		return nil
	})
}
