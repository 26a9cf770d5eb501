package validation

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
)

func TestValidateFederatedHPA(t *testing.T) {
	const target = `scaleTargetRef: {kind: Deployment, name: d}, maxReplicas: 3`
	metrics := func(m string) string { return `{` + target + `, metrics: [` + m + `]}` }
	behavior := func(b string) string { return `{` + target + `, behavior: {` + b + `}}` }
	for _, tc := range []struct {
		name, spec string
		want       []string
	}{
		{name: "the least", spec: `{` + target + `}`},
		{
			name: "bounds and target", spec: `{minReplicas: 0, maxReplicas: -1, scaleTargetRef: {kind: a/b, name: ".."}}`,
			want: []string{
				"Invalid spec.minReplicas: must be greater than or equal to 1",
				"Invalid spec.maxReplicas: must be greater than 0",
				"Invalid spec.maxReplicas: must be greater than or equal to `minReplicas`",
				"Invalid spec.scaleTargetRef.kind: may not contain '/'",
				"Invalid spec.scaleTargetRef.name: may not be '..'",
			},
		},
		{name: "no type", spec: metrics(`{type: ""}`), want: []string{"Required spec.metrics[0].type: must specify a metric source type"}},
		{
			name: "external metrics", spec: metrics(`{type: External}`),
			want: []string{`NotSupported spec.metrics[0].type: supported values: "ContainerResource", "Object", "Pods", "Resource"`},
		},
		{name: "no source", spec: metrics(`{type: Pods}`), want: []string{"Required spec.metrics[0].pods: must populate information for the given metric source"}},
		{
			name: "two sources", spec: metrics(`{type: Resource, pods: {metric: {name: q}, target: {type: AverageValue, averageValue: 1}}, resource: {name: "", target: {type: X}}}`),
			want: []string{"Forbidden spec.metrics[0].pods: must populate the given metric source only"},
		},
		{
			name: "object", spec: metrics(`{type: Object, object: {describedObject: {kind: "", name: a}, metric: {name: ""}, target: {type: Value, averageUtilization: 0}}}`),
			want: []string{
				"Required spec.metrics[0].object.describedObject.kind", "Required spec.metrics[0].object.metric.name: must specify a metric name",
				"Invalid spec.metrics[0].object.target.averageUtilization: must be greater than 0",
				"Required spec.metrics[0].object.target.averageValue: must set either a target value or averageValue",
			},
		},
		{
			name: "pods", spec: metrics(`{type: Pods, pods: {metric: {name: a%b}, target: {type: "", value: 0}}}`),
			want: []string{
				"Invalid spec.metrics[0].pods.metric.name: may not contain '%'",
				"Required spec.metrics[0].pods.target.type: must specify a metric target type",
				"Invalid spec.metrics[0].pods.target.type: must be either Utilization, Value, or AverageValue",
				"Invalid spec.metrics[0].pods.target.value: must be positive",
				"Required spec.metrics[0].pods.target.averageValue: must specify a positive target averageValue",
			},
		},
		{
			name: "resource", spec: metrics(`{type: Resource, resource: {name: "", target: {type: Utilization, averageValue: -1, averageUtilization: 5}}}, {type: Resource, resource: {name: cpu, target: {type: Utilization}}}`),
			want: []string{
				"Required spec.metrics[0].resource.name: must specify a resource name",
				"Invalid spec.metrics[0].resource.target.averageValue: must be positive",
				"Forbidden spec.metrics[0].resource.target.averageValue: may not set both a target raw value and a target utilization",
				"Required spec.metrics[1].resource.target.averageUtilization: must set either a target raw value or a target utilization",
			},
		},
		{
			name: "container resource", spec: metrics(`{type: ContainerResource, containerResource: {name: pods, container: a.b, target: {type: Utilization, averageUtilization: 5}}}, {type: ContainerResource, containerResource: {name: foo, container: "", target: {type: Utilization, averageUtilization: 5}}}, {type: ContainerResource, containerResource: {name: vendor.example/gpu, container: c, target: {type: Utilization, averageUtilization: 5}}}`),
			want: []string{
				"Invalid spec.metrics[0].containerResource.name: must be a standard resource for containers",
				"Invalid spec.metrics[0].containerResource.container: must not contain dots",
				"Invalid spec.metrics[1].containerResource.name: must be a standard resource type or fully qualified",
				"Invalid spec.metrics[1].containerResource.name: must be a standard resource for containers",
				"Required spec.metrics[1].containerResource.container: must specify a container",
			},
		},
		{
			name: "behavior", spec: behavior(`scaleUp: {stabilizationWindowSeconds: -1, selectPolicy: X}, scaleDown: {stabilizationWindowSeconds: 3601, policies: [{type: X, value: 0, periodSeconds: 0}, {type: Pods, value: 1, periodSeconds: 1801}]}`),
			want: []string{
				"Invalid spec.behavior.scaleUp.stabilizationWindowSeconds: must be greater than or equal to zero",
				`NotSupported spec.behavior.scaleUp.selectPolicy: supported values: "Disabled", "Max", "Min"`,
				"Required spec.behavior.scaleUp.policies: must specify at least one Policy",
				"Invalid spec.behavior.scaleDown.stabilizationWindowSeconds: must be less than or equal to 3600",
				`NotSupported spec.behavior.scaleDown.policies[0].type: supported values: "Percent", "Pods"`,
				"Invalid spec.behavior.scaleDown.policies[0].value: must be greater than zero",
				"Invalid spec.behavior.scaleDown.policies[0].periodSeconds: must be greater than zero",
				"Invalid spec.behavior.scaleDown.policies[1].periodSeconds: must be less than or equal to 1800",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := &autoscalingv1alpha1.FederatedHPA{Spec: *decode[autoscalingv1alpha1.FederatedHPASpec](t, tc.spec)}
			h.Name, h.Namespace = "h", "ns"
			if diff := cmp.Diff(tc.want, brief(ValidateFederatedHPA(h))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestValidateCronFederatedHPA(t *testing.T) {
	const workload = `scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}`
	const hpa = `scaleTargetRef: {apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, name: h}`
	for _, tc := range []struct {
		name, spec string
		want       []string
	}{
		{name: "a workload", spec: `{` + workload + `, rules: [{name: a, schedule: "0 9 * * *", targetReplicas: 0, timeZone: Asia/Shanghai}]}`},
		{
			name: "another kind of the group stops the check", spec: `{scaleTargetRef: {apiVersion: autoscaling.karmada.io/v1alpha1, kind: X}, rules: [{name: a, schedule: bad}]}`,
			want: []string{"Invalid spec.scaleTargetRef.kind: invalid scaleTargetRef kind: X, only support FederatedHPA"},
		},
		{
			name: "rules", spec: `{` + workload + `, rules: [{name: a, schedule: bad, timeZone: Mars/Base}, {name: a, schedule: "@daily", targetReplicas: -1}]}`,
			want: []string{
				"Invalid spec.rules[0].schedule: invalid cron format: expected exactly 5 fields, found 1: [bad]", "Invalid spec.rules[0].timeZone: unknown time zone Mars/Base",
				"Invalid spec.rules[0].targetReplicas: targetReplicas cannot be nil if you want to scale Deployment",
				"Duplicate spec.rules[1].name", "Invalid spec.rules[1].targetReplicas: targetReplicas should be larger than or equal to 0",
			},
		},
		{
			name: "bounds", spec: `{` + hpa + `, rules: [{name: a, schedule: "@daily"}, {name: b, schedule: "@daily", targetMinReplicas: 0, targetMaxReplicas: 0}, {name: c, schedule: "@daily", targetMinReplicas: 3, targetMaxReplicas: 2}, {name: d, schedule: "@daily", targetMinReplicas: 3}]}`,
			want: []string{
				"Invalid spec.rules[0].targetMaxReplicas: targetMinReplicas and targetMaxReplicas cannot be nil at the same time if you want to scale FederatedHPA",
				"Invalid spec.rules[1].targetMinReplicas: targetMinReplicas should be larger than 0", "Invalid spec.rules[1].targetMaxReplicas: targetMaxReplicas should be larger than 0",
				"Invalid spec.rules[2].targetMinReplicas: targetMaxReplicas should be larger than or equal to targetMinReplicas",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &autoscalingv1alpha1.CronFederatedHPA{Spec: *decode[autoscalingv1alpha1.CronFederatedHPASpec](t, tc.spec)}
			c.Name, c.Namespace = "c", "ns"
			if diff := cmp.Diff(tc.want, brief(ValidateCronFederatedHPA(c))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The executor of the controller has the same grammar.
func TestValidateCronFederatedHPA_Schedules(t *testing.T) {
	check := func(text string) []string {
		return brief(validateCronTime(&autoscalingv1alpha1.CronFederatedHPARule{Schedule: text}, nil))
	}
	for _, good := range []string{
		"* * * * *", "*/5 0-6 1,15 JAN-MAR mon", "5/10 * * * ?", "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly",
		"@every 1h", "CRON_TZ=Asia/Tokyo 0 9 * * *", "0 0 29 2 *",
	} {
		if errs := check(good); errs != nil {
			t.Errorf("%q is refused: %v", good, errs)
		}
	}
	for _, bad := range []string{
		"", "bad", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "0 0 * * 7", "*/0 * * * *", "5-1 * * * *", "a * * * *", "@never",
		"0 0 9 * * *", "0 9 * * * 2030", "0 9 L * *", "@always", "@5minutes", "@everysecond", "TZ=UTC", "CRON_TZ=", "CRON_TZ=Mars/Base 0 9 * * *", "0 0 30 2 *",
	} {
		if errs := check(bad); len(errs) != 1 {
			t.Errorf("%q: errors are %v", bad, errs)
		}
	}
}

func TestValidateCronFederatedHPA_Limits(t *testing.T) {
	of := func(n int, schedule string) *autoscalingv1alpha1.CronFederatedHPA {
		c := &autoscalingv1alpha1.CronFederatedHPA{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns"}}
		c.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "d"}
		for i := range n {
			c.Spec.Rules = append(c.Spec.Rules, autoscalingv1alpha1.CronFederatedHPARule{Name: strconv.Itoa(i), Schedule: schedule, TargetReplicas: new(int32(1))})
		}
		return c
	}
	for name, tc := range map[string]struct {
		obj, old *autoscalingv1alpha1.CronFederatedHPA
		want     []string
	}{
		"as many as may be":                 {obj: of(100, "@every 10s")},
		"too many":                          {obj: of(101, "@daily"), want: []string{"TooMany spec.rules"}},
		"too often":                         {obj: of(1, "@every 9s"), want: []string{"Invalid spec.rules[0].schedule: a rule runs at most every 10s"}},
		"too often with a time zone":        {obj: of(1, "CRON_TZ=UTC @every 1s"), want: []string{"Invalid spec.rules[0].schedule: a rule runs at most every 10s"}},
		"exceeding before":                  {obj: of(1500, "@every 1s"), old: of(1500, "@every 1s")},
		"exceeding before, now more":        {obj: of(1501, "@every 1s"), old: of(1500, "@every 1s"), want: []string{"TooMany spec.rules"}},
		"exceeding before, with a new rule": {obj: of(1, "@every 2s"), old: of(1, "@every 1s"), want: []string{"Invalid spec.rules[0].schedule: a rule runs at most every 10s"}},
	} {
		t.Run(name, func(t *testing.T) {
			errs := ValidateCronFederatedHPACreate(tc.obj)
			if tc.old != nil {
				errs = ValidateCronFederatedHPAUpdate(tc.obj, tc.old)
			}
			got := brief(errs)
			for i := range got {
				if strings.HasPrefix(got[i], "TooMany") {
					got[i] = "TooMany spec.rules"
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
