package build

import (
	"runtime"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// Bounded fails a test if fn allocates more than so many bytes or takes longer than the limit. Both are generous: they
// distinguish work in proportion to its input from work that multiplies. Parallel tests in the process count as well, and the
// race detector drops pooled buffers and takes its time, so that both count four times.
func Bounded(t testing.TB, limit time.Duration, bytes uint64, fn func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := clock.RealClock{}.Now()
	fn()
	took := clock.RealClock{}.Since(start)
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 4*bytes {
		t.Errorf("it allocated %d bytes, more than %d", allocated, 4*bytes)
	}
	if took > 4*limit {
		t.Errorf("it took %s, more than %s", took, 4*limit)
	}
}
