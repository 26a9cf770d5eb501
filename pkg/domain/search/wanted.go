package search

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/match"
)

// Namespaces are those whose objects are cached. The zero value has none. For kinds without a namespace they mean nothing.
type Namespaces struct {
	// All reports whether every namespace belongs to them; Names is nil then.
	All bool
	// Names are in ascending order, each once.
	Names []string
}

// Has reports whether a namespace belongs to them.
func (n Namespaces) Has(namespace string) bool {
	if n.All {
		return true
	}
	_, found := slices.BinarySearch(n.Names, namespace)
	return found
}

// Equal reports whether two are the same.
func (n Namespaces) Equal(other Namespaces) bool {
	return n.All == other.All && slices.Equal(n.Names, other.Names)
}

// with returns the namespaces and one more: all of them if it is empty. It does not change n.
func (n Namespaces) with(namespace string) Namespaces {
	if n.All || namespace == "" {
		return Namespaces{All: true}
	}
	at, found := slices.BinarySearch(n.Names, namespace)
	if found {
		return n
	}
	return Namespaces{Names: slices.Insert(slices.Clone(n.Names), at, namespace)}
}

// Source is a kind of objects in one cluster, of which there is one cache.
type Source struct {
	Cluster string
	Kind    schema.GroupVersionKind
}

// Wanted are the caches that registries select, and the namespaces of each.
type Wanted map[Source]Namespaces

// Want returns the caches that registries select together. Clusters that are being deleted have none; one that is not Ready
// keeps its own. Registries that are being deleted, and selectors without a kind or with a version that cannot be read,
// select nothing.
func Want(registries []*searchv1alpha1.ResourceRegistry, clusters []*clusterv1alpha1.Cluster) Wanted {
	out := Wanted{}
	for _, r := range registries {
		out.add(r, clusters)
	}
	return out
}

func (w Wanted) add(r *searchv1alpha1.ResourceRegistry, clusters []*clusterv1alpha1.Cluster) {
	if r.DeletionTimestamp != nil {
		return
	}
	kinds := Kinds(r)
	if len(kinds) == 0 {
		return
	}
	matcher := match.Compile(&r.Spec.TargetCluster)
	for _, c := range clusters {
		if c.DeletionTimestamp != nil || !matcher.Matches(c) {
			continue
		}
		for kind, namespaces := range kinds {
			source := Source{Cluster: c.Name, Kind: kind}
			w[source] = union(w[source], namespaces)
		}
	}
}

// Kinds returns what the selectors of a registry select of a cluster.
func Kinds(r *searchv1alpha1.ResourceRegistry) map[schema.GroupVersionKind]Namespaces {
	out := map[schema.GroupVersionKind]Namespaces{}
	for _, s := range r.Spec.ResourceSelectors {
		version, err := schema.ParseGroupVersion(s.APIVersion)
		if err != nil || version.Version == "" || s.Kind == "" {
			continue
		}
		kind := version.WithKind(s.Kind)
		out[kind] = out[kind].with(s.Namespace)
	}
	return out
}

func union(a, b Namespaces) Namespaces {
	if a.All || b.All {
		return Namespaces{All: true}
	}
	for _, name := range b.Names {
		a = a.with(name)
	}
	return a
}

// compareSources orders by cluster, then by kind.
func compareSources(a, b Source) int {
	return cmp.Or(
		cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Kind.Group, b.Kind.Group),
		cmp.Compare(a.Kind.Kind, b.Kind.Kind), cmp.Compare(a.Kind.Version, b.Kind.Version),
	)
}
