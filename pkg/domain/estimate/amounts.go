package estimate

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"

	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
)

// Amounts are the quantities of resources, sorted by name: in thousandths for cpu, else in units. They hold no
// resource twice and nothing that is not above 0.
type Amounts []Amount

// Amount is the quantity of one resource.
type Amount struct {
	Name  corev1.ResourceName
	Value int64
}

// amountsOf returns the quantities of the resources that nodes have, and of pods.
func amountsOf(list corev1.ResourceList) Amounts {
	out := make(Amounts, 0, len(list))
	for name, quantity := range list {
		if name != corev1.ResourcePods && !replicas.Modeled(name) {
			continue
		}
		if value := replicas.Value(name, quantity); value > 0 {
			// Names are shared by all nodes and pods.
			out = append(out, Amount{Name: unique.Make(name).Value(), Value: value})
		}
	}
	slices.SortFunc(out, func(a, b Amount) int { return cmp.Compare(a.Name, b.Name) })
	return slices.Clip(out)
}

// get returns the quantity of a resource; 0 if there is none.
func (a Amounts) get(name corev1.ResourceName) int64 {
	for i := range a {
		if a[i].Name == name {
			return a[i].Value
		}
	}
	return 0
}

// total is a sum of amounts. It does not overflow, so that what was added can be taken away again.
type total struct{ high, low uint64 }

func (t *total) add(v int64) {
	var carry uint64
	t.low, carry = bits.Add64(t.low, uint64(v), 0)
	t.high += carry
}

func (t *total) sub(v int64) {
	var borrow uint64
	t.low, borrow = bits.Sub64(t.low, uint64(v), 0)
	t.high -= borrow
}

// from returns what is left of a quantity without the total, at least 0.
func (t total) from(v int64) int64 {
	if t.high > 0 || t.low > math.MaxInt64 {
		return 0
	}
	return max(v-int64(t.low), 0)
}
