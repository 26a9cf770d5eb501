package dependencies

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/patch"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// bindings reads and writes bindings.
type bindings struct {
	client client.Client
	live   client.Reader
}

// attachedTo returns the bindings that follow b. They are shared and read-only.
func (s *bindings) attachedTo(ctx context.Context, b *workv1alpha2.ResourceBinding) ([]workv1alpha2.ResourceBinding, error) {
	id := b.Labels[workv1alpha2.ResourceBindingPermanentIDLabel]
	list := &workv1alpha2.ResourceBindingList{}
	err := s.client.List(ctx, list, client.InNamespace(b.Namespace), client.MatchingFields{followsIndex: id}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing attached bindings: %w", err)
	}
	return list.Items, nil
}

// update applies change to a binding, which is nil if it does not exist, and repeats
// that with the stored binding after a conflict. It reports whether it wrote.
func (s *bindings) update(ctx context.Context, key types.NamespacedName, change func(*workv1alpha2.ResourceBinding) (bool, error)) (bool, error) {
	var wrote bool
	var from client.Reader = s.client
	err := retry.OnError(retry.DefaultRetry, func(err error) bool {
		return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
	}, func() error {
		existing := &workv1alpha2.ResourceBinding{}
		err := from.Get(ctx, key, existing)
		if apierrors.IsNotFound(err) {
			existing, err = nil, nil
		}
		if err != nil {
			return fmt.Errorf("getting binding %s: %w", key, err)
		}
		from = s.live
		wrote, err = change(existing)
		return err
	})
	return wrote, err
}

// write patches what differs, unless another client wrote meanwhile. before is only
// read.
func (s *bindings) write(ctx context.Context, before, after *workv1alpha2.ResourceBinding) (bool, error) {
	_, wrote, err := patch.WriteLocked(ctx, s.client, before, after)
	return wrote, err
}
