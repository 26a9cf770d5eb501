package execution

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
)

// TestReconcile_ManagedLabelIsRemovedAndPutBack takes an object out of the selection of the informer by hand, and back,
// while its status changes.
func TestReconcile_ManagedLabelIsRemovedAndPutBack(t *testing.T) {
	for name, tc := range map[string]struct {
		// unobserved: nothing is reconciled while the label is missing.
		unobserved bool
		// scaled: the manifest changes while the label is missing.
		scaled bool
	}{
		"reconciled meanwhile": {}, "not reconciled meanwhile": {unobserved: true}, "changed meanwhile": {scaled: true},
		"changed, not reconciled": {unobserved: true, scaled: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, deployment)
			b.mustSync()
			b.observed(deploymentPath)
			change := func(labels bool, replicas int64) {
				obj := b.member.Get(deploymentPath)
				obj.SetLabels(nil)
				if labels {
					obj.SetLabels(map[string]string{workv1alpha2.ManagedByKarmadaLabel: workv1alpha2.ManagedByKarmadaLabelValue})
				}
				obj.Object["status"] = map[string]any{"replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas}
				b.member.Put(deploymentPath, obj)
			}
			change(true, 1)
			b.observed(deploymentPath)
			b.mustSync()
			change(false, 1)
			accesstest.Eventually(t, func() error {
				o := b.state().objects[0]
				if view, _ := b.runner.view(o.kind, o.key); view.Snapshot != nil {
					return errors.New("the label was not removed yet")
				}
				return nil
			})
			if tc.scaled {
				b.edit(func(w *workv1alpha1.Work) {
					fill(b.T, w, strings.Replace(deployment, `"replicas":1`, `"replicas":3`, 1), "abort")
				})
			}
			if !tc.unobserved {
				b.Clock.Step(time.Minute)
				for range 2 {
					if _, err := b.sync(); err == nil || !strings.Contains(err.Error(), "already exists") {
						t.Fatalf("error %v", err)
					}
					b.Clock.Step(time.Minute)
				}
				if !strings.HasPrefix(applied(b.work()), "False") {
					t.Fatalf("applied %s", applied(b.work()))
				}
			}
			change(true, 3)
			b.observed(deploymentPath)
			b.mustSync()
			if tc.scaled {
				if n, _, _ := unstructured.NestedInt64(b.member.Get(deploymentPath).Object, "spec", "replicas"); n != 3 {
					t.Errorf("the member has %d replicas", n)
				}
				b.observed(deploymentPath)
			}
			for range 3 {
				b.Clock.Step(time.Minute)
				b.mustSync()
			}
			if s := b.work().Status; !strings.HasPrefix(applied(b.work()), "True") || len(s.ManifestStatuses) != 1 || !strings.Contains(string(s.ManifestStatuses[0].Status.Raw), `"replicas":3`) {
				t.Errorf("the status is %+v", s)
			}
		})
	}
}
