package quota

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// ReservationTTL is how long a reservation stays whose write was never observed. It is longer than the API server takes
// for a request, which is up to a minute.
const ReservationTTL = 2 * time.Minute

// Ledger is what the bindings of a namespace use, for all of its quotas together. Admission reserves what a write adds
// before the write is stored; the controller counts what is stored, and removes the reservations of what it has
// observed. So every write is charged once, whether it is tried again, fails, or is stored.
type Ledger struct {
	// Used is the usage of the bindings as they were counted last, of all resources.
	Used corev1.ResourceList `json:"used,omitempty"`
	// Observed is the newest resource version of the bindings that were counted.
	Observed string `json:"observed,omitempty"`
	// Reservations are for writes that may not be in Used, at most one for each binding.
	Reservations []Reservation `json:"reservations,omitempty"`
}

// Reservation is for the writes of one binding that admission has passed.
type Reservation struct {
	// Binding is the name of the binding.
	Binding string `json:"binding"`
	// Version is the resource version that the last such write replaces, empty for one that creates the binding. The
	// write is stored or has failed for good once the binding has another one.
	Version string `json:"version,omitempty"`
	// UID is that of a binding that a write creates. The write may be stored as long as no binding with the UID is.
	UID types.UID `json:"uid,omitempty"`
	// Held is set if several writes create the binding: one may be stored after the binding of another is deleted, so the
	// reservation stays for ReservationTTL.
	Held bool `json:"held,omitempty"`
	// Counted is the usage of the binding that Used has, or less.
	Counted corev1.ResourceList `json:"counted,omitempty"`
	// Target is the most that the binding uses after any of the writes.
	Target corev1.ResourceList `json:"target"`
	// Since is the time of the last write.
	Since metav1.Time `json:"since"`
}

// Write is a write of a binding at admission.
type Write struct {
	Binding string
	// Version is the resource version that is replaced, empty for a new binding.
	Version string
	// UID is that of the binding.
	UID types.UID
	// Before and After are the usage of the binding.
	Before, After corev1.ResourceList
}

// Adds reports whether the write makes the binding use more of what a quota limits.
func (w *Write) Adds(q *policyv1alpha1.FederatedResourceQuota) bool {
	for name := range q.Spec.Overall {
		if w.adds(name) {
			return true
		}
	}
	return false
}

func (w *Write) adds(name corev1.ResourceName) bool {
	after := w.After[name]
	return after.Cmp(w.Before[name]) > 0
}

// Total returns what is used and reserved. It has no zeros.
func (l *Ledger) Total() corev1.ResourceList {
	out := l.without("")
	maps.DeleteFunc(out, func(_ corev1.ResourceName, q resource.Quantity) bool { return q.Sign() <= 0 })
	return out
}

// without returns the total without the reservation of a binding.
func (l *Ledger) without(binding string) corev1.ResourceList {
	out := corev1.ResourceList{}
	add(out, l.Used, 1)
	for i := range l.Reservations {
		if r := &l.Reservations[i]; r.Binding != binding {
			add(out, r.Target, 1)
			add(out, r.Counted, -1)
		}
	}
	return out
}

func (l *Ledger) find(binding string) int {
	return slices.IndexFunc(l.Reservations, func(r Reservation) bool { return r.Binding == binding })
}

// Exceeds returns the first resource that a write makes exceed a quota, by the names of quotas and resources, or nil.
// Only what the write adds can exceed a quota: to use less is always possible.
func (l *Ledger) Exceeds(w *Write, quotas []policyv1alpha1.FederatedResourceQuota) *Exceeded {
	sum := l.without(w.Binding)
	add(sum, w.After, 1)
	counted := w.Before
	if i := l.find(w.Binding); i >= 0 {
		counted = least(l.Reservations[i].Counted, w.Before)
	}
	add(sum, counted, -1)
	sorted := slices.SortedFunc(slices.Values(quotas), func(a, b policyv1alpha1.FederatedResourceQuota) int { return cmp.Compare(a.Name, b.Name) })
	for i := range sorted {
		q := &sorted[i]
		for _, name := range slices.Sorted(maps.Keys(q.Spec.Overall)) {
			limit, requested := q.Spec.Overall[name], sum[name]
			if w.adds(name) && requested.Cmp(limit) > 0 {
				return &Exceeded{Namespace: q.Namespace, Name: q.Name, Resource: name, Requested: requested, Limit: limit}
			}
		}
	}
	return nil
}

// Reserve reserves what a write adds.
func (l *Ledger) Reserve(w *Write, now time.Time) {
	next := Reservation{Binding: w.Binding, Version: w.Version, Counted: w.Before, Target: most(w.Before, w.After), Since: metav1.NewTime(now)}
	if w.Version == "" {
		next.UID = w.UID
	}
	i := l.find(w.Binding)
	if i < 0 {
		l.Reservations = append(l.Reservations, next)
		return
	}
	r := &l.Reservations[i]
	next.Counted = least(r.Counted, w.Before)
	order := compare(w.Version, r.Version)
	if order < 0 { // the write creates the binding again, or can only fail
		next.Version = r.Version
	}
	// A write that creates the binding is done if the one that it created is replaced now.
	pending := r.UID != "" && r.UID != w.UID
	if next.Held = r.Held || pending; pending && next.UID == "" {
		next.UID = r.UID
	}
	if order <= 0 || next.Held {
		next.Target = most(r.Target, next.Target)
	}
	*r = next
}

// Stored is a binding as it is stored.
type Stored struct {
	UID     types.UID
	Version string
	Usage   corev1.ResourceList
}

// Behind reports whether bindings from a cache are older than those that were counted, or too old to decide that a write
// was never stored: to count them would lose writes whose reservations are removed. The cache may also just lack the
// newest binding because it is deleted.
func (l *Ledger) Behind(stored map[string]Stored, now time.Time) bool {
	return compare(newest(stored), l.Observed) < 0 ||
		slices.ContainsFunc(l.Reservations, func(r Reservation) bool { return now.Sub(r.Since.Time) > ReservationTTL })
}

func newest(stored map[string]Stored) string {
	out := ""
	for _, s := range stored {
		if compare(s.Version, out) > 0 {
			out = s.Version
		}
	}
	return out
}

// Recount counts the bindings that are stored, and removes the reservations whose writes are stored or have failed for
// good. missing reports whether a binding that is not among the stored ones does not exist.
func (l *Ledger) Recount(stored map[string]Stored, missing func(binding string) bool, now time.Time) {
	l.Used = corev1.ResourceList{}
	for _, s := range stored {
		add(l.Used, s.Usage, 1)
	}
	l.Used, l.Observed = dropZeros(l.Used), newest(stored)
	kept := l.Reservations[:0]
	for _, r := range l.Reservations {
		s, exists := stored[r.Binding]
		if !r.done(s, exists, missing, now) {
			r.Counted = s.Usage
			kept = append(kept, r)
		}
	}
	l.Reservations = kept
}

// done reports whether no write of the reservation can be stored any longer, or it is stored and counted.
func (r *Reservation) done(s Stored, exists bool, missing func(string) bool, now time.Time) bool {
	switch {
	case now.Sub(r.Since.Time) > ReservationTTL:
		return exists || missing(r.Binding)
	case r.Held || r.UID != "" && r.UID != s.UID:
		return false
	case exists:
		return compare(s.Version, r.Version) > 0
	}
	return missing(r.Binding)
}

// compare compares two resource versions, of which an empty one is the oldest.
func compare(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == "":
		return -1
	case b == "":
		return 1
	}
	if order, err := resourceversion.CompareResourceVersion(a, b); err == nil {
		return order
	}
	return 1 // of API servers whose versions have no order: another version is a newer one
}

func most(a, b corev1.ResourceList) corev1.ResourceList  { return choose(a, b, 1) }
func least(a, b corev1.ResourceList) corev1.ResourceList { return choose(a, b, -1) }

// choose returns of each resource the larger or smaller quantity. One that a list lacks is zero.
func choose(a, b corev1.ResourceList, sign int) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, list := range []corev1.ResourceList{a, b} {
		for name := range list {
			quantity := a[name]
			if other := b[name]; other.Cmp(quantity)*sign > 0 {
				quantity = other
			}
			if !quantity.IsZero() {
				out[name] = quantity
			}
		}
	}
	return out
}
