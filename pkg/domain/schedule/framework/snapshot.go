package framework

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
)

// Cluster holds the facts of one Cluster object that decisions need, computed
// once. It is immutable and shared by all snapshots that contain it.
type Cluster struct {
	// Object is the Cluster; it must not be changed.
	Object *clusterv1alpha1.Cluster
	// Capacity is what its resource summary says is free.
	Capacity *replicas.Capacity
	// Taints are the taints that keep bindings out.
	Taints []Taint
	// Terminating is set while the Cluster is being deleted.
	Terminating bool
	// NotReady is set while the condition Ready is False or Unknown, not while there is none.
	NotReady bool

	apis *apiSet
}

// Taint is a taint with its text.
type Taint struct {
	corev1.Taint
	// Text is {key=value:effect}.
	Text string
}

// ClusterInfo is a cluster in its place in a snapshot.
type ClusterInfo struct {
	*Cluster
	index int32
}

// Name returns the name of the cluster.
func (c *Cluster) Name() string { return c.Object.Name }

// Index is the place of the cluster in its snapshot.
func (c *ClusterInfo) Index() int { return int(c.index) }

// apiSet is the set of kinds that clusters serve.
type apiSet struct {
	kinds map[apiKind]struct{}
}

type apiKind struct{ groupVersion, kind string }

// HasAPI reports whether the cluster serves a kind.
func (c *Cluster) HasAPI(groupVersion, kind string) bool {
	_, ok := c.apis.kinds[apiKind{groupVersion, kind}]
	return ok
}

// APIsCollected reports whether the APIs of the cluster were collected since it
// joined, with the rest of its status. The list may be incomplete.
func (c *Cluster) APIsCollected() bool {
	status := &c.Object.Status
	return len(status.APIEnablements) > 0 || status.ResourceSummary != nil || status.KubernetesVersion != "" ||
		meta.FindStatusCondition(c.Object.Status.Conditions, clusterv1alpha1.ClusterConditionCompleteAPIEnablements) != nil
}

// Facts computes Cluster values. Clusters that serve the same APIs share one set
// of them. A Facts is not safe for concurrent use.
type Facts struct {
	// ResourceModels reports whether capacity comes from nodes by grade where the
	// cluster has them.
	ResourceModels bool

	apis   map[uint64][]sharedAPIs
	shared int
}

type sharedAPIs struct {
	from []clusterv1alpha1.APIEnablement
	set  *apiSet
}

// Cluster computes the facts about a Cluster object, which must not change
// afterwards.
func (f *Facts) Cluster(object *clusterv1alpha1.Cluster) *Cluster {
	c := &Cluster{
		Object:      object,
		Capacity:    replicas.NewCapacity(object, f.ResourceModels),
		Terminating: !object.DeletionTimestamp.IsZero(),
		apis:        f.share(object.Status.APIEnablements),
	}
	if ready := meta.FindStatusCondition(object.Status.Conditions, clusterv1alpha1.ClusterConditionReady); ready != nil {
		c.NotReady = ready.Status != metav1.ConditionTrue
	}
	for i := range object.Spec.Taints {
		taint := object.Spec.Taints[i]
		if taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute {
			c.Taints = append(c.Taints, Taint{Taint: taint, Text: "{" + taint.ToString() + "}"})
		}
	}
	return c
}

func (f *Facts) share(list []clusterv1alpha1.APIEnablement) *apiSet {
	key := uint64(len(list))
	for i := range list {
		key = key*31 + uint64(len(list[i].Resources))
	}
	for _, s := range f.apis[key] {
		if slices.EqualFunc(s.from, list, sameAPIs) {
			return s.set
		}
	}
	set := &apiSet{kinds: make(map[apiKind]struct{}, 4*len(list))}
	for i := range list {
		for _, r := range list[i].Resources {
			set.kinds[apiKind{list[i].GroupVersion, r.Kind}] = struct{}{}
		}
	}
	if f.apis == nil || f.shared >= maxSharedAPIs {
		f.apis, f.shared = map[uint64][]sharedAPIs{}, 0
	}
	f.shared++
	f.apis[key] = append(f.apis[key], sharedAPIs{from: list, set: set})
	return set
}

// maxSharedAPIs bounds what Facts remembers.
const maxSharedAPIs = 256

func sameAPIs(a, b clusterv1alpha1.APIEnablement) bool {
	return a.GroupVersion == b.GroupVersion && slices.Equal(a.Resources, b.Resources)
}

// Snapshot is the clusters at one moment, sorted by name. It is immutable and
// may be used by many decisions at the same time.
type Snapshot struct {
	clusters []ClusterInfo
}

// NewSnapshot makes a snapshot of clusters with different names, in any order.
func NewSnapshot(clusters []*Cluster) *Snapshot {
	s := &Snapshot{clusters: make([]ClusterInfo, len(clusters))}
	for i, c := range clusters {
		s.clusters[i].Cluster = c
	}
	byName := func(a, b ClusterInfo) int { return cmp.Compare(a.Object.Name, b.Object.Name) }
	if !slices.IsSortedFunc(s.clusters, byName) {
		slices.SortFunc(s.clusters, byName)
	}
	for i := range s.clusters {
		s.clusters[i].index = int32(i)
	}
	return s
}

// SnapshotOf computes a snapshot from Cluster objects, which must not change
// afterwards.
func SnapshotOf(objects []*clusterv1alpha1.Cluster, resourceModels bool) *Snapshot {
	facts := Facts{ResourceModels: resourceModels}
	clusters := make([]*Cluster, len(objects))
	for i := range objects {
		clusters[i] = facts.Cluster(objects[i])
	}
	return NewSnapshot(clusters)
}

// Len returns the number of clusters.
func (s *Snapshot) Len() int { return len(s.clusters) }

// At returns the cluster at an index.
func (s *Snapshot) At(i int) *ClusterInfo { return &s.clusters[i] }

// Find returns the index of a cluster by name, or -1.
func (s *Snapshot) Find(name string) int {
	at, ok := slices.BinarySearchFunc(s.clusters, name, func(c ClusterInfo, name string) int {
		return cmp.Compare(c.Object.Name, name)
	})
	if !ok {
		return -1
	}
	return at
}

// SameAPIs reports whether the cluster serves the same kinds as another.
func (c *Cluster) SameAPIs(other *Cluster) bool {
	return c.apis == other.apis || maps.Equal(c.apis.kinds, other.apis.kinds)
}
