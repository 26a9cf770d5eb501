package templates

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Gate returns a source without events that holds a controller back until the
// templates were listed once.
func (s *Store) Gate() source.SyncingSource { return gate{s} }

type gate struct{ store *Store }

// Start does nothing.
func (gate) Start(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	return nil
}

// WaitForSync waits for the first list of all templates.
func (g gate) WaitForSync(ctx context.Context) error { return g.store.WaitForSync(ctx) }
