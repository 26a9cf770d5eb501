package autoscaling

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func quantity(text string) *resource.Quantity { return new(resource.MustParse(text)) }

func hpa(lower, upper int32, metrics ...autoscalingv2.MetricSpec) *autoscalingv1alpha1.FederatedHPA {
	h := &autoscalingv1alpha1.FederatedHPA{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "h"}}
	h.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	h.Spec.MinReplicas, h.Spec.MaxReplicas, h.Spec.Metrics = &lower, upper, metrics
	return h
}

func perPod(value string) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{
		Metric: autoscalingv2.MetricIdentifier{Name: "qps"},
		Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: quantity(value)},
	}}
}

func cpuAverage(value string) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
		Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: quantity(value)},
	}}
}

// readyPods returns pods that have been ready for an hour.
func readyPods(names ...string) []*corev1.Pod {
	out := make([]*corev1.Pod, 0, len(names))
	since := metav1.NewTime(start.Add(-time.Hour))
	for _, name := range names {
		out = append(out, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": "web"}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &since, Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: since},
			}},
		})
	}
	return out
}

func member(cluster string, names ...string) Member {
	n := int32(len(names))
	return Member{Cluster: cluster, Spec: n, Status: n, Selector: "app=web", Pods: readyPods(names...)}
}

func podMetrics(cluster, name, cpu string) metricsv1beta1.PodMetrics {
	m := metricsv1beta1.PodMetrics{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Timestamp: metav1.NewTime(start),
		Containers: []metricsv1beta1.ContainerMetrics{{Name: "app", Usage: corev1.ResourceList{corev1.ResourceCPU: *quantity(cpu)}}},
	}
	if cluster != "" {
		m.Annotations = map[string]string{ClusterAnnotation: cluster}
	}
	return m
}

func settings() Settings {
	return Settings{DownscaleStabilization: 5 * time.Minute, Tolerance: 0.1, CPUInitialization: 5 * time.Minute, InitialReadiness: 30 * time.Second}
}

func TestEvaluate_PodsOfOneNameInSeveralClusters(t *testing.T) {
	f := Facts{
		Now: start, Settings: settings(), Current: 4, HPA: hpa(1, 100, cpuAverage("100m")),
		Members: []Member{member("m1", "web-0", "web-1"), member("m2", "web-0", "web-1")},
		Metrics: Metrics{Pods: []metricsv1beta1.PodMetrics{
			podMetrics("m1", "web-0", "100m"), podMetrics("m1", "web-1", "100m"), podMetrics("m2", "web-0", "300m"), podMetrics("m2", "web-1", "300m"),
		}},
	}
	if v := Evaluate(f); v.Replicas != 8 || v.Err != nil {
		t.Errorf("replicas are %d, %v; want 8", v.Replicas, v.Err)
	}
	// Sources without clusters add up the pods of one name.
	f.Metrics.Pods = []metricsv1beta1.PodMetrics{podMetrics("", "web-0", "400m"), podMetrics("", "web-1", "400m")}
	if v := Evaluate(f); v.Replicas != 8 || v.Err != nil {
		t.Errorf("replicas are %d, %v; want 8", v.Replicas, v.Err)
	}
}

func TestEvaluate_Tolerance(t *testing.T) {
	h := hpa(1, 100, cpuAverage("100m"))
	h.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{
		ScaleUp: &autoscalingv2.HPAScalingRules{Tolerance: quantity("0.5")}, ScaleDown: &autoscalingv2.HPAScalingRules{Tolerance: quantity("0"), StabilizationWindowSeconds: new(int32(0))},
	}
	for usage, want := range map[string]int32{"140m": 2, "160m": 4, "95m": 2, "49m": 1} {
		v := Evaluate(Facts{
			Now: start, Settings: settings(), Current: 2, HPA: h, Members: []Member{member("m1", "a", "b")},
			Metrics: Metrics{Pods: []metricsv1beta1.PodMetrics{podMetrics("m1", "a", usage), podMetrics("m1", "b", usage)}},
		})
		if v.Replicas != want {
			t.Errorf("usage %s: replicas are %d, want %d", usage, v.Replicas, want)
		}
	}
}

func TestEvaluate_BadInput(t *testing.T) {
	valid := func() Facts {
		return Facts{
			Now: start, Settings: settings(), Current: 2, HPA: hpa(1, 10, cpuAverage("100m")), Members: []Member{member("m1", "a", "b")},
			Metrics: Metrics{Pods: []metricsv1beta1.PodMetrics{podMetrics("m1", "a", "100m"), podMetrics("m1", "b", "100m")}},
		}
	}
	for _, tc := range []struct {
		name   string
		change func(*Facts)
		err    string
	}{
		{"no clusters answered", func(f *Facts) { f.Members = nil }, "failed to get replicas in any of clusters"},
		{"bounds cross", func(f *Facts) { f.HPA = hpa(5, 3) }, "spec.minReplicas (5) is larger than spec.maxReplicas (3)"},
		{"all values are negative", func(f *Facts) {
			f.Metrics.Pods = []metricsv1beta1.PodMetrics{podMetrics("m1", "a", "-1"), podMetrics("m1", "b", "-1")}
		}, "did not receive metrics for any ready pods"},
		{"a target of 0", func(f *Facts) { f.HPA = hpa(1, 10, cpuAverage("0")) }, "is not larger than 0"},
		{"no source", func(f *Facts) {
			f.HPA = hpa(1, 10, autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType})
		}, "unknown metric source type"},
		{"the metrics API does not answer", func(f *Facts) { f.Metrics.PodsErr = errors.New("boom") }, "boom"},
		{"a per-pod metric without target", func(f *Facts) {
			m := perPod("1")
			m.Pods.Target.AverageValue = nil
			f.HPA = hpa(1, 10, m)
		}, "no average value target was set"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := valid()
			tc.change(&f)
			v := Evaluate(f)
			if v.Rescale || v.Err == nil || !strings.Contains(v.Err.Error(), tc.err) {
				t.Errorf("rescale is %t, error is %v, want %s", v.Rescale, v.Err, tc.err)
			}
		})
	}
}

func TestEvaluate_HugeValues(t *testing.T) {
	f := Facts{
		Now: start, Settings: settings(), Current: 2, HPA: hpa(1, 10, cpuAverage("1m")), Members: []Member{member("m1", "a", "b")},
		Metrics: Metrics{Pods: []metricsv1beta1.PodMetrics{podMetrics("m1", "a", "9000000000000000"), podMetrics("m1", "b", "9000000000000000")}},
	}
	if v := Evaluate(f); v.Replicas != 4 || v.Err != nil {
		t.Errorf("replicas are %d, %v; want 4, the limit of one pass", v.Replicas, v.Err)
	}
}

func TestEvaluate_HugeReplicas(t *testing.T) {
	const most = math.MaxInt32
	f := Facts{
		Now: start, Settings: settings(), Current: most - 1, HPA: hpa(1, most, cpuAverage("100m")), Members: []Member{member("m1", "a", "b")},
		Metrics: Metrics{Pods: []metricsv1beta1.PodMetrics{podMetrics("m1", "a", "900m"), podMetrics("m1", "b", "900m")}},
	}
	if v := Evaluate(f); v.Replicas != most || v.Err != nil {
		t.Errorf("replicas are %d, %v; want %d", v.Replicas, v.Err, most)
	}
}

// The selector of a FederatedHPA is that of its first member; pods of other members may have other labels.
func TestEvaluate_OwnSelectorSelectsNothing(t *testing.T) {
	second := member("m2", "a", "b")
	f := Facts{
		Now: start, Settings: settings(), Current: 2, HPA: hpa(1, 10, cpuAverage("100m")),
		Members: []Member{{Cluster: "m1", Selector: "app=first"}, second},
		Others:  []Other{{Key: types.NamespacedName{Namespace: "ns", Name: "other"}, Selector: labels.SelectorFromSet(labels.Set{"app": "web"})}},
		Metrics: Metrics{Pods: []metricsv1beta1.PodMetrics{podMetrics("m2", "a", "100m"), podMetrics("m2", "b", "100m")}},
	}
	if v := Evaluate(f); v.Err != nil {
		t.Errorf("only one other FederatedHPA selects the pods: %v", v.Err)
	}
	f.Others = append(f.Others, Other{Key: types.NamespacedName{Namespace: "ns", Name: "third"}, Selector: labels.Everything()})
	if v := Evaluate(f); v.Err == nil || !strings.Contains(v.Err.Error(), "controlled by multiple HPAs: [ns/other ns/third]") {
		t.Errorf("error is %v", v.Err)
	}
}

func TestOfNamespace(t *testing.T) {
	for version, want := range map[string]bool{"v1": true, "": true, "example.io/v1": false} {
		s := &autoscalingv2.ObjectMetricSource{DescribedObject: autoscalingv2.CrossVersionObjectReference{APIVersion: version, Kind: "Namespace", Name: "ns"}}
		if got := OfNamespace(s); got != want {
			t.Errorf("apiVersion %q: %t, want %t", version, got, want)
		}
	}
}

func TestEvaluate_DoesNotChangeFacts(t *testing.T) {
	h := hpa(1, 10)
	h.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{}
	f := Facts{Now: start, Settings: settings(), Current: 2, HPA: h, Members: []Member{member("m1", "a", "b")}, History: History{Recommendations: make([]Recommendation, 1, 4)}}
	Evaluate(f).Rescaled(nil)
	if h.Spec.Behavior.ScaleUp != nil || len(h.Spec.Metrics) != 0 || len(h.Status.Conditions) != 0 || !f.History.Recommendations[0].At.IsZero() {
		t.Error("the facts were changed")
	}
}

// A controller that starts anew makes no scale-down that one with the whole history would not make.
func TestResume(t *testing.T) {
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 1))
		h := hpa(1, 60, perPod("10"))
		if seed%4 > 0 {
			h.Spec.Behavior = randomBehavior(r)
		}
		now, current := start, 1+r.Int32N(30)
		var known, resumed History
		restart := 20 + r.IntN(20)
		for step := range 80 {
			now = now.Add(15 * time.Second)
			if step == restart {
				if r.IntN(3) == 0 { // The previous controller stopped before it wrote the status.
					h.Status.DesiredReplicas, h.Status.LastScaleTime = current+1, nil
				}
				resumed = Resume(h, current, now)
			}
			f := Facts{Now: now, Settings: settings(), Current: current, HPA: h, Members: []Member{load(current)}, Metrics: Metrics{Custom: map[int]Custom{0: {}}}}
			value := 1 + r.Int64N(25)
			for i := range f.Members[0].Pods {
				f.Metrics.Custom[0] = Custom{Values: append(f.Metrics.Custom[0].Values, v1beta2.MetricValue{
					DescribedObject: corev1.ObjectReference{Name: f.Members[0].Pods[i].Name}, Value: *resource.NewQuantity(value, resource.DecimalSI),
				})}
			}
			f.History = known
			full := Evaluate(f)
			actual := full
			if step >= restart {
				f.History = resumed
				actual = Evaluate(f)
				if actual.Replicas < current && full.Replicas > actual.Replicas {
					t.Fatalf("seed %d, step %d: %d -> %d after a restart, %d without", seed, step, current, actual.Replicas, full.Replicas)
				}
			}
			known = full.History.clone()
			if actual.Rescale {
				known.rescaled(h.Spec.Behavior, current, actual.Replicas, now)
				actual.Rescaled(nil)
				current = actual.Replicas
			}
			h.Status = actual.Report.Status
			if step >= restart {
				resumed = actual.History
			}
		}
	}
}

func load(n int32) Member {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("web-%d", i)
	}
	return member("m1", names...)
}

func randomBehavior(r *rand.Rand) *autoscalingv2.HorizontalPodAutoscalerBehavior {
	rules := func() *autoscalingv2.HPAScalingRules {
		out := &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(r.Int32N(3) * 60)}
		out.SelectPolicy = new([]autoscalingv2.ScalingPolicySelect{autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect}[r.IntN(2)])
		for range 1 + r.IntN(3) {
			kind := []autoscalingv2.HPAScalingPolicyType{autoscalingv2.PodsScalingPolicy, autoscalingv2.PercentScalingPolicy}[r.IntN(2)]
			out.Policies = append(out.Policies, autoscalingv2.HPAScalingPolicy{Type: kind, Value: 1 + r.Int32N(20), PeriodSeconds: 15 * (1 + r.Int32N(20))})
		}
		// Events are kept for the longest period of their own direction.
		out.Policies[0].PeriodSeconds = 300
		return out
	}
	return &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rules(), ScaleDown: rules()}
}

func TestMissed(t *testing.T) {
	rule := &autoscalingv1alpha1.CronFederatedHPARule{Name: "a", Schedule: "*/5 * * * *"}
	at := func(minutes int) *metav1.Time {
		return new(metav1.NewTime(start.Add(time.Duration(minutes) * time.Minute)))
	}
	for _, tc := range []struct {
		name     string
		next     *metav1.Time
		deadline time.Duration
		want     bool
	}{
		{"no deadline", at(-5), 0, false},
		{"within the deadline", at(-5), 10 * time.Minute, true},
		{"too long ago", at(-15), 10 * time.Minute, false},
		{"not a time of the schedule", at(-4), 10 * time.Minute, false},
		{"in the future", at(5), 10 * time.Minute, false},
		{"never computed", nil, 10 * time.Minute, false},
	} {
		if got := Missed(rule, tc.next, start, tc.deadline); got != tc.want {
			t.Errorf("%s: %t", tc.name, got)
		}
	}
	rule.Suspend = new(true)
	if Missed(rule, at(-5), start, 10*time.Minute) {
		t.Error("a suspended rule runs")
	}
}

func TestRecord_LimitZero(t *testing.T) {
	rule := &autoscalingv1alpha1.CronFederatedHPARule{Name: "a", FailedHistoryLimit: new(int32(0))}
	histories := []autoscalingv1alpha1.ExecutionHistory{{RuleName: "a"}}
	Record(histories, rule, start, start, nil, errors.New("boom"))
	if len(histories[0].FailedExecutions) != 0 {
		t.Errorf("kept %v", histories[0].FailedExecutions)
	}
}

func TestNext_Errors(t *testing.T) {
	for schedule, want := range map[string]string{"0 0 30 2 *": "never fires", "TZ=UTC": "no schedule", "* * * *": "expected exactly 5 fields"} {
		_, err := Next(&autoscalingv1alpha1.CronFederatedHPARule{Schedule: schedule}, start)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", schedule, err)
		}
	}
}

func TestRebound_Crossing(t *testing.T) {
	for name, rule := range map[string]*autoscalingv1alpha1.CronFederatedHPARule{
		"minReplicas above": {TargetMinReplicas: new(int32(11))}, "maxReplicas below": {TargetMaxReplicas: new(int32(1))}, "nothing": {},
	} {
		if _, err := Rebound(hpa(2, 10), rule); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestMark(t *testing.T) {
	target := autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	scaler := func(name string, propagated bool) autoscalingv2.HorizontalPodAutoscaler {
		h := autoscalingv2.HorizontalPodAutoscaler{}
		h.Spec.ScaleTargetRef = target
		h.Spec.ScaleTargetRef.Name = name
		if propagated {
			h.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "x"}
		}
		return h
	}
	for _, tc := range []struct {
		name string
		hpas []autoscalingv2.HorizontalPodAutoscaler
		want Marking
	}{
		{"none", nil, RemoveMark},
		{"of another target", []autoscalingv2.HorizontalPodAutoscaler{scaler("other", true)}, RemoveMark},
		{"propagated", []autoscalingv2.HorizontalPodAutoscaler{scaler("web", true)}, AddMark},
		{"no longer propagated", []autoscalingv2.HorizontalPodAutoscaler{scaler("web", false)}, KeepMark},
		{"one of two propagated", []autoscalingv2.HorizontalPodAutoscaler{scaler("web", false), scaler("web", true)}, AddMark},
	} {
		if got := Mark(target, tc.hpas); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestSyncReplicas(t *testing.T) {
	status := func(cluster, raw string) workv1alpha2.AggregatedStatusItem {
		return workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Status: &runtime.RawExtension{Raw: []byte(raw)}}
	}
	for _, tc := range []struct {
		name   string
		change func(*appsv1.Deployment, *workv1alpha2.ResourceBinding)
		want   bool
	}{
		{"all current", func(*appsv1.Deployment, *workv1alpha2.ResourceBinding) {}, true},
		{"not marked", func(d *appsv1.Deployment, _ *workv1alpha2.ResourceBinding) { d.Labels = nil }, false},
		{"equal", func(d *appsv1.Deployment, _ *workv1alpha2.ResourceBinding) { d.Spec.Replicas = new(int32(5)) }, false},
		{"duplicated", func(_ *appsv1.Deployment, b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement.ReplicaScheduling.ReplicaSchedulingType = policyv1alpha1.ReplicaSchedulingTypeDuplicated
		}, false},
		{"binding behind", func(_ *appsv1.Deployment, b *workv1alpha2.ResourceBinding) { b.Spec.Replicas = 3 }, false},
		{"not scheduled yet", func(_ *appsv1.Deployment, b *workv1alpha2.ResourceBinding) { b.Generation = 8 }, false},
		{"a cluster without status", func(_ *appsv1.Deployment, b *workv1alpha2.ResourceBinding) { b.Status.AggregatedStatus[1].Status = nil }, false},
		{"a cluster without replicas", func(_ *appsv1.Deployment, b *workv1alpha2.ResourceBinding) {
			b.Status.AggregatedStatus[1] = status("m2", "{}")
		}, false},
		{"a status that cannot be read", func(_ *appsv1.Deployment, b *workv1alpha2.ResourceBinding) {
			b.Status.AggregatedStatus[1] = status("m2", "[]")
		}, false},
		{"another sum", func(_ *appsv1.Deployment, b *workv1alpha2.ResourceBinding) {
			b.Status.AggregatedStatus[1] = status("m2", `{"replicas":3}`)
		}, false},
		{"another object", func(_ *appsv1.Deployment, b *workv1alpha2.ResourceBinding) { b.Spec.Resource.Namespace = "other" }, false},
	} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Labels: map[string]string{workv1alpha2.RetainReplicasLabel: "true"}}}
		d.Spec.Replicas, d.Status.Replicas = new(int32(2)), 5
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "web"}
		b.Spec.Replicas, b.Spec.Clusters = 2, []workv1alpha2.TargetCluster{{Name: "m1"}, {Name: "m2"}}
		b.Spec.Placement = &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}}
		b.Status.SchedulerObservedGeneration = 7
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{status("m1", `{"replicas":3}`), status("m2", `{"replicas":2}`)}
		tc.change(d, b)
		if n, ok := SyncReplicas(d, b); ok != tc.want || ok && n != 5 {
			t.Errorf("%s: %d, %t", tc.name, n, ok)
		}
	}
}
