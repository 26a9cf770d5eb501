package search

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
)

// Failures of caches that the status of registries tells apart.
const (
	// FailureListing is that of objects that were not listed completely yet.
	FailureListing = "its objects are not listed yet"
	// FailureUnknownKind is that of a kind that the cluster does not serve.
	FailureUnknownKind = "the cluster does not serve this kind"
	// FailureNotInControlPlane is that of a kind that is cached, and that the control plane does not serve.
	FailureNotInControlPlane = "the control plane does not serve this kind, so that clients cannot discover it: create its CustomResourceDefinition in the control plane too"
	// FailureNotReady is that of a cluster whose objects were dropped because it is not Ready.
	FailureNotReady = "not Ready"
)

// Observation is the state of the cache of one kind in one cluster.
type Observation struct {
	Source
	// Objects is the number of objects.
	Objects int
	// Since is when the objects were first listed completely; zero if they were not.
	Since time.Time
	// Failure is why objects are missing or out of date; empty if they are not.
	Failure string
}

const (
	// maxEntries is the number of entries in a status at most.
	maxEntries = 100
	// maxNamed is the number of failures that a message names at most, and maxFailure their length in bytes.
	maxNamed   = 3
	maxFailure = 256
	// countInterval is the least time between two statuses that differ only in counts and texts.
	countInterval = time.Minute
)

// RegistryStatus returns the status of a registry by what is observed of the caches that it selects. The times of a
// status that is otherwise the same stay. Store is why the backend store lacks objects; empty if it does not.
func RegistryStatus(r *searchv1alpha1.ResourceRegistry, clusters []*clusterv1alpha1.Cluster, observed map[Source]Observation, store string, now time.Time) searchv1alpha1.ResourceRegistryStatus {
	sources := make([]Source, 0, len(observed))
	for source := range Want([]*searchv1alpha1.ResourceRegistry{r}, clusters) {
		sources = append(sources, source)
	}
	slices.SortFunc(sources, compareSources)
	all := make([]Observation, 0, len(sources))
	for _, source := range sources {
		o, ok := observed[source]
		if !ok {
			o = Observation{Source: source, Failure: FailureListing}
		}
		o.Failure = plaintext.Line(o.Failure, maxFailure) // it may have text of the member
		all = append(all, o)
	}
	out := *r.Status.DeepCopy()
	out.Clusters = entries(all, r.Status.Clusters)
	for _, c := range []metav1.Condition{readyCondition(all), degradedCondition(all, plaintext.Line(store, maxFailure))} {
		c.ObservedGeneration, c.LastTransitionTime = r.Generation, metav1.NewTime(now)
		meta.SetStatusCondition(&out.Conditions, c)
	}
	return out
}

// entries returns an entry for each cache. If there are too many, those without a failure become one for each kind.
func entries(all []Observation, before []searchv1alpha1.ClusterCache) []searchv1alpha1.ClusterCache {
	out := make([]searchv1alpha1.ClusterCache, 0, min(len(all), maxEntries))
	if len(all) <= maxEntries {
		for _, o := range all {
			out = append(out, entry(o))
		}
	} else {
		out = sums(all)
		for _, o := range all {
			if o.Failure != "" && len(out) < maxEntries {
				out = append(out, entry(o))
			}
		}
	}
	for i := range out {
		for _, b := range before {
			if b.Cluster == out[i].Cluster && b.APIVersion == out[i].APIVersion && b.Kind == out[i].Kind && b.Failure == "" && out[i].Failure == "" && b.Clusters == out[i].Clusters {
				out[i].Since = b.Since // a process that started again listed them again
			}
		}
	}
	return out
}

func entry(o Observation) searchv1alpha1.ClusterCache {
	out := searchv1alpha1.ClusterCache{
		Cluster: o.Cluster, APIVersion: o.Kind.GroupVersion().String(), Kind: o.Kind.Kind, Objects: int64(o.Objects), Failure: o.Failure,
	}
	if !o.Since.IsZero() {
		out.Since = &metav1.Time{Time: o.Since}
	}
	return out
}

// sums returns the sum of the caches without a failure for each kind.
func sums(all []Observation) []searchv1alpha1.ClusterCache {
	byKind := map[schema.GroupVersionKind]*Observation{}
	clusters := map[schema.GroupVersionKind]int32{}
	var kinds []schema.GroupVersionKind
	for _, o := range all {
		if o.Failure != "" {
			continue
		}
		sum := byKind[o.Kind]
		if sum == nil {
			sum = &Observation{Source: Source{Kind: o.Kind}}
			byKind[o.Kind] = sum
			kinds = append(kinds, o.Kind)
		}
		clusters[o.Kind]++
		sum.Objects += o.Objects
		if o.Since.After(sum.Since) {
			sum.Since = o.Since
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return compareSources(Source{Kind: a}, Source{Kind: b}) })
	out := make([]searchv1alpha1.ClusterCache, 0, maxEntries)
	for _, kind := range kinds[:min(len(kinds), maxEntries)] {
		sum := entry(*byKind[kind])
		sum.Clusters = clusters[kind]
		out = append(out, sum)
	}
	return out
}

func readyCondition(all []Observation) metav1.Condition {
	c := metav1.Condition{Type: searchv1alpha1.RegistryReady, Status: metav1.ConditionTrue, Reason: searchv1alpha1.ReasonCached, Message: "all objects are cached"}
	failing := failing(all, func(Observation) bool { return true })
	switch {
	case len(all) == 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, searchv1alpha1.ReasonNoCluster, "no cluster is selected, or no kind"
	case len(failing) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, searchv1alpha1.ReasonCaching, message(failing)
	}
	return c
}

func degradedCondition(all []Observation, store string) metav1.Condition {
	c := metav1.Condition{Type: searchv1alpha1.RegistryDegraded, Status: metav1.ConditionFalse, Reason: searchv1alpha1.ReasonNotDegraded, Message: "everything that is selected can be cached"}
	served := map[schema.GroupVersionKind]bool{}
	for _, o := range all {
		served[o.Kind] = served[o.Kind] || o.Failure != FailureUnknownKind
	}
	unknown := failing(all, func(o Observation) bool { return !served[o.Kind] })
	undiscovered := failing(all, func(o Observation) bool { return o.Failure == FailureNotInControlPlane })
	failed := failing(all, func(o Observation) bool { return o.Failure != FailureListing && o.Failure != FailureUnknownKind })
	switch {
	case len(unknown) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, searchv1alpha1.ReasonUnknownKind, message(unknown)
	case len(undiscovered) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, searchv1alpha1.ReasonNotInControlPlane, message(undiscovered)
	case len(failed) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, searchv1alpha1.ReasonClusterFailed, message(failed)
	case store != "":
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, searchv1alpha1.ReasonBackendStoreFailed, "backend store: "+store
	}
	return c
}

// failing returns the caches with a failure that are selected.
func failing(all []Observation, selected func(Observation) bool) []Observation {
	var out []Observation
	for _, o := range all {
		if o.Failure != "" && selected(o) {
			out = append(out, o)
		}
	}
	return out
}

// message names the first failures and counts the others.
func message(failing []Observation) string {
	parts := make([]string, 0, maxNamed)
	for _, o := range failing[:min(len(failing), maxNamed)] {
		parts = append(parts, fmt.Sprintf("%s of cluster %s: %s", o.Kind.Kind, o.Cluster, o.Failure))
	}
	text := strings.Join(parts, "; ")
	if more := len(failing) - len(parts); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// WriteStatus reports whether a status is to be written instead of an earlier one: at once, unless it differs only in counts,
// or in texts, which members choose, and the earlier one was written less than a minute ago.
func WriteStatus(before, after *searchv1alpha1.ResourceRegistryStatus, sinceWritten time.Duration) bool {
	if equality.Semantic.DeepEqual(before, after) {
		return false
	}
	return sinceWritten >= countInterval || !slices.EqualFunc(before.Conditions, after.Conditions, sameCondition) || !slices.EqualFunc(before.Clusters, after.Clusters, sameEntry)
}

// sameCondition reports whether two conditions differ in their message at most.
func sameCondition(a, b metav1.Condition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.ObservedGeneration == b.ObservedGeneration
}

// sameEntry reports whether two entries differ in their count and the text of their failure at most.
func sameEntry(a, b searchv1alpha1.ClusterCache) bool {
	return a.Cluster == b.Cluster && a.Clusters == b.Clusters && a.APIVersion == b.APIVersion && a.Kind == b.Kind && (a.Failure == "") == (b.Failure == "")
}

// Listing reports whether objects of a registry are not listed completely yet, as after a start.
func Listing(status *searchv1alpha1.ResourceRegistryStatus) bool {
	return slices.ContainsFunc(status.Clusters, func(c searchv1alpha1.ClusterCache) bool { return c.Failure == FailureListing })
}
