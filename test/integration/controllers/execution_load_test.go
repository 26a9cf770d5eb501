//go:build integration

// Covers pkg/controlplane/controllers/execution.

package controllers_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/karmada-toolkit/karmada/internal/testenv"
)

// TestMemberSide_Writes counts the writes of many Deployments that become ready
// at the same time.
func TestMemberSide_Writes(t *testing.T) {
	t.Parallel()
	const n = 100
	f := newMemberFederation(t)
	f.join(t)
	before := f.writes(t)
	cpu := cpuTime()
	began := time.Now()
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := worker; i < n; i += 8 {
				f.propagate(t, strings.ReplaceAll(memberNginx, "nginx", fmt.Sprintf("app%03d", i)))
			}
		})
	}
	wg.Wait()
	created := time.Since(began)
	testenv.Eventually(t, 3*time.Minute, func(ctx context.Context) error {
		var list appsv1.DeploymentList
		if err := f.client.List(ctx, &list); err != nil {
			return err
		}
		ready := 0
		for i := range list.Items {
			if list.Items[i].Status.ReadyReplicas == 1 {
				ready++
			}
		}
		if ready < n {
			return fmt.Errorf("%d ready", ready)
		}
		return nil
	})
	t.Logf("created after %s, complete after %s, %s of CPU here, tests included", created, time.Since(began), cpuTime()-cpu)
	f.delivers(t, "afterwards")
	after := f.writes(t)
	for key, most := range map[string]int{
		// One each when the member is quick, and another one when it is not.
		"PATCH works/status":            2*n + n/5,
		"PATCH resourcebindings/status": 2*n + n/5,
		"PATCH deployments/status":      2*n + n/5,
	} {
		if got := after[key] - before[key]; got > most {
			t.Errorf("%s: %d, want at most %d", key, got, most)
		}
	}
	maps.DeleteFunc(after, func(key string, v int) bool { return v == before[key] })
	for key := range after {
		after[key] -= before[key]
	}
	t.Log(after)
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

var requestTotal = regexp.MustCompile(`(?m)^apiserver_request_total\{([^}]*)\} (\S+)$`)

// writes returns the number of write requests to the control plane so far.
func (f *memberFederation) writes(t *testing.T) map[string]int {
	t.Helper()
	data, err := kubernetes.NewForConfigOrDie(f.plane.Config).RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	must(t, err)
	out := map[string]int{}
	for _, m := range requestTotal.FindAllStringSubmatch(string(data), -1) {
		labels := map[string]string{}
		for kv := range strings.SplitSeq(m[1], ",") {
			k, v, _ := strings.Cut(kv, "=")
			labels[k], _ = strconv.Unquote(v)
		}
		switch labels["verb"] {
		case "POST", "PUT", "PATCH", "APPLY", "DELETE":
			v, _ := strconv.ParseFloat(m[2], 64)
			key := labels["verb"] + " " + labels["resource"]
			if labels["subresource"] != "" {
				key += "/" + labels["subresource"]
			}
			out[key] += int(v)
		}
	}
	return out
}
