package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Gap is something that could not be read.
type Gap struct {
	What string
	Err  error
}

// String names what could not be read, and why.
func (g Gap) String() string { return fmt.Sprintf("%s: %v", g.What, g.Err) }

// Gaps are what could not be read, sorted.
type Gaps []Gap

// Lacks reports whether something is unknown because it could not be read.
func (g Gaps) Lacks(what string) bool {
	return slices.ContainsFunc(g, func(g Gap) bool { return g.What == what })
}

// What readers read, as gaps name it.
const (
	Version          = "the version of the API server"
	Readyz           = "/readyz of the API server"
	Leases           = "Leases in karmada-system"
	Events           = "Events of the namespace karmada-system"
	Clusters         = "Clusters"
	Quotas           = "FederatedResourceQuotas"
	Registries       = "ResourceRegistries"
	Policies         = "PropagationPolicies"
	ClusterPolicies  = "ClusterPropagationPolicies"
	Overrides        = "OverridePolicies"
	ClusterOverrides = "ClusterOverridePolicies"
	TheBinding       = "the binding"
)

// WorkIn is the Work of the template in a cluster, as gaps name it.
func WorkIn(cluster string) string { return "the Work in cluster " + cluster }

// pageSize is the number of objects of a page of a list.
const pageSize = 500

// ofOthers follows what was read of one namespace only, as gaps name it.
const ofOthers = " of other namespaces"

// reads are reads of the control plane that run at the same time.
type reads struct {
	from client.Reader
	// whole reads lists as one page, which API servers have in their caches, as those of informers.
	whole bool
	mu    sync.Mutex
	gaps  Gaps
}

// note records what could not be read, and reports whether it was.
func (r *reads) note(ctx context.Context, what string, err error) bool {
	if err == nil || what == Registries && (apierrors.IsNotFound(err) || meta.IsNoMatchError(err)) { // not every control plane serves them
		return true
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gaps = append(r.gaps, Gap{what, err})
	return false
}

// lacks reports whether something could not be read.
func (r *reads) lacks(what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gaps.Lacks(what)
}

// get reads an object, and reports whether it exists and was read.
func (r *reads) get(ctx context.Context, what string, key client.ObjectKey, obj client.Object) bool {
	err := r.from.Get(ctx, key, obj)
	return !apierrors.IsNotFound(err) && r.note(ctx, what, err)
}

// list reads a list in pages, which are taken one at a time. What was read before an error is kept.
func (r *reads) list(ctx context.Context, what string, list client.ObjectList, take func(client.ObjectList), options ...client.ListOption) {
	r.note(ctx, what, r.pages(ctx, list, take, options...))
}

// visible reads a list of all namespaces or, for a user who may not, of one.
func (r *reads) visible(ctx context.Context, what, namespace string, list client.ObjectList, take func(client.ObjectList)) {
	err := r.pages(ctx, list, take)
	if apierrors.IsForbidden(err) && namespace != "" {
		if in := r.pages(ctx, list, take, client.InNamespace(namespace)); in == nil {
			what += ofOthers
		}
	}
	r.note(ctx, what, err)
}

func (r *reads) pages(ctx context.Context, list client.ObjectList, take func(client.ObjectList), options ...client.ListOption) error {
	limit := int64(pageSize)
	if r.whole {
		limit = 0
	}
	for next := ""; ; {
		page := list.DeepCopyObject().(client.ObjectList)
		if err := r.from.List(ctx, page, append(slices.Clone(options), client.Limit(limit), client.Continue(next))...); err != nil {
			return err
		}
		r.mu.Lock()
		take(page)
		r.mu.Unlock()
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
}

// sorted returns the gaps.
func (r *reads) sorted() Gaps {
	slices.SortFunc(r.gaps, func(a, b Gap) int { return cmp.Or(strings.Compare(a.What, b.What)) })
	return r.gaps
}
