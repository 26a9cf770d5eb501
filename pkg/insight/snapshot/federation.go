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
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

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
	// Events are those of the namespace karmada-system, such as about certificates that end soon.
	Events []corev1.Event
	// Clusters are sorted by name.
	Clusters []*clusterv1alpha1.Cluster
	// Bindings are those of both scopes.
	Bindings []workv1alpha2.Binding
	Quotas   []policyv1alpha1.FederatedResourceQuota
	// Registries are nil if their API is not served.
	Registries []searchv1alpha1.ResourceRegistry
	Gaps
}

// Reached reports whether the server answered as a control plane does, although it may not serve clusters at the moment.
func (f *Federation) Reached() bool {
	foreign := slices.ContainsFunc(f.Gaps, func(g Gap) bool { return g.What == Clusters && apierrors.IsNotFound(g.Err) })
	return !foreign && (!f.Lacks(Clusters) || !f.Lacks(Version))
}

// errDeadline is the error of what has not answered before a deadline.
var errDeadline = errors.New("no answer in time")

// Silent reports whether nothing was answered before the deadline.
func (f *Federation) Silent() bool {
	silent := func(what string) bool {
		return slices.ContainsFunc(f.Gaps, func(g Gap) bool { return g.What == what && errors.Is(g.Err, errDeadline) })
	}
	return silent(Version) && silent(Readyz) && silent(Clusters) && silent(Leases)
}

// Federation reads the facts about a federation, all at once. What has not answered before the deadline is a gap. It returns an
// error only if ctx ends.
func (r *Reader) Federation(parent context.Context) (*Federation, error) {
	f, in := &Federation{Now: r.Now()}, &reads{from: r.ControlPlane}
	ctx, cancel := context.WithTimeoutCause(parent, cmp.Or(r.Deadline, defaultDeadline), errDeadline)
	defer cancel()
	var group sync.WaitGroup
	group.Go(func() { f.Version = r.version(ctx, in) })
	group.Go(func() { f.Readyz = r.readyz(ctx, in) })
	group.Go(func() {
		in.list(ctx, Leases, &coordinationv1.LeaseList{}, func(l client.ObjectList) { f.Leases = append(f.Leases, l.(*coordinationv1.LeaseList).Items...) },
			client.InNamespace(clusterv1alpha1.NamespaceKarmadaSystem))
	})
	group.Go(func() {
		in.list(ctx, Events, &corev1.EventList{}, func(l client.ObjectList) { f.Events = append(f.Events, l.(*corev1.EventList).Items...) },
			client.InNamespace(corev1.NamespaceDefault), client.MatchingFields{"involvedObject.kind": "Namespace", "involvedObject.name": clusterv1alpha1.NamespaceKarmadaSystem})
	})
	group.Go(func() { f.Clusters = in.clusters(ctx) })
	group.Go(func() {
		in.visible(ctx, Quotas, r.Namespace, &policyv1alpha1.FederatedResourceQuotaList{}, func(l client.ObjectList) {
			f.Quotas = append(f.Quotas, l.(*policyv1alpha1.FederatedResourceQuotaList).Items...)
		})
	})
	group.Go(func() {
		in.list(ctx, Registries, &searchv1alpha1.ResourceRegistryList{}, func(l client.ObjectList) {
			f.Registries = append(f.Registries, l.(*searchv1alpha1.ResourceRegistryList).Items...)
		})
	})
	group.Go(func() { f.Bindings = in.bindings(ctx, r.Namespace) })
	group.Wait()
	f.Gaps = in.sorted()
	return f, parent.Err()
}

// Renewed returns facts about a federation whose clusters and bindings are read again. It is for a Reader that has these in memory. It
// returns an error only if ctx ends.
func (r *Reader) Renewed(ctx context.Context, f *Federation) (*Federation, error) {
	out, in := *f, &reads{from: r.ControlPlane}
	read := []string{Clusters}
	for _, s := range scope.Bindings() {
		read = append(read, s.Kind+"s", s.Kind+"s"+ofOthers)
	}
	for _, gap := range f.Gaps {
		if !slices.Contains(read, gap.What) {
			in.gaps = append(in.gaps, gap)
		}
	}
	out.Now, out.Clusters, out.Bindings = r.Now(), in.clusters(ctx), in.bindings(ctx, r.Namespace)
	out.Gaps = in.sorted()
	return &out, ctx.Err()
}

// clusters returns all clusters, sorted by name.
func (r *reads) clusters(ctx context.Context) []*clusterv1alpha1.Cluster {
	var out []*clusterv1alpha1.Cluster
	r.list(ctx, Clusters, &clusterv1alpha1.ClusterList{}, func(l client.ObjectList) {
		items := l.(*clusterv1alpha1.ClusterList).Items
		for i := range items {
			out = append(out, &items[i])
		}
	})
	slices.SortFunc(out, func(a, b *clusterv1alpha1.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// bindings returns those of both scopes; for a user who may not list those of all namespaces, those of one.
func (r *reads) bindings(ctx context.Context, namespace string) []workv1alpha2.Binding {
	var out [2][]workv1alpha2.Binding
	var group sync.WaitGroup
	for i, s := range scope.Bindings() {
		group.Go(func() {
			in := ""
			if s.Namespaced {
				in = namespace
			}
			r.visible(ctx, s.Kind+"s", in, s.NewList(), func(l client.ObjectList) { out[i] = append(out[i], l.(workv1alpha2.BindingList).Bindings()...) })
		})
	}
	group.Wait()
	return slices.Concat(out[:]...)
}

func (r *Reader) version(ctx context.Context, in *reads) string {
	body, err := r.Raw(ctx, "/version")
	info := &version.Info{}
	if err == nil {
		err = json.Unmarshal(body, info)
	}
	in.note(ctx, Version, err)
	return info.GitVersion
}

// readyz returns the checks of the API server. One that is not ready answers with an error and its checks.
func (r *Reader) readyz(ctx context.Context, in *reads) string {
	body, err := r.Raw(ctx, "/readyz?verbose")
	if err != nil && !bytes.Contains(body, []byte("[-]")) {
		in.note(ctx, Readyz, err)
		return ""
	}
	return string(body)
}

// Raw returns what Reader.Raw is for the API server of a configuration.
func Raw(config *rest.Config) (func(ctx context.Context, path string) ([]byte, error), error) {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	c, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, path string) ([]byte, error) { return c.Get().RequestURI(path).DoRaw(ctx) }, nil
}

// Mapper maps the kinds that Federation reads without discovery, which would wait for an API that does not answer.
func Mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
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
