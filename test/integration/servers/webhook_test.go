//go:build integration

// Covers pkg/controlplane/webhook.

package servers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/planetest"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// The API server calls the webhook of bindings for each write that it may refuse, and for no other. Nothing answers here, so
// that a call fails.
func TestResourceBinding_IsValidatedWhenWhatIsReadChanges(t *testing.T) {
	t.Parallel()
	cp := testenv.Start(t, testenv.ControlPlane())
	c, err := client.New(cp.Config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	planetest.Install(t, c)
	newBinding := func(name string) *workv1alpha2.ResourceBinding {
		return &workv1alpha2.ResourceBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Finalizers: []string{"example.com/f"}},
			Spec:       workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "a"}},
		}
	}
	binding := newBinding("a")
	if err := c.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	controllersLeaveNoRecord(t, cp.Config, newBinding)
	if err := c.Create(t.Context(), components.ValidatingWebhooks("https://127.0.0.1:1", nil)); err != nil {
		t.Fatal(err)
	}
	called := func(err error) bool { return err != nil && strings.Contains(err.Error(), "failed calling webhook") }
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		if !called(c.Create(ctx, newBinding("b"), client.DryRunAll)) {
			return errors.New("a new binding is not validated")
		}
		return nil
	})
	for name, tc := range map[string]struct {
		change func(*workv1alpha2.ResourceBinding)
		called bool
	}{
		"a target":     {func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}} }, true},
		"the resource": {func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.Name = "b" }, true},
		"the suspension": {func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
		}, true},
		"the generation": {func(b *workv1alpha2.ResourceBinding) { b.Generation++; b.Spec.Replicas = 1 }, true},
		"the id": {func(b *workv1alpha2.ResourceBinding) {
			b.Labels = map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "x"}
		}, true},
		"the annotation": {func(b *workv1alpha2.ResourceBinding) {
			b.Annotations = map[string]string{workv1alpha2.BindingDependenciesAnnotation: "x"}
		}, true},
		"a finalizer":     {func(b *workv1alpha2.ResourceBinding) { b.Finalizers = nil }, false},
		"another label":   {func(b *workv1alpha2.ResourceBinding) { b.Labels = map[string]string{"a": "b"} }, false},
		"all annotations": {func(b *workv1alpha2.ResourceBinding) { b.Annotations = map[string]string{"a": "b"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			changed := binding.DeepCopy()
			tc.change(changed)
			err := c.Update(t.Context(), changed, client.DryRunAll)
			if tc.called != called(err) || !tc.called && err != nil {
				t.Errorf("called %t, want %t: %v", called(err), tc.called, err)
			}
		})
	}
	meta.SetStatusCondition(&binding.Status.Conditions, metav1.Condition{Type: "Scheduled", Status: metav1.ConditionTrue, Reason: "Success"})
	if err := c.Status().Update(t.Context(), binding); err != nil {
		t.Errorf("its status: %v", err)
	}
}

// controllersLeaveNoRecord checks that the API server keeps no managed fields of bindings that controllers create, neither then nor when
// the status is written.
func controllersLeaveNoRecord(t *testing.T, config *rest.Config, newBinding func(name string) *workv1alpha2.ResourceBinding) {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: components.UserOf(components.AllInOne), Groups: []string{user.SystemPrivilegedGroup}}
	c, err := client.New(config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range components.WebhookConfigurations("https://127.0.0.1:1", nil, nil) {
		switch o.(type) {
		case *admissionregistrationv1.MutatingAdmissionPolicy, *admissionregistrationv1.MutatingAdmissionPolicyBinding:
			if err := c.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		b := newBinding("unrecorded")
		if err := c.Create(ctx, b, client.DryRunAll); err != nil || len(b.ManagedFields) > 0 {
			return fmt.Errorf("managed fields %v, error %w", b.ManagedFields, err)
		}
		return nil
	})
	b := newBinding("unrecorded")
	if err := c.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	b.Status.SchedulerObservedGeneration = 1
	if err := c.Status().Update(t.Context(), b); err != nil || len(b.ManagedFields) > 0 {
		t.Errorf("managed fields %v, error %v", b.ManagedFields, err)
	}
}
