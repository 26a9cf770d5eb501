// Package write writes the objects of an installation, and tries again while servers are busy.
package write

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/internal/wait"
)

// FieldManager owns what an installation writes.
const FieldManager = "karmadactl-init"

const (
	// parallelWrites is how many objects are written at the same time.
	parallelWrites = 16
	// retryLimit is how long requests are tried again that failed because a server is busy or changes its leader.
	retryLimit = 30 * time.Second
	// wantedHash is the annotation of objects with a hash of what is desired. Fields that are not desired any more show
	// by it.
	wantedHash = "karmada.io/wanted-hash"
)

// Apply writes the objects that are not as wanted.
func Apply(ctx context.Context, to client.Client, objects []client.Object) (apply.ChangeSet, error) {
	applier := &apply.Applier{Client: to, Manager: FieldManager, Parallel: parallelWrites}
	var changes apply.ChangeSet
	err := wait.Until(ctx, wait.Options{Interval: time.Second, Timeout: retryLimit}, func(context.Context) error {
		again, err := applier.Apply(ctx, objects...) // not the context of the wait: an attempt is not interrupted
		if changes = merge(changes, again); err != nil && !transient(err) {
			return wait.Terminal(err)
		}
		return err
	})
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return changes, err
}

// Prune deletes the objects of the families that are not among those to keep.
func Prune(ctx context.Context, in client.Client, keep []client.Object, families ...apply.Family) (apply.ChangeSet, error) {
	return (&apply.Applier{Client: in, Manager: FieldManager}).Prune(ctx, keep, families...)
}

// Stamp annotates workloads and Services with a hash of what is desired.
func Stamp(objects []client.Object) error {
	for _, o := range objects {
		switch o.(type) {
		case *corev1.Namespace, *corev1.Secret:
			continue
		}
		text, err := json.Marshal(o)
		if err != nil {
			return fmt.Errorf("encoding %T %s: %w", o, o.GetName(), err)
		}
		sum := sha256.Sum256(text)
		annotations := maps.Clone(o.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[wantedHash] = hex.EncodeToString(sum[:8])
		o.SetAnnotations(annotations)
	}
	return nil
}

// Summary counts changes.
func Summary(changes apply.ChangeSet) string {
	count := map[apply.Action]int{}
	for _, c := range changes {
		count[c.Action]++
	}
	var parts []string
	for _, action := range []apply.Action{apply.Created, apply.Configured, apply.Deleted} {
		if count[action] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[action], action))
		}
	}
	if len(parts) == 0 {
		return string(apply.Unchanged)
	}
	return strings.Join(parts, ", ")
}

// merge adds what a second attempt did to what the first did.
func merge(first, second apply.ChangeSet) apply.ChangeSet {
	if first == nil {
		return second
	}
	for i := range first {
		if first[i].Action == "" || first[i].Action == apply.Unchanged {
			first[i] = second[i]
		}
	}
	return first
}

// transient reports whether a retry may succeed after all the errors. All kinds exist that are written: an API server
// that does not serve one has just started.
func transient(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !transient(e) })
	}
	return meta.IsNoMatchError(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || strings.Contains(err.Error(), "etcdserver: ") ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err)
}
