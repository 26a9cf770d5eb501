package descheduler

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	estimator "github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/client"
	"github.com/karmada-toolkit/karmada/pkg/domain/deschedule"
)

func targets(m1, m2 int32) []workv1alpha2.TargetCluster {
	return []workv1alpha2.TargetCluster{{Name: "m1", Replicas: m1}, {Name: "m2", Replicas: m2}}
}

// binding has 3 of 5 replicas ready in m1, and all in m2.
func binding(change func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-deployment", Annotations: map[string]string{
			policyv1alpha1.AppliedPlacementAnnotation: `{"replicaScheduling":{"replicaSchedulingType":"Divided","replicaDivisionPreference":"Aggregated"}}`,
		}},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "web"},
			Clusters: targets(5, 2),
		},
		Status: workv1alpha2.ResourceBindingStatus{AggregatedStatus: []workv1alpha2.AggregatedStatusItem{
			{ClusterName: "m1", Status: &runtime.RawExtension{Raw: []byte(`{"readyReplicas":3}`)}},
			{ClusterName: "m2", Status: &runtime.RawExtension{Raw: []byte(`{"readyReplicas":2}`)}},
		}},
	}
	if change != nil {
		change(b)
	}
	return b
}

func TestRunner(t *testing.T) {
	const done = "Normal DescheduleBindingSucceed Binding has been descheduled, 2 replica(s) in cluster(m1), 2 total descheduled replica(s)"
	for _, tc := range []struct {
		name      string
		stored    *workv1alpha2.ResourceBinding
		answer    estimator.Unschedulable
		dryRun    bool
		conflicts int
		refused   bool
		want      []workv1alpha2.TargetCluster
		events    []string
		called    []string
	}{
		{
			name: "what is unschedulable is taken back", stored: binding(nil), answer: estimator.Unschedulable{Cluster: "m1", Replicas: 2},
			want: targets(3, 2), events: []string{done, done}, called: []string{"m1"},
		},
		{
			name: "a dry run writes nothing", stored: binding(nil), answer: estimator.Unschedulable{Cluster: "m1", Replicas: 2}, dryRun: true,
			want: targets(5, 2), called: []string{"m1"},
		},
		{
			name: "an estimator without an answer changes nothing", stored: binding(nil), answer: estimator.Unschedulable{Cluster: "m1", Err: errors.New("late")},
			want: targets(5, 2), called: []string{"m1"},
		},
		{
			name: "a conflict is decided again", stored: binding(nil), answer: estimator.Unschedulable{Cluster: "m1", Replicas: 2}, conflicts: 2,
			want: targets(3, 2), events: []string{done, done}, called: []string{"m1"},
		},
		{
			name: "a refused write is an event", stored: binding(nil), answer: estimator.Unschedulable{Cluster: "m1", Replicas: 2}, refused: true,
			want: targets(5, 2), called: []string{"m1"},
			events: []string{
				"Warning DescheduleBindingFailed Failed to deschedule the binding: no", "Warning DescheduleBindingFailed Failed to deschedule the binding: no",
			},
		},
		{
			name: "a binding must not cause events about a template elsewhere", answer: estimator.Unschedulable{Cluster: "m1", Replicas: 2},
			stored: binding(func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.Namespace = "kube-system" }),
			want:   targets(3, 2), events: []string{done}, called: []string{"m1"},
		},
		{
			name: "other kinds are left alone", answer: estimator.Unschedulable{Cluster: "m1", Replicas: 2},
			stored: binding(func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.Kind = "StatefulSet" }),
			want:   targets(5, 2),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := memory.New(t, tc.stored)
			if left := tc.conflicts; left > 0 {
				m.Before = func(string) error {
					if left--; left < 0 {
						return nil
					}
					return apierrors.NewConflict(workv1alpha2.Resource("resourcebindings"), tc.stored.Name, errors.New("changed"))
				}
			}
			if tc.refused {
				m.FailOn("update ", errors.New("no"))
			}
			var called []string
			var kept sets.Set[string]
			o := NewOptions()
			o.DryRun = tc.dryRun
			r := &runner{options: o, client: m.Client, live: m.Client, events: events.New(m.Recorder), clock: m.Clock,
				keep: func(clusters sets.Set[string]) { kept = clusters },
				estimates: func(_ context.Context, _ *workv1alpha2.ObjectReference, clusters []string, threshold time.Duration) []estimator.Unschedulable {
					if threshold != 5*time.Minute {
						t.Errorf("threshold %s", threshold)
					}
					called = append(called, clusters...)
					return []estimator.Unschedulable{tc.answer}
				}}
			r.pass(t.Context())
			if !slices.Equal(sets.List(kept), []string{"m1", "m2"}) {
				t.Errorf("the connections to %v are kept", sets.List(kept))
			}
			m.Refresh(tc.stored)
			if diff := cmp.Diff(tc.want, tc.stored.Spec.Clusters); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.called, called); diff != "" {
				t.Error(diff)
			}
			if published := m.Events(); !slices.Equal(published, tc.events) {
				t.Errorf("events %q", published)
			}
		})
	}
}

func TestDecide_HostileStatus(t *testing.T) {
	for _, status := range []string{`"x"`, `[]`, `{"readyReplicas":"7"}`, `{"readyReplicas":1e300}`, `{"readyReplicas":-9}`, `{"readyReplicas":null}`} {
		b := binding(func(b *workv1alpha2.ResourceBinding) { b.Status.AggregatedStatus[0].Status.Raw = []byte(status) })
		v := deschedule.Decide(b, map[string]deschedule.Answer{"m1": {Replicas: 2}})
		for _, c := range v.Clusters {
			if c.Replicas < 0 || c.Name == "m1" && c.Replicas != 3 || c.Name == "m2" && c.Replicas != 2 {
				t.Errorf("%s: %v", status, v.Clusters)
			}
		}
	}
}

func TestOptions_Validate(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"no interval":        func(o *Options) { o.Interval = 0 },
		"negative threshold": func(o *Options) { o.Threshold = -1 },
		"no such port":       func(o *Options) { o.Estimator.Port = 65536 },
	} {
		o := NewOptions()
		if err := o.Validate(); err != nil {
			t.Fatal(err)
		}
		if change(o); o.Validate() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
