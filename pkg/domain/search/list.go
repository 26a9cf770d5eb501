package search

import (
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Request is a list of several clusters.
type Request struct {
	// ResourceVersion is that of the request, as Versions.Encode writes it. One that is not valid counts as "".
	ResourceVersion string
	// Continue is the token of a page: "" for the first. One that is not valid counts as the first page without a version.
	Continue string
	// Limit is the number of items of a page: 0 for all.
	Limit int64
}

// Start returns where the list begins.
func (r Request) Start() Continue {
	if r.Continue != "" {
		from, _ := DecodeContinue(r.Continue)
		return from
	}
	versions, _ := DecodeVersions(r.ResourceVersion)
	return Continue{Versions: versions}
}

// Query is what one cluster is asked for.
type Query struct {
	Cluster         string
	ResourceVersion string
	Continue        string
	// Limit is the number of items at most: 0 for all.
	Limit int64
}

// First returns what the first cluster of a page is asked for: a token of a cluster has a version already.
func (c Continue) First() Query {
	q := Query{Cluster: c.Cluster, Continue: c.Token}
	if q.Continue == "" {
		q.ResourceVersion = c.Versions.Get(c.Cluster)
	}
	return q
}

// Page is the answer of one cluster.
type Page[T any] struct {
	Items           []T
	ResourceVersion string
	// Continue is the token of the next page: "" if this is the last.
	Continue string
}

// Merged is one page of the merged list.
type Merged[T any] struct {
	Items    []T
	Versions Versions
	// First is the cluster that answered first: "" if none did.
	First string
	// Next is where the next page begins: nil if this is the last. Its versions are those of the page.
	Next *Continue
	// Unknown names the clusters that were not asked and have no version. Their versions belong to the page too, so that a
	// watch from it misses nothing; With adds them.
	Unknown []string
}

// With adds the version of a cluster that was not asked.
func (m *Merged[T]) With(cluster, version string) {
	if version == "" {
		return
	}
	m.Versions = m.Versions.With(cluster, version)
	if m.Next != nil {
		m.Next.Versions = m.Versions
	}
}

// List merges the lists of clusters into one page: clusters in ascending order of their names, the items of each in its
// order. ask returns nil for a cluster that does not have the resource; an error NotFound counts as an empty list without a
// version, any other error ends the list. A cluster that returns fewer items than the limit and a token is asked again.
func List[T any](clusters []string, request Request, ask func(Query) (*Page[T], error)) (*Merged[T], error) {
	from := request.Start()
	m := &Merged[T]{Versions: from.Versions}
	clusters = slices.Sorted(slices.Values(clusters))
	rest := request.Limit
	for i, cluster := range clusters {
		if from.before(cluster) {
			continue
		}
		q := Query{Cluster: cluster, ResourceVersion: from.Versions.Get(cluster)}
		if cluster == from.Cluster {
			q = from.First()
		}
		token, err := m.add(q, request.Limit, &rest, ask)
		if err != nil {
			return nil, err
		}
		if request.Limit == 0 || rest > 0 {
			continue
		}
		if token != "" {
			m.Next = &Continue{Versions: m.Versions, Cluster: cluster, Token: token}
		} else if i+1 < len(clusters) {
			m.Next = &Continue{Versions: m.Versions, Cluster: clusters[i+1]}
		}
		break
	}
	for _, cluster := range clusters {
		if !m.Versions.Has(cluster) {
			m.Unknown = append(m.Unknown, cluster)
		}
	}
	return m, nil
}

// add asks one cluster until its list ends or the page is full, and returns the token of what is left.
func (m *Merged[T]) add(q Query, limit int64, rest *int64, ask func(Query) (*Page[T], error)) (string, error) {
	for {
		q.Limit = *rest
		page, err := ask(q)
		if apierrors.IsNotFound(err) {
			page, err = &Page[T]{}, nil
		}
		if err != nil || page == nil {
			return "", err
		}
		if m.First == "" {
			m.First = q.Cluster
		}
		m.Items = append(m.Items, page.Items...)
		m.Versions = m.Versions.With(q.Cluster, page.ResourceVersion)
		if limit > 0 {
			*rest -= int64(len(page.Items))
		}
		if page.Continue == "" || limit > 0 && *rest <= 0 {
			return page.Continue, nil
		}
		q = Query{Cluster: q.Cluster, Continue: page.Continue}
	}
}
