package bindingstatus

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

const (
	// excludeLimit limits the time of the search for statuses that cannot be aggregated.
	excludeLimit = 5 * time.Second
	// exclusionTTL is how long a status is excluded: the rules of its kind may change
	// meanwhile.
	exclusionTTL = time.Minute
	// maxReason is the longest reason in an event, in bytes.
	maxReason = 512
)

// exclusion is a status of a cluster that cannot be part of the template's.
type exclusion struct {
	sum   [sha256.Size]byte
	until time.Time
}

// errUnclear is returned when no single status is the cause of a failure.
var errUnclear = errors.New("no single cluster is the cause")

// exclude returns items without the statuses because of which try fails, and the
// reason for each of them. Statuses are added one by one, those with the largest
// numbers last, so that the cluster with the largest one is excluded when a sum
// overflows. It returns errUnclear if try fails without any status or with every
// one of them, and the error of proceed, which is called before each attempt.
func exclude(items []workv1alpha2.AggregatedStatusItem, try func([]workv1alpha2.AggregatedStatusItem) error, proceed func() error) ([]workv1alpha2.AggregatedStatusItem, map[string]error, error) {
	kept := slices.Clone(items)
	var order []int
	for i := range kept {
		if kept[i].Status != nil {
			order = append(order, i)
			kept[i].Status = nil
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(largest(items[a].Status.Raw), largest(items[b].Status.Raw)), cmp.Compare(items[a].ClusterName, items[b].ClusterName))
	})
	if err := try(kept); err != nil {
		return nil, nil, errors.Join(errUnclear, err)
	}
	out := map[string]error{}
	for _, i := range order {
		if err := proceed(); err != nil {
			return nil, nil, err
		}
		kept[i].Status = items[i].Status
		if err := try(kept); err != nil {
			kept[i].Status = nil
			out[kept[i].ClusterName] = err
		}
	}
	if len(out) == len(order) {
		return nil, nil, errUnclear
	}
	return kept, out, nil
}

// largest returns the largest absolute value of the numbers in JSON; infinity when
// it cannot be read.
func largest(raw []byte) float64 {
	if !json.Valid(raw) {
		return math.Inf(1)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	out := 0.0
	for {
		token, err := d.Token()
		if err != nil {
			return out
		}
		if number, ok := token.(json.Number); ok {
			value, err := number.Float64()
			if err != nil {
				return math.Inf(1)
			}
			out = max(out, math.Abs(value))
		}
	}
}

// exclusions are the statuses that are left out of the one of a template, by cluster.
type exclusions map[string]exclusion

// add excludes the status of an item.
func (e *exclusions) add(item *workv1alpha2.AggregatedStatusItem, now time.Time) {
	if *e == nil {
		*e = exclusions{}
	}
	(*e)[item.ClusterName] = exclusion{sum: sha256.Sum256(item.Status.Raw), until: now.Add(exclusionTTL)}
}

// apply returns items without the excluded statuses. It drops the exclusions that are over.
func (e exclusions) apply(items []workv1alpha2.AggregatedStatusItem, now time.Time) []workv1alpha2.AggregatedStatusItem {
	out := items
	for i := range items {
		excluded, ok := e[items[i].ClusterName]
		switch {
		case !ok || items[i].Status == nil:
			continue
		case now.After(excluded.until) || excluded.sum != sha256.Sum256(items[i].Status.Raw):
			delete(e, items[i].ClusterName)
			continue
		}
		if &out[0] == &items[0] {
			out = slices.Clone(items)
		}
		out[i].Status = nil
	}
	return out
}

// rejected reports whether the API server rejected the content of an object.
func rejected(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}
