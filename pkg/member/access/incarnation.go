package access

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// Incarnation identifies the store of a member, as far as is known: it is another one after the member was restored from an older copy of its
// store. What was observed of the member before does not hold any more.
type Incarnation struct {
	// Number is 1 for the first, and grows.
	Number uint64
	// From and To are the resource versions by which it was noticed; empty for the first.
	From, To string
}

// incarnationInterval is the shortest time between two incarnations: a member that reports ever older versions is opened, listed and compared
// at most as often.
const incarnationInterval = 10 * time.Second

// incarnations are those of one cluster.
type incarnations struct {
	mu      sync.Mutex
	current Incarnation
	// recent reports that the current one began less than incarnationInterval ago, and next is what begins the one after it; nil for none.
	recent bool
	next   func()
}

func (i *incarnations) get() Incarnation {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.current.Number = max(1, i.current.Number)
	return i.current
}

// WentBack reports that the member has an older resource version than before. The member is closed, so that all who use it open another one. It
// does not block.
func (m *Member) WentBack(from, to string) {
	i := m.incarnations
	if i == nil {
		return // nobody opens another one: the lists that its users make anew have to be enough
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	begin := func() {
		i.current, i.recent, i.next = Incarnation{m.incarnation.Number + 1, from, to}, true, nil
		time.AfterFunc(incarnationInterval, i.endInterval)
		go m.close()
	}
	switch {
	case m.incarnation.Number != i.current.Number || m.ctx.Err() != nil: // it is known
	case !i.recent:
		begin()
	case i.next == nil:
		i.next = begin
	}
}

// endInterval ends the interval in which no other incarnation begins.
func (i *incarnations) endInterval() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.recent = false; i.next != nil {
		i.next()
	}
}

// Incarnation returns that of the store of the member when it was opened.
func (m *Member) Incarnation() Incarnation { return m.incarnation }

// Single is a cluster that is opened with settings that do not change, as by its agent. It implements Members.
type Single struct {
	name   string
	cfg    *rest.Config
	mapper meta.RESTMapper

	mu           sync.Mutex
	member       *Member
	incarnations incarnations
}

// NewSingle opens a cluster. planeMapper may be nil.
func NewSingle(name string, cfg *rest.Config, planeMapper meta.RESTMapper) (*Single, error) {
	s := &Single{name: name, cfg: cfg, mapper: planeMapper}
	_, err := s.open()
	return s, err
}

// Member implements Members.
func (s *Single) Member(context.Context, *clusterv1alpha1.Cluster) (*Member, error) { return s.open() }

func (s *Single) open() (*Member, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	incarnation := s.incarnations.get()
	if s.member != nil && s.member.incarnation == incarnation {
		return s.member, nil
	}
	m, err := NewMember(s.name, s.cfg, s.mapper)
	if err != nil {
		return nil, err
	}
	m.incarnation, m.incarnations = incarnation, &s.incarnations
	s.member = m
	return m, nil
}
