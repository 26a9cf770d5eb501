package agent

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karmada-toolkit/karmada/internal/kube"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

func TestMembership_ConditionOfARefusedAddress(t *testing.T) {
	m := &membership{}
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m3"}}
	if got := m.conditions(cluster); len(got) != 0 {
		t.Errorf("without a refusal there is %v", got)
	}
	m.refused.Store(new("it is a loopback address"))
	got := m.conditions(cluster)
	if len(got) != 1 || got[0].Status != metav1.ConditionFalse || !strings.Contains(got[0].Message, "it is a loopback address") || !strings.Contains(got[0].Message, "kubectl patch cluster m3") {
		t.Fatalf("got %v", got)
	}
	// An administrator sets another address while the agent runs.
	cluster.Status.Conditions, cluster.Spec.APIEndpoint = got, "https://10.0.0.3:6443"
	if got = m.conditions(cluster); len(got) != 1 || got[0].Status != metav1.ConditionTrue {
		t.Errorf("with an address there is %v", got)
	}
	cluster.Status.Conditions = nil
	if got = m.conditions(cluster); len(got) != 0 {
		t.Errorf("of a cluster that always had its address there is %v", got)
	}
}

func TestMembership_LostAddress(t *testing.T) {
	const own, other = "https://10.0.0.3:6443", "https://10.0.0.9:6443"
	tests := map[string]struct {
		offered string
		refused bool
		seen    []string
		want    bool
	}{
		"it never had one":             {offered: own, seen: []string{""}, want: true},
		"it lost the agent's":          {offered: own, seen: []string{own, ""}, want: true},
		"it has the agent's":           {offered: own, seen: []string{"", own}},
		"the agent's was refused":      {offered: own, refused: true, seen: []string{""}},
		"refused, corrected, lost":     {offered: own, refused: true, seen: []string{"", other, ""}},
		"an administrator replaced it": {offered: own, seen: []string{own, other}},
		"replaced and taken away":      {offered: own, seen: []string{own, other, ""}},
		"replaced, put back, lost":     {offered: own, seen: []string{other, own, ""}, want: true},
		"the agent has none":           {seen: []string{"", other, ""}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m := &membership{options: &Options{ClusterName: "m3", ClusterAPIEndpoint: tt.offered}, id: "id-3"}
			if tt.refused {
				m.refused.Store(new("it is a loopback address"))
			}
			got := false
			for _, endpoint := range tt.seen {
				got = m.lostAddress(&clusterv1alpha1.Cluster{
					ObjectMeta: metav1.ObjectMeta{Name: "m3"},
					Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull, ID: "id-3", APIEndpoint: endpoint},
				})
			}
			if got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}

// An address that was refused is offered again, and the refusal forgotten when it is accepted.
func TestMembership_OffersARefusedAddressAgain(t *testing.T) {
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m3"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull, ID: "id-3"},
	}
	refuse := true
	plane := interceptor.NewClient(fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(cluster).Build(), interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if of, ok := obj.(*clusterv1alpha1.Cluster); ok && of.Spec.APIEndpoint != "" && refuse {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "clusters"}, "m3", errors.New("a loopback address"))
			}
			return c.Update(ctx, obj, opts...)
		},
	})
	m := &membership{
		options: &Options{ClusterName: "m3", ClusterAPIEndpoint: "https://10.0.0.3:6443"}, id: "id-3", plane: plane, memberConfig: &rest.Config{Host: "https://10.0.0.3"},
	}
	for range 2 {
		if err := m.offer(t.Context()); err != nil || !m.refusedAddress() {
			t.Errorf("refused: %v, offered again: %t", err, m.refusedAddress())
		}
	}
	refuse = false
	if err := m.offer(t.Context()); err != nil || m.refusedAddress() {
		t.Errorf("accepted: %v, offered again: %t", err, m.refusedAddress())
	}
	if err := plane.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil || cluster.Spec.APIEndpoint != "https://10.0.0.3:6443" {
		t.Errorf("%v, endpoint %q", err, cluster.Spec.APIEndpoint)
	}
}
