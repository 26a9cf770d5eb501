package components

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/karmada-toolkit/karmada/internal/build"
)

// sampleRelease is a Helm release that sets everything that init does not.
func sampleRelease() *Config {
	c := sampleAddons()
	c.Namespace, c.SystemNamespace, c.NodePort, c.ServiceType = "team", "federation", 0, corev1.ServiceTypeClusterIP
	c.Names, c.Labels = ReleaseNames("try", "try-"), map[string]string{"app.kubernetes.io/managed-by": "Helm"}
	c.Certificates, c.Encryption, c.Await = nil, &Encryption{Secret: "mine", Key: "encryption.yaml"}, &Await{Version: "v1", Settings: "s"}
	for _, name := range []string{APIServer, ControllerManager} {
		w := c.Workloads[name]
		w.Labels, w.PodLabels = map[string]string{"app": "other", "a": "b"}, map[string]string{"app": "other", "c": "d"}
		w.PodAnnotations, w.PullSecrets, w.HostNetwork = map[string]string{"e": "f"}, []string{"pull"}, name == APIServer
		w.Strategy = &appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		w.DisruptionBudget = &policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1))}
		c.Workloads[name] = w
	}
	return c
}

func TestRelease(t *testing.T) {
	c := sampleRelease()
	build.AssertGolden(t, "release", render(t, append(DisruptionBudgets(c), EtcdService(c), EtcdClientService(c), statefulSet(t, c), APIServerService(c), apiServer(t, c), ControllerManagerDeployment(c))...))
}

func TestRelease_NamesOfTwoDiffer(t *testing.T) {
	text := func(names Naming) []string {
		c := sampleRelease()
		c.Names = names
		objects := append(DisruptionBudgets(c), EtcdService(c), EtcdClientService(c), statefulSet(t, c), APIServerService(c), apiServer(t, c),
			AggregatedHostService(c), AggregatedDeployment(c), KubeControllerManagerDeployment(c), SchedulerDeployment(c), ControllerManagerDeployment(c),
			WebhookService(c), WebhookDeployment(c), DeschedulerDeployment(c))
		secrets, err := Secrets(c)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, secrets...)
		objects = append(append(append(objects, SearchHost(c)...), MetricsAdapterHost(c)...), EstimatorHost(c, "member1")...)
		var out []string
		for _, o := range objects {
			out = append(out, kindOf(o)+" "+o.GetName())
		}
		return out
	}
	karmada, try := text(ReleaseNames("karmada", "")), text(ReleaseNames("try", "try-"))
	for i := range karmada {
		_, name, _ := strings.Cut(try[i], " ")
		if karmada[i] == try[i] || !strings.HasPrefix(name, "try-") {
			t.Errorf("%s and %s", karmada[i], try[i])
		}
	}
}
