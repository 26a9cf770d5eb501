package scheduler

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
)

// Bindings whose policy was deleted, and those whose scheduling is suspended, are
// not scheduled. They still lose the clusters that leave: a cluster stays until
// no binding names it. A binding that has a placement is scheduled by it then, so
// that its replicas go elsewhere; any other only loses the target.

// needs finds out which bindings need a decision.
type needs struct {
	schedulerName        string
	clusters             *clusters
	live                 client.Reader
	multiplePodTemplates bool
}

func (n *needs) facts() core.NeedFacts {
	return core.NeedFacts{Snapshot: n.clusters.Snapshot(), MultiplePodTemplates: n.multiplePodTemplates}
}

// mustRelease reports whether a binding that is not scheduled has targets that leave.
func (n *needs) mustRelease(b workv1alpha2.Binding) bool {
	if len(b.GetSpec().Clusters) == 0 || !assigned(b, n.schedulerName) || !b.GetDeletionTimestamp().IsZero() {
		return false
	}
	terminating, missing := core.Leaving(b.GetSpec(), n.clusters.Snapshot())
	return len(terminating)+len(missing) > 0
}

// of returns whether a binding is due. One that no policy claims is due only
// while a target leaves.
func (n *needs) of(ctx context.Context, b known) (core.Need, error) {
	if b.owned {
		need, err := core.NeedsScheduling(b, n.facts())
		if err != nil || need.Due() {
			return need, err
		}
	}
	leaving, err := n.leaving(ctx, b)
	if err != nil || len(leaving) == 0 {
		return core.Need{}, err
	}
	return core.Need{Cause: core.CauseTerminating, Type: core.ReconcileSchedule}, nil
}

// leaving returns the targets that are being deleted or are gone. A cluster that
// was not observed is read from the API server: it may have joined just now.
func (n *needs) leaving(ctx context.Context, b known) ([]string, error) {
	terminating, missing := core.Leaving(b.GetSpec(), n.clusters.Snapshot())
	for _, name := range missing {
		err := n.live.Get(ctx, types.NamespacedName{Name: name}, &clusterv1alpha1.Cluster{})
		switch {
		case apierrors.IsNotFound(err):
			terminating = append(terminating, name)
		case err != nil:
			return nil, fmt.Errorf("reading cluster %q, a target of %s: %w", name, core.Ref(b), err)
		}
	}
	return terminating, nil
}
