package endpointslicedispatch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/karmada-toolkit/karmada/internal/events"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

func TestRecord_SuccessOnItsTransition(t *testing.T) {
	success := services.Event{Type: corev1.EventTypeNormal, Reason: services.ReasonDispatchSucceed, Message: "m"}
	for _, tc := range []struct {
		name       string
		dispatched metav1.ConditionStatus
		mode       events.Mode
		want       []string
	}{
		{"not dispatched before", metav1.ConditionFalse, events.Transitions, []string{"Normal DispatchEndpointSliceSucceed m"}},
		{"dispatched before", metav1.ConditionTrue, events.Transitions, nil},
		{"dispatched before, every success is recorded", metav1.ConditionTrue, events.Contract, []string{"Normal DispatchEndpointSliceSucceed m"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fake := record.NewFakeRecorder(8)
			r := &reconciler{events: events.New(fake).WithMode(tc.mode)}
			mcs := &networkingv1alpha1.MultiClusterService{}
			mcs.Status.Conditions = []metav1.Condition{{Type: services.SlicesDispatched, Status: tc.dispatched}}
			r.record(mcs, "m1", services.DispatchVerdict{Events: []services.Event{success}}, nil)
			close(fake.Events)
			var got []string
			for e := range fake.Events {
				got = append(got, e)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events -want +got\n%s", diff)
			}
		})
	}
}
