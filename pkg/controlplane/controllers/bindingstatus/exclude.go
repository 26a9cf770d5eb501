package bindingstatus

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

const (
	// excludeLimit bounds the search for statuses that cannot be aggregated.
	excludeLimit = 5 * time.Second
	// exclusionTTL is how long a status stays excluded before it is tried again: the
	// rules of its kind may have changed.
	exclusionTTL = time.Minute
	// maxReason is the longest reason in an event, in bytes.
	maxReason = 512
)

// exclusion is a status of a cluster that cannot be part of the template's.
type exclusion struct {
	sum   [sha256.Size]byte
	until time.Time
}

// errUnclear is returned when no status stands out.
var errUnclear = errors.New("no single cluster is the cause")

// exclude returns items without the statuses because of which try fails, and why
// each of them was left out. Statuses are added one by one, those with the largest
// numbers last, so that a sum that overflows is blamed on the cluster that is out
// of the ordinary. It returns errUnclear if try fails without any status or with
// every one of them, and the error of give, which is called before each attempt.
func exclude(items []workv1alpha2.AggregatedStatusItem, try func([]workv1alpha2.AggregatedStatusItem) error, give func() error) ([]workv1alpha2.AggregatedStatusItem, map[string]error, error) {
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
		if err := give(); err != nil {
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

// withoutExcluded returns items without the statuses that were excluded before.
func (t *templateState) withoutExcluded(items []workv1alpha2.AggregatedStatusItem, now time.Time) []workv1alpha2.AggregatedStatusItem {
	out := items
	for i := range items {
		e, ok := t.excluded[items[i].ClusterName]
		switch {
		case !ok || items[i].Status == nil:
			continue
		case now.After(e.until) || e.sum != sha256.Sum256(items[i].Status.Raw):
			delete(t.excluded, items[i].ClusterName)
			continue
		}
		if &out[0] == &items[0] {
			out = slices.Clone(items)
		}
		out[i].Status = nil
	}
	return out
}

// aggregateWithout aggregates what can be aggregated after cause made the status as
// a whole impossible, and publishes what was left out: one cluster must not keep
// users from seeing the others. It returns cause when no cluster is to blame.
func (r *Reconciler) aggregateWithout(ctx context.Context, p parties, items []workv1alpha2.AggregatedStatusItem, cause error, try func([]workv1alpha2.AggregatedStatusItem) error) ([]workv1alpha2.AggregatedStatusItem, error) {
	start := r.deps.Clock.Now()
	kept, out, err := exclude(items, try, func() error {
		if r.deps.Clock.Since(start) > excludeLimit {
			return errUnclear
		}
		return ctx.Err()
	})
	if err != nil || len(out) == 0 {
		return nil, cause
	}
	t := &p.state.template
	if t.excluded == nil {
		t.excluded = map[string]exclusion{}
	}
	var text []string
	for i := range items {
		why, ok := out[items[i].ClusterName]
		if !ok {
			continue
		}
		t.excluded[items[i].ClusterName] = exclusion{sum: sha256.Sum256(items[i].Status.Raw), until: start.Add(exclusionTTL)}
		text = append(text, fmt.Sprintf("The status in cluster %s is left out of the aggregated status: %s", items[i].ClusterName, plaintext.Line(why.Error(), maxReason)))
	}
	if message := strings.Join(text, "\n"); message != t.saidExcluded {
		t.saidExcluded = message
		for _, line := range text {
			r.events.Event(p.binding, corev1.EventTypeWarning, reasonFailed, line)
			r.events.Event(p.template, corev1.EventTypeWarning, reasonFailed, line)
		}
	}
	return kept, nil
}

// parties are what an aggregation is about.
type parties struct {
	binding  workv1alpha2.Binding
	template *unstructured.Unstructured
	state    *state
}

// refused reports whether an API server refuses an object for what is in it.
func refused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err))
}
