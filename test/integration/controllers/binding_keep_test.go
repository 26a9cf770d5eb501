//go:build integration

package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/testenv"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
)

// works returns the UIDs of the Works of a binding by namespace. Works that are being
// deleted are an error: the objects in the clusters would be deleted.
func (p *bindingPlane) works(binding string) map[string]types.UID {
	p.Helper()
	list := &workv1alpha1.WorkList{}
	p.must(p.client.List(p.Context(), list))
	out := map[string]types.UID{}
	for i := range list.Items {
		work := &list.Items[i]
		if work.Annotations[workv1alpha2.ResourceBindingNameAnnotation] != binding {
			continue
		}
		if work.DeletionTimestamp != nil {
			p.Errorf("work %s/%s is being deleted", work.Namespace, work.Name)
		}
		out[work.Namespace] = work.UID
	}
	return out
}

func (p *bindingPlane) binding(name string) *workv1alpha2.ResourceBinding {
	p.Helper()
	b := &workv1alpha2.ResourceBinding{}
	p.must(p.client.Get(p.Context(), client.ObjectKey{Namespace: "default", Name: name}, b))
	return b
}

// replaced waits until a binding was deleted and created again.
func (p *bindingPlane) replaced(before *workv1alpha2.ResourceBinding) *workv1alpha2.ResourceBinding {
	p.Helper()
	b := &workv1alpha2.ResourceBinding{}
	testenv.Eventually(p.T, bindingLimit, func(ctx context.Context) error {
		if err := p.client.Get(ctx, client.ObjectKeyFromObject(before), b); err != nil {
			return err
		}
		if b.UID == before.UID {
			return fmt.Errorf("binding %s was not replaced: %v", b.Name, b.Status.Conditions)
		}
		return nil
	})
	return b
}

func (p *bindingPlane) sameWorks(binding string, want map[string]types.UID) {
	p.Helper()
	if got := p.works(binding); fmt.Sprint(got) != fmt.Sprint(want) {
		p.Errorf("the works of %s are %v, not %v", binding, got, want)
	}
}

// bindingGone deletes a binding by hand.
func (p *bindingPlane) bindingGone(t *testing.T) {
	p = p.in(t)
	before := p.binding("nginx-deployment")
	works := p.works("nginx-deployment")
	p.must(p.client.Delete(t.Context(), before.DeepCopy()))
	after := p.replaced(before)
	if fmt.Sprint(after.Spec.Clusters) != fmt.Sprint(before.Spec.Clusters) {
		t.Errorf("the clusters are %v, not %v", after.Spec.Clusters, before.Spec.Clusters)
	}
	if id := workv1alpha2.ResourceBindingPermanentIDLabel; after.Labels[id] != before.Labels[id] {
		t.Errorf("the id is %s, not %s", after.Labels[id], before.Labels[id])
	}
	p.sameWorks("nginx-deployment", works)
}

func guestbook(value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.io/v1", "kind": "Guestbook", "metadata": map[string]any{"namespace": "default", "name": "g"},
		"data": map[string]any{"key": value},
	}}
}

// nextSecond waits for the second after a time: the age of a CRD is compared in seconds.
func nextSecond(t *testing.T, than metav1.Time) {
	t.Helper()
	testenv.Eventually(t, bindingLimit, func(context.Context) error {
		if now := time.Now(); now.Unix() <= than.Unix() {
			return fmt.Errorf("it is still %s", now)
		}
		return nil
	})
}

// typeGone deletes a CRD whose objects are propagated.
func (p *bindingPlane) typeGone(t *testing.T) {
	p = p.in(t)
	before := p.binding("g-guestbook")
	works := p.works("g-guestbook")
	crd := definition("example.io", "v1", "guestbooks", "Guestbook", apiextensionsv1.NamespaceScoped)
	p.must(p.client.Delete(t.Context(), crd.DeepCopy()))
	testenv.Eventually(t, bindingLimit, func(ctx context.Context) error {
		if err := p.client.Get(ctx, client.ObjectKeyFromObject(crd), &apiextensionsv1.CustomResourceDefinition{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the CRD is still there: %w", err)
		}
		condition := meta.FindStatusCondition(p.binding("g-guestbook").Status.Conditions, workv1alpha2.Deliverable)
		if condition == nil || condition.Reason != delivery.ReasonTypeDeleted || !strings.Contains(condition.Message, "guestbooks.example.io") &&
			!strings.Contains(condition.Message, "Guestbook in group example.io") {
			return fmt.Errorf("the condition is %v", condition)
		}
		return nil
	})
	p.sameWorks("g-guestbook", works)
	nextSecond(t, before.CreationTimestamp)

	// Deleting the binding deletes nothing either, nor does the CRD that comes back.
	p.must(client.IgnoreNotFound(p.client.Delete(t.Context(), before.DeepCopy())))
	p.must(p.client.Create(t.Context(), crd.DeepCopy()))
	testenv.Eventually(t, bindingLimit, func(ctx context.Context) error { return p.client.Create(ctx, guestbook("2")) })
	after := p.replaced(before)
	if meta.FindStatusCondition(after.Status.Conditions, workv1alpha2.Deliverable) != nil {
		t.Errorf("the conditions are %v", after.Status.Conditions)
	}
	p.carried("Guestbook", "g", map[string]string{"m2": "2"}, dataOf)
	p.sameWorks("g-guestbook", works)

	p.must(p.client.Delete(t.Context(), guestbook("")))
	testenv.Eventually(t, bindingLimit, func(ctx context.Context) error {
		list := &workv1alpha1.WorkList{}
		if err := p.client.List(ctx, list, client.InNamespace("karmada-es-m2")); err != nil {
			return err
		}
		for i := range list.Items {
			if work := &list.Items[i]; work.DeletionTimestamp == nil && work.Annotations[workv1alpha2.ResourceBindingNameAnnotation] == "g-guestbook" {
				return errors.New("the work of a template that its user deleted is still there")
			}
		}
		return nil
	})
}
