package services_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

func exportedFrom(name string, second int, change ...func(*corev1.ServiceSpec)) services.ExportingCluster {
	s := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}}
	for _, c := range change {
		c(&s.Spec)
	}
	return services.ExportingCluster{Name: name, Since: metav1.Time{Time: time.Unix(int64(second), 0)}, Applied: true, Service: s, Slices: 1}
}

func TestExportConditions(t *testing.T) {
	port := func(name string, number int32) func(*corev1.ServiceSpec) {
		return func(s *corev1.ServiceSpec) { s.Ports = []corev1.ServicePort{{Name: name, Port: number}} }
	}
	headless := func(s *corev1.ServiceSpec) { s.ClusterIP = corev1.ClusterIPNone }
	external := func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeExternalName }
	affinity := func(seconds int32) func(*corev1.ServiceSpec) {
		return func(s *corev1.ServiceSpec) {
			s.SessionAffinity = corev1.ServiceAffinityClientIP
			s.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &seconds}}
		}
	}
	pending := exportedFrom("m1", 1)
	pending.Slices = 0
	for name, tc := range map[string]struct {
		service string
		from    []services.ExportingCluster
		want    map[string]string // condition: reason and part of the message
	}{
		"two equal Services":                 {"web", []services.ExportingCluster{exportedFrom("m1", 1), exportedFrom("m2", 2)}, map[string]string{"Valid": "Valid", "Ready": "Exported 2 of 2 clusters: m1, m2", "Conflict": "NoConflicts"}},
		"no Service":                         {"web", nil, map[string]string{"Valid": "NoService create it", "Ready": "Failed", "Conflict": "NoConflicts"}},
		"no slice yet":                       {"web", []services.ExportingCluster{pending}, map[string]string{"Valid": "Valid", "Ready": "Pending"}},
		"ExternalName":                       {"web", []services.ExportingCluster{exportedFrom("m1", 1, external)}, map[string]string{"Valid": "InvalidServiceType"}},
		"a name that is too long":            {strings.Repeat("w", 60), []services.ExportingCluster{exportedFrom("m1", 1)}, map[string]string{"Valid": "Failed longer than 63"}},
		"the same port name, another number": {"web", []services.ExportingCluster{exportedFrom("m2", 2, port("http", 81)), exportedFrom("m1", 1)}, map[string]string{"Conflict": "PortConflict cluster m2 has another port"}},
		"the same number, another name":      {"web", []services.ExportingCluster{exportedFrom("m1", 1), exportedFrom("m2", 2, port("web", 80))}, map[string]string{"Conflict": "PortConflict"}},
		"other ports are added":              {"web", []services.ExportingCluster{exportedFrom("m1", 1), exportedFrom("m2", 2, port("grpc", 90))}, map[string]string{"Conflict": "NoConflicts"}},
		"the older one applies":              {"web", []services.ExportingCluster{exportedFrom("m1", 3), exportedFrom("m2", 2, headless)}, map[string]string{"Conflict": "TypeConflict cluster m1 has another type"}},
		"session affinity":                   {"web", []services.ExportingCluster{exportedFrom("m1", 1), exportedFrom("m2", 2, affinity(5))}, map[string]string{"Conflict": "SessionAffinityConflict"}},
		"its configuration":                  {"web", []services.ExportingCluster{exportedFrom("m1", 1, affinity(6)), exportedFrom("m2", 2, affinity(5))}, map[string]string{"Conflict": "SessionAffinityConfigConflict"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := services.ExportConditions(tc.service, nil, tc.from)
			for kind, want := range tc.want {
				reason, part, _ := strings.Cut(want, " ")
				c := meta.FindStatusCondition(got, kind)
				if c == nil || c.Reason != reason || !strings.Contains(c.Message, part) {
					t.Errorf("%s is %v, want %s", kind, c, want)
				}
			}
		})
	}
}
