package templates

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Gate is a source without events that delays the start of a controller until the
// templates were listed once.
type Gate struct{ Store *Store }

var _ source.SyncingSource = Gate{}

// Start does nothing.
func (Gate) Start(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	return nil
}

// WaitForSync waits for the first list of all templates.
func (g Gate) WaitForSync(ctx context.Context) error { return g.Store.WaitForSync(ctx) }
