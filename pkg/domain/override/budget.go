package override

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"
)

// ErrBudget is the cause of an Error for overriders that would make too large an object or take too much work. It stays
// until the policy, the object or the cluster changes.
var ErrBudget = errors.New("the overriders exceed what overrides of an object may take")

const (
	// MaxResultBytes is the size of an object with overrides, as JSON: what the API server accepts in a request.
	MaxResultBytes = 3 << 20
	// MaxTime is how long the overrides of an object may take. The steps end before, but on a machine that stands still.
	MaxTime = 10 * time.Second
	// maxSteps is the work of all overrides of an object. A step takes about a microsecond.
	maxSteps = 1_000_000
	// maxAppliedBytes is the size of the annotations of a Work that record overriders, which is that of all its annotations.
	maxAppliedBytes = 256 << 10
	// maxPathBytes is the length of a path, in bytes.
	maxPathBytes = 4 << 10
	// expiryInterval is the number of steps between looks at the clock.
	expiryInterval = 10_000
)

// budget is what is left for the overrides of one object.
type budget struct {
	steps, size int
	unchecked   int
	expired     func() bool
}

// newBudget returns the budget for an object. Without a clock the time has no limit.
func newBudget(tree map[string]any, c clock.PassiveClock) *budget {
	b := &budget{steps: maxSteps, size: treeSize(tree), expired: func() bool { return false }}
	if c != nil {
		start := c.Now()
		b.expired = func() bool { return c.Since(start) > MaxTime }
	}
	return b
}

// step takes steps from the budget, in advance.
func (b *budget) step(n int) error {
	b.steps -= n
	if b.steps < 0 {
		return fmt.Errorf("%w: there are too many or too large ones for an object of this size", ErrBudget)
	}
	if b.unchecked += n; b.unchecked >= expiryInterval {
		if b.unchecked = 0; b.expired() {
			return fmt.Errorf("%w: they took longer than %s", ErrBudget, MaxTime)
		}
	}
	return nil
}

// grow adds to the size of the object; it may be negative.
func (b *budget) grow(bytes int) error {
	b.size += bytes
	if bytes > 0 && b.size > MaxResultBytes {
		return fmt.Errorf("%w: the object would have more than %d bytes", ErrBudget, MaxResultBytes)
	}
	return nil
}

// path checks the length of a path before it is split.
func (b *budget) path(path string) error {
	if len(path) > maxPathBytes {
		return fmt.Errorf("%w: a path has %d bytes, more than %d", ErrBudget, len(path), maxPathBytes)
	}
	return b.step(1 + len(path)/16)
}

// replaceText accounts for a text that replaces another one.
func (b *budget) replaceText(old, text string) error {
	if err := b.step(1 + (len(old)+len(text))/64); err != nil {
		return err
	}
	return b.grow(textSize(text) - textSize(old))
}

// textSize returns the size of a text in JSON.
func textSize(s string) int {
	size := len(s) + 2
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c == '<', c == '>', c == '&':
			size += 5
		case c == '"', c == '\\':
			size++
		}
	}
	return size
}

// treeSize returns about the size of a tree in JSON.
func treeSize(node any) int {
	const scalar = 8
	switch n := node.(type) {
	case string:
		return textSize(n) + 1
	case map[string]any:
		size := 2
		for key, value := range n {
			size += textSize(key) + 1 + treeSize(value)
		}
		return size
	case []any:
		size := 2
		for _, value := range n {
			size += 1 + treeSize(value)
		}
		return size
	}
	return scalar
}

// treeDepth returns how many maps and lists are in each other.
func treeDepth(node any) int {
	deepest := 0
	switch n := node.(type) {
	case map[string]any:
		for _, value := range n {
			deepest = max(deepest, treeDepth(value))
		}
	case []any:
		for _, value := range n {
			deepest = max(deepest, treeDepth(value))
		}
	default:
		return 0
	}
	return deepest + 1
}
