//go:build integration

// Covers pkg/controlplane/controllers/binding.

package controllers_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/testenv"
)

// unmatched waits until the named objects, and no others, have one event each that
// no policy matches them.
func (p *bindingPlane) unmatched(want ...string) {
	p.Helper()
	testenv.Eventually(p.T, time.Minute, func(ctx context.Context) error {
		var list corev1.EventList
		if err := p.client.List(ctx, &list); err != nil {
			return err
		}
		var got []string
		for i := range list.Items {
			e := &list.Items[i]
			if e.Message != "No policy match for resource" {
				continue
			}
			for range max(e.Count, 1) {
				got = append(got, e.Type+" "+e.Reason+" "+e.InvolvedObject.Kind+"/"+e.InvolvedObject.Name)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

func TestNoPolicy_OneEventAndNoneForWhatKubernetesMakes(t *testing.T) {
	t.Parallel()
	p := newBindingPlane(t)
	p.must(p.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}))
	p.must(p.client.Create(t.Context(), bindingNginx()))
	const first = "Warning ApplyPolicyFailed Deployment/nginx"
	p.unmatched(first)

	p.stop()
	p.start()
	later := bindingNginx()
	later.Name = "other"
	p.must(p.client.Create(t.Context(), later))
	// The event of the second one comes after the process could have repeated the first.
	p.unmatched(first, "Warning ApplyPolicyFailed Deployment/other")
}
