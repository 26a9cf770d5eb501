package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// federatedQuota allows five replicas of a Deployment in all clusters.
func federatedQuota(more string) string {
	return `
apiVersion: policy.karmada.io/v1alpha1
kind: FederatedResourceQuota
metadata: {name: budget}
spec:
  overall: {cpu: 50m}` + more
}

// used returns a check of what is used of a quota.
func used(ns, want string) func() error {
	return is("", ns, "federatedresourcequota/budget", "{.status.overallUsed.cpu}", want)
}

// replicas returns a check of the sum of replicas in all clusters.
func replicas(ns, binding string, want int) func() error {
	return func() error {
		out, err := value("", ns, "rb/"+binding, "{.spec.clusters[*].replicas}")
		if err != nil {
			return err
		}
		sum := 0
		for field := range strings.FieldsSeq(out) {
			n := 0
			if _, err := fmt.Sscan(field, &n); err != nil {
				return err
			}
			sum += n
		}
		if sum != want {
			return fmt.Errorf("%s/%s has %d replicas, not %d", ns, binding, sum, want)
		}
		return nil
	}
}

// Two namespaces have a budget each. What exceeds one is refused with numbers, less is always possible, and what is freed
// can be used at once.
func TestQuota_LimitsANamespaceOverAllClusters(t *testing.T) {
	a := namespace(t)
	t.Run("other", func(t *testing.T) {
		b := namespace(t)
		placement := aggregated("member1", "member2")
		for _, ns := range []string{a, b} {
			apply(t, ns, federatedQuota(""), deployment("web", 2), policy("web", placement))
			eventually(t, all(used(ns, "20m"), replicas(ns, "web-deployment", 2)))
		}
		must(t, "scale", "deploy/web", "-n", a, "--replicas=8")
		eventually(t, is("", a, "rb/web-deployment", `{.status.conditions[?(@.type=="Scheduled")].reason}`, "QuotaExceeded"))
		message, err := value("", a, "rb/web-deployment", `{.status.conditions[?(@.type=="Scheduled")].message}`)
		want := "FederatedResourceQuota(" + a + "/budget) exceeded for resource cpu: requested sum 80m, limit 50m."
		if err != nil || !strings.Contains(message, want) {
			t.Errorf("the condition has %q, %v", message, err)
		}
		must(t, "scale", "deploy/web", "-n", b, "--replicas=5")
		eventually(t, all(used(b, "50m"), replicas(b, "web-deployment", 5), used(a, "20m"), replicas(a, "web-deployment", 2)))
		must(t, "scale", "deploy/web", "-n", b, "--replicas=1")
		eventually(t, all(used(b, "10m"), replicas(b, "web-deployment", 1)))
		mustWith(t, `{"spec":{"overall":{"cpu":"100m"}}}`, "patch", "federatedresourcequota", "budget", "-n", a, "--type=merge", "--patch-file=/dev/stdin")
		eventually(t, all(used(a, "80m"), replicas(a, "web-deployment", 8)))
		must(t, "delete", "deploy/web", "-n", a)
		eventually(t, used(a, ""))
	})
}

// A cluster gets its share of a quota as a ResourceQuota, and what it uses is in the status.
func TestQuota_SharesOfClusters(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, federatedQuota(`
  staticAssignments: [{clusterName: member1, hard: {cpu: 30m}}]`), deployment("web", 2), policy("web", to("member1")))
	eventually(t, all(
		is("member1", ns, "resourcequota/budget", "{.spec.hard.cpu}", "30m"),
		is("", ns, "federatedresourcequota/budget", "{.status.aggregatedStatus[0].clusterName} {.status.aggregatedStatus[0].used.cpu}", "member1 20m")))
	must(t, "delete", "resourcequota/budget", "-n", ns, "--karmada-context", "member1")
	eventually(t, is("member1", ns, "resourcequota/budget", "{.spec.hard.cpu}", "30m"))
	must(t, "delete", "federatedresourcequota/budget", "-n", ns)
	eventually(t, absent("member1", ns, "resourcequota/budget"))
}
