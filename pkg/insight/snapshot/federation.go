package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// What Federation reads, as gaps name it.
const (
	Version    = "the version of the API server"
	Readyz     = "/readyz of the API server"
	Leases     = "Leases in karmada-system"
	Clusters   = "Clusters"
	Quotas     = "FederatedResourceQuotas"
	Registries = "ResourceRegistries"
)

// pageSize is the number of objects of a page of a list.
const pageSize = 500

// Federation are the facts that the state of a federation is computed from. What is empty does not exist, unless a gap names it.
type Federation struct {
	// Now is the time of the reads.
	Now time.Time
	// Version is that of the API server.
	Version string
	// Readyz is the answer to /readyz?verbose: a line for each check.
	Readyz string
	// Leases are those of the roles.
	Leases []coordinationv1.Lease
	// Clusters are sorted by name.
	Clusters []*clusterv1alpha1.Cluster
	// Bindings are those of both scopes.
	Bindings []workv1alpha2.Binding
	Quotas   []policyv1alpha1.FederatedResourceQuota
	// Registries are nil if their API is not served.
	Registries []searchv1alpha1.ResourceRegistry
	Gaps       []Gap
}

// Lacks reports whether something is unknown because it could not be read.
func (f *Federation) Lacks(what string) bool {
	return slices.ContainsFunc(f.Gaps, func(g Gap) bool { return g.What == what })
}

// Reached reports whether the server answered as a control plane does, although it may not serve clusters at the moment.
func (f *Federation) Reached() bool {
	foreign := slices.ContainsFunc(f.Gaps, func(g Gap) bool { return g.What == Clusters && apierrors.IsNotFound(g.Err) })
	return !foreign && (!f.Lacks(Clusters) || !f.Lacks(Version))
}

// federation are facts while they are read.
type federation struct {
	*Federation
	from *Reader
	lock sync.Mutex
}

// Federation reads the facts about a federation, all at once. What has not answered before the deadline is a gap. It returns an
// error only if ctx ends.
func (r *Reader) Federation(ctx context.Context) (*Federation, error) {
	f := &federation{from: r, Federation: &Federation{Now: r.Now()}}
	limited, cancel := context.WithTimeoutCause(ctx, cmp.Or(r.Deadline, defaultDeadline), errors.New("no answer in time"))
	defer cancel()
	var bindings [2][]workv1alpha2.Binding
	var group sync.WaitGroup
	group.Go(func() { f.readVersion(limited) })
	group.Go(func() { f.readReadyz(limited) })
	group.Go(func() {
		f.read(limited, Leases, &coordinationv1.LeaseList{}, func(l client.ObjectList) { f.Leases = append(f.Leases, l.(*coordinationv1.LeaseList).Items...) },
			client.InNamespace(clusterv1alpha1.NamespaceKarmadaSystem))
	})
	group.Go(func() {
		f.read(limited, Clusters, &clusterv1alpha1.ClusterList{}, func(l client.ObjectList) {
			items := l.(*clusterv1alpha1.ClusterList).Items
			for i := range items {
				f.Clusters = append(f.Clusters, &items[i])
			}
		})
	})
	group.Go(func() {
		f.read(limited, Quotas, &policyv1alpha1.FederatedResourceQuotaList{}, func(l client.ObjectList) {
			f.Quotas = append(f.Quotas, l.(*policyv1alpha1.FederatedResourceQuotaList).Items...)
		})
	})
	group.Go(func() {
		f.read(limited, Registries, &searchv1alpha1.ResourceRegistryList{}, func(l client.ObjectList) {
			f.Registries = append(f.Registries, l.(*searchv1alpha1.ResourceRegistryList).Items...)
		})
	})
	for i, s := range scope.Bindings() {
		group.Go(func() {
			f.read(limited, s.Kind+"s", s.NewList(), func(l client.ObjectList) {
				bindings[i] = append(bindings[i], l.(workv1alpha2.BindingList).Bindings()...)
			})
		})
	}
	group.Wait()
	f.Bindings = slices.Concat(bindings[:]...)
	slices.SortFunc(f.Clusters, func(a, b *clusterv1alpha1.Cluster) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(f.Gaps, func(a, b Gap) int { return strings.Compare(a.What, b.What) })
	return f.Federation, context.Cause(ctx)
}

// read reads a list in pages. What was read before an error is kept.
func (f *federation) read(ctx context.Context, what string, list client.ObjectList, take func(client.ObjectList), options ...client.ListOption) {
	next := ""
	for {
		page := list.DeepCopyObject().(client.ObjectList)
		err := f.from.ControlPlane.List(ctx, page, append(options, client.Limit(pageSize), client.Continue(next))...)
		if err != nil {
			f.note(ctx, what, err)
			return
		}
		take(page)
		if next = page.GetContinue(); next == "" {
			return
		}
	}
}

func (f *federation) readVersion(ctx context.Context) {
	body, err := f.from.Raw(ctx, "/version")
	info := &version.Info{}
	if err == nil {
		err = json.Unmarshal(body, info)
	}
	f.note(ctx, Version, err)
	f.Version = info.GitVersion
}

// readReadyz reads the checks of the API server. One that is not ready answers with an error and its checks.
func (f *federation) readReadyz(ctx context.Context) {
	body, err := f.from.Raw(ctx, "/readyz?verbose")
	if err != nil && !bytes.Contains(body, []byte("[-]")) {
		f.note(ctx, Readyz, err)
		return
	}
	f.Readyz = string(body)
}

// note records what could not be read. Not every control plane serves ResourceRegistries.
func (f *federation) note(ctx context.Context, what string, err error) {
	if err == nil || what == Registries && apierrors.IsNotFound(err) {
		return
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	f.Gaps = append(f.Gaps, Gap{what, err})
}

// Mapper maps the kinds that Federation reads without discovery, which would wait for an API that does not answer.
func Mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	mapper.Add(clusterv1alpha1.GroupVersion.WithKind("Cluster"), meta.RESTScopeRoot)
	mapper.Add(policyv1alpha1.GroupVersion.WithKind("FederatedResourceQuota"), meta.RESTScopeNamespace)
	mapper.Add(searchv1alpha1.GroupVersion.WithKind("ResourceRegistry"), meta.RESTScopeRoot)
	for _, s := range scope.Bindings() {
		namespaced := scope.Pick[meta.RESTScope](s.Namespaced, meta.RESTScopeNamespace, meta.RESTScopeRoot)
		mapper.Add(workv1alpha2.GroupVersion.WithKind(s.Kind), namespaced)
	}
	return mapper
}
