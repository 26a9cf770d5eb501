package status

import (
	"bytes"
	"testing"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/insight/status"
)

func TestPrint(t *testing.T) {
	for name, report := range map[string]*status.Report{
		"healthy": {
			Answer:       "no problems: 2 of 2 clusters Ready, 14 bindings",
			ControlPlane: status.ControlPlane{Version: "v1.36.3", Ready: new(true), Etcd: "ok", Roles: []status.Role{{Name: "karmada-scheduler", Leader: "host-1", InTime: true}}},
			Clusters:     &status.Clusters{Total: 2, Ready: 2, Push: 2, Free: status.Free{CPU: "15.9", Memory: "256Gi", Pods: "994"}},
			Work:         status.Work{Bindings: 14},
		},
		"problems": {
			Answer: "12 problems; the worst: the API server is not ready: etcd, poststarthook/start-informers failed",
			ControlPlane: status.ControlPlane{Version: "v1.36.3", Ready: new(false), Etcd: "failed", FailedChecks: []string{"etcd", "poststarthook/start-informers"}, Roles: []status.Role{
				{Name: "karmada-controller-manager", Leader: "karmada-controller-manager-5d8f7c9b4d-x2x7k", InTime: true}, {Name: "karmada-scheduler"},
			}},
			Clusters: &status.Clusters{Total: 5, Ready: 3, Push: 4, Pull: 1, Cordoned: 1, Tainted: 2, Removed: 1, Free: status.Free{CPU: "3.2", Memory: "10Gi", Pods: "200"}},
			Work: status.Work{
				Bindings: 1000, NotScheduled: map[string]int{"NoClusterFit": 3, "Unschedulable": 12}, NotApplied: 2, Unhealthy: 7, Evictions: 4, EvictionsStopped: true,
				Quotas: 3, QuotasFull: 1, QuotasExceeded: 1, Registries: 2, RegistriesNotReady: 1,
			},
			Problems: []status.Problem{
				{Text: "cluster m2 is not Ready (12 workloads): ClusterNotReachable: cluster is not reachable", Next: "karmadactl describe cluster m2"},
				{Text: "Deployment shop/web: Unhealthy in 1 of 2 clusters: m1", Next: "karmadactl why deployment web -n shop"},
			},
			ProblemCount: 12,
		},
		"gaps": {
			Answer: "nothing is wrong in what could be read; not all could be", ControlPlane: status.ControlPlane{RolesUnknown: true},
			Gaps: []string{
				`Clusters: clusters.cluster.karmada.io is forbidden: User "ann" cannot list resource "clusters" in API group "cluster.karmada.io" at the cluster scope`,
				"the version of the API server: no answer in time",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := print(&out, report, env.Columns); err != nil {
				t.Fatal(err)
			}
			build.AssertGolden(t, name, out.String())
			for line := range bytes.Lines(out.Bytes()) {
				if len(line) > env.Columns+1 {
					t.Errorf("a line of %d columns: %s", len(line)-1, line)
				}
			}
		})
	}
}
