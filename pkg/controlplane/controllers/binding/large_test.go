package binding

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
)

func TestReconcile_WorksThatAreTooLargeAreNotRetried(t *testing.T) {
	for name, tc := range map[string]struct {
		refused   error
		permanent bool
	}{
		"etcd refuses it":               {apierrors.NewInternalError(errors.New("etcdserver: request is too large")), true},
		"the client of etcd refuses it": {apierrors.NewInternalError(errors.New("rpc error: code = ResourceExhausted desc = trying to send message larger than max (2097153 vs. 2097152)")), true},
		"the API server refuses it":     {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), true},
		"etcd is full":                  {apierrors.NewInternalError(errors.New("etcdserver: mvcc: database space exceeded")), false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, deployment(), resourceBinding(map[string]int32{"m1": 1, "m2": 1}))
			h.FailOn("create Work karmada-es-m1/", tc.refused)
			if _, err := h.reconcile(); err == nil || errors.Is(err, reconcile.TerminalError(nil)) != tc.permanent {
				t.Errorf("got %v", err)
			}
			condition := h.deliverable()
			if tc.permanent != (condition != nil && condition.Reason == delivery.ReasonWorkTooLarge && strings.Contains(condition.Message, "karmada-es-m1")) {
				t.Errorf("condition %+v", condition)
			}
			h.Before = nil
			h.mustReconcile()
			if condition := h.deliverable(); condition != nil {
				t.Errorf("condition %+v", condition)
			}
		})
	}
}
