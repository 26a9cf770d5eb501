package metricsadapter

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"
)

// Members that answer late keep the first request waiting for firstListTimeout and later ones for listTimeout, which then get
// the last list while one other list is made.
func TestListing_IsServedWhileMembersAnswerLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, lists := &listing{}, 0
		const late = time.Minute
		get := func(wantMetrics, wantLists int, longest time.Duration) {
			t.Helper()
			begin := time.Now()
			got := l.get(t.Context(), clock.RealClock{}, func() []provider.CustomMetricInfo {
				lists++
				n := lists
				time.Sleep(late)
				return make([]provider.CustomMetricInfo, n)
			})
			synctest.Wait()
			if len(got) != wantMetrics || lists != wantLists || time.Since(begin) != longest {
				t.Errorf("%d metrics of %d lists after %s; want %d of %d after %s", len(got), lists, time.Since(begin), wantMetrics, wantLists, longest)
			}
		}
		get(0, 1, firstListTimeout)
		time.Sleep(late)
		get(1, 1, 0)
		time.Sleep(listTTL)
		get(1, 2, listTimeout)
		get(1, 2, listTimeout)
		time.Sleep(late + time.Second)
		get(2, 2, 0)
	})
}
