package lua

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// strikesAllowed is how often in a row a script may exceed its limits before it
	// is not run for a while.
	strikesAllowed = 3
	// firstPause and longestPause bound that while; it doubles each time.
	firstPause   = time.Second
	longestPause = time.Minute
)

// penalty keeps a script that exceeds its limits from taking the processor: its
// kind may have many objects, and each is tried again and again.
type penalty struct {
	// guilty is set while there is a strike; the other fields are read only then.
	guilty atomic.Bool

	mu      sync.Mutex
	strikes int
	until   time.Time
	last    error
}

// maxPenalties bounds the number of keys; those beyond it share a penalty.
const maxPenalties = 10_000

// penalties are those of one script, by key.
type penalties struct {
	mu    sync.Mutex
	byKey map[string]*penalty
}

func newPenalties() *penalties { return &penalties{byKey: map[string]*penalty{}} }

func (p *penalties) of(key string) *penalty {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one, ok := p.byKey[key]; ok {
		return one
	}
	if len(p.byKey) >= maxPenalties {
		if one, ok := p.byKey[""]; ok {
			return one
		}
		key = ""
	}
	one := &penalty{}
	p.byKey[key] = one
	return one
}

// barred returns why the script may not run now, or nil.
func (p *penalty) barred(now func() time.Time) error {
	if !p.guilty.Load() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now().Before(p.until) {
		return p.last
	}
	return nil
}

// stopped notes that the script was stopped.
func (p *penalty) stopped(err error, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.strikes++
	p.last = err
	p.guilty.Store(true)
	if p.strikes >= strikesAllowed {
		p.until = now.Add(min(firstPause<<min(p.strikes-strikesAllowed, 10), longestPause))
	}
}

// ran notes that the script kept its limits.
func (p *penalty) ran() {
	if !p.guilty.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.strikes, p.until, p.last = 0, time.Time{}, nil
	p.guilty.Store(false)
}
