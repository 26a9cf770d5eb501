package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestWorkQueue(t *testing.T) {
	r, c := prometheus.NewRegistry(), clocktesting.NewFakeClock(time.Unix(0, 0))
	q := NewWorkQueue(r, "scheduler", c)
	q.Added("a")
	q.Added("b")
	c.Step(2 * time.Second)
	q.Started("a")
	c.Step(3 * time.Second)
	q.Refresh()
	q.Done("a")
	q.Retried()
	want := `
# HELP workqueue_adds_total Total number of adds handled by workqueue
# TYPE workqueue_adds_total counter
workqueue_adds_total{controller="scheduler",name="scheduler"} 2
# HELP workqueue_depth Current depth of workqueue by workqueue and priority
# TYPE workqueue_depth gauge
workqueue_depth{controller="scheduler",name="scheduler",priority=""} 1
# HELP workqueue_longest_running_processor_seconds How many seconds has the longest running processor for workqueue been running.
# TYPE workqueue_longest_running_processor_seconds gauge
workqueue_longest_running_processor_seconds{controller="scheduler",name="scheduler"} 3
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "workqueue_adds_total", "workqueue_depth", "workqueue_longest_running_processor_seconds"); err != nil {
		t.Error(err)
	}
	var none *WorkQueue
	none.Added("a")
	none.Started("a")
	none.Done("a")
	none.Retried()
	none.Refresh()
}
