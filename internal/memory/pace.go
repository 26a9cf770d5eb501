package memory

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// leastPercent is the least that the heap grows, in percent, before it is collected: less takes more CPU than memory
	// is worth.
	leastPercent = 50
	// leastChange is the smallest change of the percentage that is set, in percent of it: each one stops the process for
	// an instant.
	leastChange = 10

	metricLive = "/gc/heap/live:bytes"
)

// Pace lets the heap grow by a percentage of what is in use before it is collected, like debug.SetGCPercent, but by less
// as soon as it would exceed target bytes: a large percentage spares a small heap many collections and costs a large one
// gigabytes. Above the target it still grows by 50 %, or by the percentage if that is less. A target of 0 is none. It works
// until the process ends and is called once.
func Pace(percent int, target int64) {
	debug.SetGCPercent(percent)
	if target > 0 && percent > leastPercent {
		(&pace{percent: percent, target: uint64(target), current: percent}).await()
	}
}

// pace is the percentage of a process.
type pace struct {
	percent, current int
	target           uint64
}

// cycle is collected in the next cycle. The pointer keeps it from sharing its memory with others.
type cycle struct{ _ *cycle }

// await adjusts the percentage after the next collection, and then after each other.
func (p *pace) await() { runtime.AddCleanup(&cycle{}, (*pace).adjust, p) }

func (p *pace) adjust() {
	sample := []metrics.Sample{{Name: metricLive}}
	metrics.Read(sample)
	if next := p.next(sample[0].Value.Uint64()); next != p.current {
		p.current = next
		debug.SetGCPercent(next)
	}
	p.await()
}

// next returns the percentage for a heap of which some bytes are in use.
func (p *pace) next(live uint64) int {
	next := p.percent
	if room := p.target - min(live, p.target); live > 0 && room < live*uint64(p.percent)/100 {
		next = max(leastPercent, int(room*100/live))
	}
	if next != p.percent && next != leastPercent && abs(next-p.current)*100 < leastChange*p.current {
		return p.current
	}
	return next
}

func abs(n int) int { return max(n, -n) }
