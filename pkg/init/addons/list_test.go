package addons

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
)

func TestList(t *testing.T) {
	deployment := func(name string, replicas, ready int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: config.DefaultNamespace, Name: name},
			Status:     appsv1.DeploymentStatus{Replicas: replicas, ReadyReplicas: ready, AvailableReplicas: ready},
		}
	}
	api := func(name string, status apiregistrationv1.ConditionStatus) *apiregistrationv1.APIService {
		return &apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status:     apiregistrationv1.APIServiceStatus{Conditions: []apiregistrationv1.APIServiceCondition{{Type: apiregistrationv1.Available, Status: status}}},
		}
	}
	host := fakeclient.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(
		deployment("karmada-search", 1, 1), deployment("karmada-metrics-adapter", 1, 1), deployment("karmada-scheduler-estimator-m1", 2, 1),
	).Build()
	cp := fakeclient.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(api("v1alpha1.search.karmada.io", apiregistrationv1.ConditionTrue)).Build()
	connect := func() (client.Reader, error) { return cp, nil }
	states := func(clusters []string, connect func() (client.Reader, error)) (out []string, err error) {
		all := List(context.Background(), host, connect, config.DefaultNamespace, clusters)
		for _, a := range all {
			out = append(out, a.Name+" "+string(a.Status))
		}
		return out, JoinErrors(all)
	}
	got, err := states([]string{"m1"}, connect)
	want := []string{"karmada-descheduler disabled", "karmada-metrics-adapter disabled", "karmada-scheduler-estimator unhealthy", "karmada-search enabled"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	got, err = states(nil, func() (client.Reader, error) { return nil, errors.New("no kubeconfig") })
	want = []string{"karmada-descheduler disabled", "karmada-metrics-adapter unknown", "karmada-scheduler-estimator-m1 unhealthy", "karmada-search unknown"}
	if diff := cmp.Diff(want, got); diff != "" || err == nil || !strings.Contains(err.Error(), "addon karmada-search: no kubeconfig") {
		t.Error(err, diff)
	}
}

// TestListLocal lists the addons of a federation of processes: the API of the metrics adapter is served, and the estimator
// of m2 has stopped.
func TestListLocal(t *testing.T) {
	available := apiregistrationv1.APIServiceStatus{Conditions: []apiregistrationv1.APIServiceCondition{{Type: apiregistrationv1.Available, Status: apiregistrationv1.ConditionTrue}}}
	build := fakeclient.NewClientBuilder().WithScheme(kube.NewScheme())
	for _, name := range apiNames("karmada-metrics-adapter") {
		build.WithObjects(&apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: available})
	}
	cp := build.Build()
	for name, tt := range map[string]struct {
		estimators map[string]bool
		clusters   []string
		want       []string
	}{
		"all":         {estimators: map[string]bool{"m1": true, "m2": false}, want: []string{"-m1 enabled", "-m2 unhealthy"}},
		"none":        {want: []string{" disabled"}},
		"one cluster": {estimators: map[string]bool{"m1": true}, clusters: []string{"m1"}, want: []string{" enabled"}},
		"without one": {estimators: map[string]bool{"m1": true}, clusters: []string{"m1", "m3"}, want: []string{"-m1 enabled", "-m3 disabled"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := ListLocal(t.Context(), cp, tt.estimators, tt.clusters)
			var got []string
			for _, a := range all {
				got = append(got, a.Name+" "+string(a.Status))
			}
			want := []string{"karmada-descheduler disabled", "karmada-metrics-adapter enabled"}
			for _, w := range tt.want {
				want = append(want, "karmada-scheduler-estimator"+w)
			}
			if diff := cmp.Diff(append(want, "karmada-search disabled"), got); diff != "" || JoinErrors(all) != nil {
				t.Error(diff, JoinErrors(all))
			}
		})
	}
}
