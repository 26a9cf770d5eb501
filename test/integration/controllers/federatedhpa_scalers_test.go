//go:build integration

package controllers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/testenv"
	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

func (e *autoscalingEnv) testTwoScalers(t *testing.T) {
	e.workload(t, "twice", 1, "m1", "m2")
	e.run(t, "m1", "twice", 1)
	e.run(t, "m2", "twice", 0)
	e.usage.set("100m")
	e.hpa(t, "first", "twice")
	second := e.hpa(t, "second", "twice")
	e.condition(t, "first", autoscalingv2.ScalingActive, "AmbiguousSelector")
	e.condition(t, "second", autoscalingv2.ScalingActive, "AmbiguousSelector")
	e.remove(t, second)
	e.condition(t, "first", autoscalingv2.ScalingActive, "ValidMetricFound")
	e.create(t, e.nativeHPA("native", "twice", nil))
	e.event(t, "first", "AnotherScaler", `HorizontalPodAutoscaler "native" scales the same target`)
}

func (e *autoscalingEnv) nativeHPA(name, target string, labels map[string]string) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: autoscalingNamespace, Name: name, Labels: labels},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: target}, MaxReplicas: 5,
		},
	}
}

func (e *autoscalingEnv) testZero(t *testing.T) {
	e.workload(t, "zero", 0, "m1", "m2")
	e.run(t, "m1", "zero", 1)
	e.run(t, "m2", "zero", 0)
	e.hpa(t, "zero", "zero")
	e.replicas(t, "zero", 1)
}

func (e *autoscalingEnv) testCron(t *testing.T) {
	e.create(t, autoscalingDeployment("clock", 0))
	cron := func(name, schedule string, ref autoscalingv2.CrossVersionObjectReference, rule autoscalingv1alpha1.CronFederatedHPARule) {
		c := &autoscalingv1alpha1.CronFederatedHPA{ObjectMeta: metav1.ObjectMeta{Namespace: autoscalingNamespace, Name: name}}
		rule.Name, rule.Schedule, rule.FailedHistoryLimit = "a", schedule, new(int32(0))
		c.Spec.ScaleTargetRef, c.Spec.Rules = ref, []autoscalingv1alpha1.CronFederatedHPARule{rule}
		e.create(t, c)
	}
	workload := autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "clock"}
	bounds := autoscalingv2.CrossVersionObjectReference{APIVersion: "autoscaling.karmada.io/v1alpha1", Kind: "FederatedHPA", Name: "zero"}
	cron("up", "@every 1s", workload, autoscalingv1alpha1.CronFederatedHPARule{TargetReplicas: new(int32(3))})
	e.replicas(t, "clock", 3)
	cron("bounds", "@every 1s", bounds, autoscalingv1alpha1.CronFederatedHPARule{TargetMinReplicas: new(int32(2)), TargetMaxReplicas: new(int32(7))})
	e.replicas(t, "zero", 2)
	cron("crossing", "@every 1s", bounds, autoscalingv1alpha1.CronFederatedHPARule{TargetMinReplicas: new(int32(20))})
	e.event(t, "crossing", "ScaleFailed", "minReplicas 20 above maxReplicas 7")
	cron("grammar", "0 0 9 * * *", workload, autoscalingv1alpha1.CronFederatedHPARule{TargetReplicas: new(int32(1))})
	e.event(t, "grammar", "StartRuleFailed", "expected exactly 5 fields, found 6")
	workload.Name = "gone"
	cron("gone", "@every 1s", workload, autoscalingv1alpha1.CronFederatedHPARule{TargetReplicas: new(int32(1))})
	e.event(t, "gone", "ScaleFailed", `deployments.apps "gone" not found`)
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		c := &autoscalingv1alpha1.CronFederatedHPA{}
		if err := e.client.Get(ctx, client.ObjectKey{Namespace: autoscalingNamespace, Name: "up"}, c); err != nil {
			return err
		}
		if h := c.Status.ExecutionHistories; len(h) != 1 || h[0].NextExecutionTime == nil || len(h[0].SuccessfulExecutions) == 0 || *h[0].SuccessfulExecutions[0].AppliedReplicas != 3 {
			return fmt.Errorf("the history is %+v", h)
		}
		return nil
	})
	for _, name := range []string{"up", "bounds", "crossing", "grammar", "gone"} {
		e.remove(t, &autoscalingv1alpha1.CronFederatedHPA{ObjectMeta: metav1.ObjectMeta{Namespace: autoscalingNamespace, Name: name}})
	}
}

func (e *autoscalingEnv) testNative(t *testing.T) {
	e.workload(t, "native", 2, "m1", "m2")
	h := e.nativeHPA("member-side", "native", map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "x"})
	e.create(t, h)
	// A reference never reaches an object without a namespace.
	escape := e.nativeHPA("escape", "m1", h.Labels)
	escape.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "cluster.karmada.io/v1alpha1", Kind: "Cluster", Name: "m1"}
	e.create(t, escape)
	marked := func(want bool) {
		t.Helper()
		testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
			d := &appsv1.Deployment{}
			if err := e.client.Get(ctx, client.ObjectKey{Namespace: autoscalingNamespace, Name: "native"}, d); err != nil {
				return err
			}
			if (d.Labels[workv1alpha2.RetainReplicasLabel] == "true") != want {
				return fmt.Errorf("the labels are %v", d.Labels)
			}
			return nil
		})
	}
	marked(true)
	// The label is restored when it is removed by hand.
	unmark := fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, workv1alpha2.RetainReplicasLabel)
	native := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: autoscalingNamespace, Name: "native"}}
	if err := e.client.Patch(t.Context(), native, client.RawPatch("application/merge-patch+json", []byte(unmark))); err != nil {
		t.Fatal(err)
	}
	marked(true)
	// The members run 5 replicas.
	status := func(obj client.Object, patch string) {
		t.Helper()
		if err := e.client.Status().Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	status(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: autoscalingNamespace, Name: "native"}}, `{"status":{"replicas":5}}`)
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: autoscalingNamespace, Name: "native-deployment"}}
	status(b, `{"status":{"schedulerObservedGeneration":1,"aggregatedStatus":[{"clusterName":"m1","status":{"replicas":3}},{"clusterName":"m2","status":{"replicas":2}}]}}`)
	e.replicas(t, "native", 5)
	e.remove(t, h)
	marked(false)
	cluster := &clusterv1alpha1.Cluster{}
	if err := e.client.Get(t.Context(), client.ObjectKey{Name: "m1"}, cluster); err != nil || len(cluster.Labels) > 0 {
		t.Errorf("the labels of the cluster are %v, %v", cluster.Labels, err)
	}
	if !meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady) {
		t.Error("the cluster is not ready")
	}
}
