package clusterstatus

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// servingGrace is how long a cluster may take to serve a type after its definition
// changed.
const servingGrace = 3 * time.Second

// sources are the caches and watches that the status of one cluster is computed from.
type sources struct {
	enabled   enablements
	types     *definitions
	resources *resources
	// typesChanged is when a definition of a type changed last, in nanoseconds since
	// the epoch. The watch writes it.
	typesChanged atomic.Int64
}

// watchOptions are the options of the watches.
type watchOptions struct {
	// resources selects that nodes and pods are watched too.
	resources bool
	// retry starts a watch that failed again without delay.
	retry bool
	clock clock.PassiveClock
	// changed is called when there is more to collect.
	changed func()
}

// watch starts the watches of a member, and stops those of the one before.
func (s *sources) watch(ctx context.Context, member *access.Member, o watchOptions) {
	if s.types == nil || s.types.member != member {
		s.types.stop()
		s.types = newDefinitions(ctx, member, func() {
			s.typesChanged.Store(o.clock.Now().UnixNano())
			o.changed()
		})
	} else if o.retry {
		s.types.projection.Retry()
	}
	if !o.resources {
		return
	}
	if s.resources.of(member) {
		if o.retry {
			s.resources.retry()
		}
		return
	}
	s.resources.stop()
	s.resources = newResources(ctx, member, o.changed)
}

// typesChangedSince reports whether a definition of a type changed after a time.
func (s *sources) typesChangedSince(t time.Time) bool {
	return time.Unix(0, s.typesChanged.Load()).After(t)
}

func (s *sources) stop() {
	s.resources.stop()
	s.types.stop()
}
