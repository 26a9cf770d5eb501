//go:build integration

package controllermanager_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
)

// TestServices shows Services that span three clusters, with all controllers.
func TestServices(t *testing.T) {
	f := newFederation(t, "m1", "m2", "m3")
	t.Run("MultiClusterService", f.multiClusterService)
}

func (f *federation) create(t *testing.T, where client.Client, objs ...client.Object) {
	t.Helper()
	for _, obj := range objs {
		if err := where.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}

func (f *federation) wantCondition(name, conditionType string, status metav1.ConditionStatus) {
	f.Helper()
	f.eventually(func(ctx context.Context) error {
		mcs := &networkingv1alpha1.MultiClusterService{}
		if err := f.plane.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, mcs); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(mcs.Status.Conditions, conditionType); c == nil || c.Status != status {
			return fmt.Errorf("conditions of %s: %v", name, mcs.Status.Conditions)
		}
		return nil
	})
}

func (f *federation) wantService(member, name string) {
	f.Helper()
	f.eventually(func(ctx context.Context) error {
		return f.members[member].Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, &corev1.Service{})
	})
}

func (f *federation) multiClusterService(t *testing.T) {
	ctx := t.Context()
	f.create(t, f.plane, service("web"), crossCluster("web", []string{"m1", "m2"}, []string{"m3", "m2"}))
	f.wantService("m3", "web")
	f.wantCondition("web", "ServiceApplied", metav1.ConditionTrue)
	// The same name in two providers.
	f.create(t, f.members["m1"], slice("web", "web-a", "10.1.0.1", "10.1.0.2"))
	f.create(t, f.members["m2"], slice("web", "web-a", "10.2.0.1"), slice("other", "other-a", "10.2.9.9"))
	f.wantSlices("m3", "web", "m1-web-a=10.1.0.1,10.1.0.2", "m2-web-a=10.2.0.1")
	f.wantSlices("m2", "web", "m1-web-a=10.1.0.1,10.1.0.2")
	f.wantSlices("m1", "web")
	f.wantCondition("web", "EndpointSliceDispatched", metav1.ConditionTrue)

	changed := slice("web", "web-a", "10.1.0.7")
	if err := f.members["m1"].Patch(ctx, changed, client.Merge); err != nil {
		t.Fatal(err)
	}
	f.wantSlices("m3", "web", "m1-web-a=10.1.0.7", "m2-web-a=10.2.0.1")

	// Somebody deletes a slice in a consumer, and one of another Service.
	got := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m1-web-a"}}
	if err := f.members["m3"].Delete(ctx, got); err != nil {
		t.Fatal(err)
	}
	f.wantSlices("m3", "web", "m1-web-a=10.1.0.7", "m2-web-a=10.2.0.1")

	// A provider and a consumer leave.
	f.update(t, "web", func(m *networkingv1alpha1.MultiClusterService) { m.Spec.ProviderClusters = selectors("m2") })
	f.wantSlices("m3", "web", "m2-web-a=10.2.0.1")
	f.wantSlices("m2", "web")
	f.update(t, "web", func(m *networkingv1alpha1.MultiClusterService) { m.Spec.ConsumerClusters = selectors("m1") })
	f.wantSlices("m3", "web")
	f.wantSlices("m1", "web", "m2-web-a=10.2.0.1")

	// Providers and consumers are swapped.
	f.update(t, "web", func(m *networkingv1alpha1.MultiClusterService) {
		m.Spec.ProviderClusters, m.Spec.ConsumerClusters = selectors("m1"), selectors("m2", "m3")
	})
	f.wantSlices("m1", "web")
	f.wantSlices("m2", "web", "m1-web-a=10.1.0.7")
	f.wantSlices("m3", "web", "m1-web-a=10.1.0.7")

	// It is deleted: the Service stays, the slices go.
	mcs := &networkingv1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	if err := f.plane.Delete(ctx, mcs); err != nil {
		t.Fatal(err)
	}
	f.eventually(func(ctx context.Context) error {
		if err := f.plane.Get(ctx, client.ObjectKeyFromObject(mcs), mcs); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is still there: %v", err)
		}
		return nil
	})
	f.wantSlices("m2", "web")
	f.wantSlices("m3", "web")
	f.wantNoWorks("web-a-")
	f.wantService("m3", "web")

	// And created again.
	f.create(t, f.plane, crossCluster("web", nil, nil))
	f.wantSlices("m1", "web", "m2-web-a=10.2.0.1")
	f.wantSlices("m2", "web", "m1-web-a=10.1.0.7")
	f.wantSlices("m3", "web", "m1-web-a=10.1.0.7", "m2-web-a=10.2.0.1")
}

func (f *federation) update(t *testing.T, name string, change func(*networkingv1alpha1.MultiClusterService)) {
	t.Helper()
	f.eventually(func(ctx context.Context) error {
		mcs := &networkingv1alpha1.MultiClusterService{}
		if err := f.plane.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, mcs); err != nil {
			return err
		}
		change(mcs)
		return f.plane.Update(ctx, mcs)
	})
}
