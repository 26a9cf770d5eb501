package phases

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
)

func TestLayout(t *testing.T) {
	for name, tc := range map[string]struct {
		compact    bool
		have, left []string
		text       string
		rights     bool
	}{
		"to one Deployment": {true, append(components.CompactParts(), components.AllInOne), []string{components.AllInOne}, "karmada-aggregated-apiserver, karmada-webhook, karmada-controller-manager, karmada-scheduler removed", true},
		"to one for each":   {false, append(components.CompactParts(), components.AllInOne), components.CompactParts(), "karmada-all-in-one removed", false},
		"half removed":      {true, []string{components.AllInOne, components.Scheduler}, []string{components.AllInOne}, "karmada-scheduler removed", true},
		"nothing to remove": {false, components.CompactParts(), components.CompactParts(), "as wanted", false},
	} {
		t.Run(name, func(t *testing.T) {
			c := config.New()
			c.Compact = tc.compact
			host := fake.NewClientBuilder().WithScheme(kube.NewScheme()).Build()
			others := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "others", Name: components.Scheduler}}
			if err := host.Create(t.Context(), others); err != nil {
				t.Fatal(err)
			}
			ran, facts := false, &hostcluster.Facts{}
			for _, workload := range tc.have {
				ran = ran || workload == components.AllInOne
				d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: c.APIServer.Namespace, Name: workload}}
				facts.Deployments = append(facts.Deployments, *d)
				if err := host.Create(t.Context(), d); err != nil {
					t.Fatal(err)
				}
			}
			cp := fake.NewClientBuilder().WithScheme(kube.NewScheme()).Build()
			in := &Inputs{Config: &components.Config{Namespace: c.APIServer.Namespace, Compact: c.Compact}, AllInOneRuns: ran}
			s := &State{Config: &c, Host: host, Facts: facts, Given: in, Outcome: &Outcome{}, Connect: func(context.Context) (client.Client, error) { return cp, nil }}
			objects, err := rbacObjects(in)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.apply(t.Context(), cp, objects); err != nil {
				t.Fatal(err)
			}
			if ran && !bound(t, cp) {
				t.Error("the pods with all roles have lost their rights before they are removed")
			}
			text, err := removeOtherLayout(t.Context(), s, Phase{})
			if err != nil || text != tc.text {
				t.Errorf("got %q, %v", text, err)
			}
			left := map[string]bool{}
			list := &appsv1.DeploymentList{}
			if err := host.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			for _, d := range list.Items {
				left[d.Namespace+"/"+d.Name] = true
			}
			want := map[string]bool{"others/" + components.Scheduler: true}
			for _, workload := range tc.left {
				want[c.APIServer.Namespace+"/"+workload] = true
			}
			if diff := cmp.Diff(want, left); diff != "" {
				t.Error(diff)
			}
			if got := bound(t, cp); got != tc.rights {
				t.Errorf("the pods with all roles have rights: %t", got)
			}
		})
	}
}

// bound reports whether the pods with all roles have the rights of the scheduler.
func bound(t *testing.T, cp client.Client) bool {
	t.Helper()
	b := &rbacv1.ClusterRoleBinding{}
	if err := cp.Get(t.Context(), client.ObjectKey{Name: components.UserOf(components.Scheduler)}, b); err != nil {
		t.Fatal(err)
	}
	return len(b.Subjects) == 2
}

// A Service that leads to the pods of the other layout does so until those of this one are ready.
func TestPartition(t *testing.T) {
	service := func(app string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "s"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": app}}}
	}
	for name, tc := range map[string]struct {
		have []corev1.Service
		last int
	}{"it is new": {nil, 0}, "it leads there": {[]corev1.Service{*service("x")}, 0}, "it leads elsewhere": {[]corev1.Service{*service("y")}, 1}} {
		s := &State{Facts: &hostcluster.Facts{Services: tc.have}}
		if first, last := s.partition([]client.Object{service("x"), &appsv1.Deployment{}}); len(last) != tc.last || len(first)+len(last) != 2 {
			t.Errorf("%s: %d first, %d last", name, len(first), len(last))
		}
	}
}
