package controllers

import (
	"cmp"
	"container/heap"
	"strings"
)

const (
	// reservedShare is the share of the workers of a queue, as a divisor, that a single tenant leaves to others.
	reservedShare = 5
	// fairTurn is the number of turns of which one goes to the tenant that waits longest, whatever the priorities are.
	fairTurn = 4
	// bulkPrefix begins the names of the tenants of Bulk. No namespace has a colon.
	bulkPrefix = "bulk:"
)

// Bulk returns the tenant of those requests of a tenant that take long. All such tenants together hold at most as many
// workers as one tenant may, so that short requests never wait for all long ones.
func Bulk(tenant string) string { return bulkPrefix + tenant }

// Turns holds keys that are ready and decides which is next. The tenants take turns: of those with the highest priority, the
// one whose last turn is longest ago, and every fourth turn the one whose last turn is longest ago at all. Within a tenant
// the highest priority is first, then the oldest key. A tenant holds at most four fifths of the workers, rounded so that one
// is left to others if there are several; the tenant "" holds any number. With guests, a tenant, "" as well, holds as many as
// there are without them. Tenants of Bulk share the number of one. It is not safe for concurrent use.
type Turns[K comparable] struct {
	// limit is the number of workers that a tenant may hold, limitNone that of "".
	limit, limitNone int
	// bulk is the number of workers that tenants of Bulk hold.
	bulk     int
	keys     map[K]*turnKey[K]
	tenants  map[string]*turnTenant[K]
	eligible ordered[*turnTenant[K]]
	sequence uint64
	turn     uint64
	pops     uint64
}

type turnKey[K comparable] struct {
	key      K
	tenant   *turnTenant[K]
	priority int
	order    uint64
	index    int
}

type turnTenant[K comparable] struct {
	name  string
	keys  ordered[*turnKey[K]]
	held  int
	turn  uint64
	index int // -1 while the tenant has no key or holds as many workers as it may
}

// NewTurns returns an empty Turns for a number of workers, and guests, which are workers that a tenant has only in place of
// the others.
func NewTurns[K comparable](workers, guests int) *Turns[K] {
	limit, limitNone := max(1, workers-max(1, workers/reservedShare)), workers
	if guests > 0 {
		limit = workers
	}
	return &Turns[K]{
		limit: limit, limitNone: max(1, limitNone),
		keys: map[K]*turnKey[K]{}, tenants: map[string]*turnTenant[K]{},
		eligible: ordered[*turnTenant[K]]{
			less: func(a, b *turnTenant[K]) bool {
				return cmp.Or(cmp.Compare(b.keys.items[0].priority, a.keys.items[0].priority), cmp.Compare(a.turn, b.turn)) < 0
			},
			moved: func(t *turnTenant[K], index int) { t.index = index },
		},
	}
}

// Push adds a key, behind those of its tenant that have the same priority.
func (t *Turns[K]) Push(key K, tenant string, priority int) {
	owner := t.tenants[tenant]
	if owner == nil {
		owner = &turnTenant[K]{name: tenant, index: -1, keys: ordered[*turnKey[K]]{
			less: func(a, b *turnKey[K]) bool {
				return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.order, b.order)) < 0
			},
			moved: func(k *turnKey[K], index int) { k.index = index },
		}}
		t.tenants[tenant] = owner
	}
	if owner.keys.Len() == 0 { // behind the tenants that wait already
		t.turn++
		owner.turn = t.turn
	}
	t.sequence++
	added := &turnKey[K]{key: key, tenant: owner, priority: priority, order: t.sequence}
	t.keys[key] = added
	heap.Push(&owner.keys, added)
	t.place(owner)
}

// Priority returns the priority of a key, and reports whether the key is there.
func (t *Turns[K]) Priority(key K) (int, bool) {
	if k := t.keys[key]; k != nil {
		return k.priority, true
	}
	return 0, false
}

// SetPriority changes the priority of a key that is there. With renew the key comes behind those that have the priority.
func (t *Turns[K]) SetPriority(key K, priority int, renew bool) {
	k := t.keys[key]
	if k == nil || k.priority == priority {
		return
	}
	k.priority = priority
	if renew {
		t.sequence++
		k.order = t.sequence
	}
	heap.Fix(&k.tenant.keys, k.index)
	t.place(k.tenant)
}

// Pop removes the next key and gives its tenant a worker until Release. It reports false if there is no key whose tenant may
// have one.
func (t *Turns[K]) Pop() (key K, tenant string, priority int, ok bool) {
	if t.eligible.Len() == 0 {
		return key, "", 0, false
	}
	t.pops++
	owner := t.eligible.items[0]
	if t.pops%fairTurn == 0 {
		for _, other := range t.eligible.items {
			if other.turn < owner.turn {
				owner = other
			}
		}
	}
	next := heap.Pop(&owner.keys).(*turnKey[K])
	delete(t.keys, next.key)
	t.turn++
	owner.turn = t.turn
	t.hold(owner, 1)
	return next.key, owner.name, next.priority, true
}

// Release ends the use of a worker by a tenant.
func (t *Turns[K]) Release(tenant string) {
	if owner := t.tenants[tenant]; owner != nil {
		t.hold(owner, -1)
	}
}

// hold changes the number of workers that a tenant holds.
func (t *Turns[K]) hold(owner *turnTenant[K], by int) {
	by = max(by, -owner.held)
	owner.held += by
	full := t.bulk >= t.limit
	if owner.isBulk() {
		t.bulk += by
	}
	t.place(owner)
	if full == (t.bulk >= t.limit) {
		return
	}
	for _, other := range t.tenants {
		if other.isBulk() {
			t.place(other)
		}
	}
}

func (o *turnTenant[K]) isBulk() bool { return strings.HasPrefix(o.name, bulkPrefix) }

// may reports whether a tenant may hold one more worker.
func (t *Turns[K]) may(owner *turnTenant[K]) bool {
	switch {
	case owner.name == "":
		return owner.held < t.limitNone
	case owner.isBulk():
		return t.bulk < t.limit
	}
	return owner.held < t.limit
}

// Eligible reports whether Pop has a key.
func (t *Turns[K]) Eligible() bool { return t.eligible.Len() > 0 }

// Len returns the number of keys.
func (t *Turns[K]) Len() int { return len(t.keys) }

// place makes a tenant eligible, or not, and puts it at its place.
func (t *Turns[K]) place(owner *turnTenant[K]) {
	eligible := owner.keys.Len() > 0 && t.may(owner)
	switch {
	case eligible && owner.index < 0:
		heap.Push(&t.eligible, owner)
	case eligible:
		heap.Fix(&t.eligible, owner.index)
	case owner.index >= 0:
		t.remove(owner)
	}
	if owner.keys.Len() == 0 && owner.held == 0 {
		delete(t.tenants, owner.name)
	}
}

// remove takes a tenant that may have no keys out of the order of those that are eligible.
func (t *Turns[K]) remove(owner *turnTenant[K]) {
	e := &t.eligible
	last := e.Len() - 1
	index := owner.index
	if index != last {
		e.Swap(index, last)
	}
	e.Pop()
	if index != last {
		heap.Fix(e, index)
	}
	owner.index = -1
}

// ordered is a heap whose elements know their places.
type ordered[E any] struct {
	items []E
	less  func(a, b E) bool
	moved func(e E, index int)
}

// Len implements heap.Interface.
func (o *ordered[E]) Len() int { return len(o.items) }

// Less implements heap.Interface.
func (o *ordered[E]) Less(i, j int) bool { return o.less(o.items[i], o.items[j]) }

// Swap implements heap.Interface.
func (o *ordered[E]) Swap(i, j int) {
	o.items[i], o.items[j] = o.items[j], o.items[i]
	o.moved(o.items[i], i)
	o.moved(o.items[j], j)
}

// Push implements heap.Interface.
func (o *ordered[E]) Push(x any) {
	e := x.(E)
	o.items = append(o.items, e)
	o.moved(e, len(o.items)-1)
}

// Pop implements heap.Interface.
func (o *ordered[E]) Pop() any {
	last := len(o.items) - 1
	e := o.items[last]
	var none E
	o.items[last] = none
	o.items = o.items[:last]
	return e
}
