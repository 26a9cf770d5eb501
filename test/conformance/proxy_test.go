package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmada-toolkit/karmada/pkg/domain/search"
)

// itemsLost marks cases in which the recorded pages leave out items of clusters that cache several namespaces. The pages
// here have them.
const itemsLost = "items-lost"

// proxyCase is one line of proxy.jsonl.
type proxyCase struct {
	Name      string        `json:"name"`
	Tags      []string      `json:"tags"`
	Operation string        `json:"operation"`
	Clusters  []proxyMember `json:"clusters"`
	Request   struct {
		Name            string `json:"name"`
		Namespace       string `json:"namespace"`
		ResourceVersion string `json:"resourceVersion"`
		LabelSelector   string `json:"labelSelector"`
		Limit           int64  `json:"limit"`
	} `json:"request"`
	Versions        map[string]string          `json:"versions"`
	ResourceVersion string                     `json:"resourceVersion"`
	Continue        string                     `json:"continue"`
	Cluster         string                     `json:"cluster"`
	Object          *unstructured.Unstructured `json:"object"`
	Expect          json.RawMessage            `json:"expect"`
}

// proxyMember is a cluster whose ConfigMaps the proxy has.
type proxyMember struct {
	Name             string                      `json:"name"`
	ResourceVersion  string                      `json:"resourceVersion"`
	Items            []unstructured.Unstructured `json:"items"`
	CachedNamespaces []string                    `json:"cachedNamespaces"`
	NotCached        bool                        `json:"notCached"`
	ListError        string                      `json:"listError"`
}

// proxyPage is a page of a list. The number of remaining items is left out of the comparison.
type proxyPage struct {
	Kind            string   `json:"kind"`
	Items           []string `json:"items"`
	ResourceVersion string   `json:"resourceVersion"`
	Continue        string   `json:"continue"`
	Error           string   `json:"error"`
}

func TestProxy(t *testing.T) {
	replayLines(t, "proxy", func(t *testing.T, line []byte) (string, error) {
		var c proxyCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		switch c.Operation {
		case "list":
			return c.Name, c.list()
		case "get":
			return c.Name, c.get()
		case "encodeResourceVersion":
			return c.Name, c.same(map[string]any{"resourceVersion": search.NewVersions(c.Versions).Encode()})
		case "prepareList":
			return c.Name, c.prepare()
		case "recover":
			changed, _ := search.Recover(c.Object, c.Cluster)
			return c.Name, c.same(map[string]any{"changed": changed, "object": c.Object})
		default:
			return c.Name, fmt.Errorf("unknown operation %q", c.Operation)
		}
	})
}

// same compares a result with all that is expected.
func (c *proxyCase) same(result any) error {
	data, err := json.Marshal(result)
	if err != nil {
		return err
	}
	var got, want any
	if err := errors.Join(json.Unmarshal(data, &got), json.Unmarshal(c.Expect, &want)); err != nil {
		return err
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return errors.New(diff)
	}
	return nil
}

// prepare compares what a list begins with. What the first cluster is asked for is recorded for pages only.
func (c *proxyCase) prepare() error {
	from := search.Request{ResourceVersion: c.ResourceVersion, Continue: c.Continue}.Start()
	got := map[string]any{
		"startCluster": from.Cluster, "memberContinue": from.Token, "versions": from.Versions.Map(), "zero": from.Versions.Zero,
	}
	if from.Cluster != "" {
		got["memberResourceVersion"] = from.First().ResourceVersion
	}
	return c.same(got)
}

// get compares an object, or why there is none. A list of all clusters finds the object.
func (c *proxyCase) get() error {
	var want struct {
		Object      *unstructured.Unstructured `json:"object"`
		Code        int32                      `json:"code"`
		Error       string                     `json:"error"`
		AmbiguousIn []string                   `json:"ambiguousIn"`
	}
	if err := json.Unmarshal(c.Expect, &want); err != nil {
		return err
	}
	resource := schema.GroupResource{Resource: "configmaps"}
	var found []search.Located[*unstructured.Unstructured]
	for i := range c.Clusters {
		if o := c.Clusters[i].object(c.Request.Namespace, c.Request.Name); o != nil {
			found = append(found, search.Located[*unstructured.Unstructured]{Cluster: c.Clusters[i].Name, Object: o})
		}
	}
	got, err := search.One(resource, c.Request.Name, found)
	if err != nil {
		var status apierrors.APIStatus
		if !errors.As(err, &status) || status.Status().Code != want.Code {
			return fmt.Errorf("want code %d, got %w", want.Code, err)
		}
		slices.Sort(want.AmbiguousIn)
		text := strings.Replace(want.Error, "<clusters>", strings.Join(want.AmbiguousIn, ", "), 1)
		if !strings.HasPrefix(err.Error(), text) {
			return fmt.Errorf("want %q, got %w", text, err)
		}
		return nil
	}
	object := got.Object.DeepCopy()
	search.Annotate(object, got.Cluster)
	object.SetResourceVersion(search.Versions{}.With(got.Cluster, object.GetResourceVersion()).Encode())
	if diff := cmp.Diff(want.Object, object); diff != "" {
		return errors.New(diff)
	}
	return nil
}

// list compares a list and its further pages.
func (c *proxyCase) list() error {
	var want struct {
		Pages []proxyPage `json:"pages"`
	}
	if err := json.Unmarshal(c.Expect, &want); err != nil {
		return err
	}
	got := c.pages()
	if slices.Contains(c.Tags, itemsLost) {
		return c.complete(want.Pages, got)
	}
	if diff := cmp.Diff(want.Pages, got); diff != "" {
		return errors.New(diff)
	}
	return nil
}

// pages returns the list and its further pages, up to the first error, which is the text of the last page.
func (c *proxyCase) pages() []proxyPage {
	var pages []proxyPage
	for token := ""; ; {
		page, err := c.page(token)
		if err != nil {
			return append(pages, proxyPage{Error: err.Error()})
		}
		pages = append(pages, *page)
		if page.Continue == "" {
			return pages
		}
		if len(pages) > 1000 {
			return append(pages, proxyPage{Error: "the list does not end"})
		}
		token = page.Continue
	}
}

func (c *proxyCase) page(token string) (*proxyPage, error) {
	members, names := map[string]*proxyMember{}, []string{}
	for i := range c.Clusters {
		members[c.Clusters[i].Name], names = &c.Clusters[i], append(names, c.Clusters[i].Name)
	}
	ask := func(q search.Query) (*search.Page[string], error) { return members[q.Cluster].list(c, q) }
	request := search.Request{ResourceVersion: c.Request.ResourceVersion, Continue: token, Limit: c.Request.Limit}
	merged, err := search.List(names, request, ask)
	if err != nil {
		return nil, err
	}
	for _, cluster := range merged.Unknown {
		page, err := ask(search.Query{Cluster: cluster, Limit: 1})
		switch {
		case apierrors.IsNotFound(err), err == nil && page == nil:
		case err != nil:
			return nil, err
		default:
			merged.With(cluster, page.ResourceVersion)
		}
	}
	page := &proxyPage{Kind: "List", Items: append([]string{}, merged.Items...), ResourceVersion: merged.Versions.Encode()}
	if merged.First != "" {
		page.Kind = "ConfigMapList"
	}
	if merged.Next != nil {
		page.Continue = merged.Next.Encode()
	}
	return page, nil
}

// complete compares pages that leave out items: what they have is there, in their order, and every cluster's items are there
// once.
func (c *proxyCase) complete(want, got []proxyPage) error {
	var wanted, items, all []string
	for _, p := range want {
		wanted = append(wanted, p.Items...)
	}
	for _, p := range got {
		items = append(items, p.Items...)
	}
	clusters := slices.Clone(c.Clusters)
	slices.SortFunc(clusters, func(a, b proxyMember) int { return strings.Compare(a.Name, b.Name) })
	for i := range clusters {
		page, err := clusters[i].list(c, search.Query{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		if page != nil {
			all = append(all, page.Items...)
		}
	}
	if diff := cmp.Diff(all, items); diff != "" {
		return errors.New(diff)
	}
	for _, item := range items {
		if len(wanted) > 0 && wanted[0] == item {
			wanted = wanted[1:]
		}
	}
	if len(wanted) > 0 {
		return fmt.Errorf("not in the recorded order: %v", wanted)
	}
	first, last := got[0].ResourceVersion, want[0].ResourceVersion
	if first != last {
		return fmt.Errorf("version: want %s, got %s", last, first)
	}
	return nil
}

// list answers as a member behind the filter of namespaces: from the cache for the version "0" without limit and token, else
// from the member's API, in pages of exactly the limit.
func (m *proxyMember) list(c *proxyCase, q search.Query) (*search.Page[string], error) {
	if m.NotCached {
		return nil, nil
	}
	if m.ListError == "404" {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "")
	}
	cached := q.ResourceVersion == "0" && q.Limit == 0 && q.Continue == ""
	if m.ListError != "" && !cached {
		return nil, errors.New(m.ListError)
	}
	selector, err := labels.Parse(c.Request.LabelSelector)
	if err != nil {
		return nil, err
	}
	asked, known := m.asked(c.Request.Namespace)
	page := &search.Page[string]{ResourceVersion: m.ResourceVersion}
	if !known && !cached {
		page.ResourceVersion = ""
	}
	offset, _ := strconv.Atoi(strings.TrimPrefix(q.Continue, "t"))
	n := 0
	for i := range m.Items {
		o := &m.Items[i]
		if !known || asked != "" && o.GetNamespace() != asked || !selector.Matches(labels.Set(o.GetLabels())) {
			continue
		}
		n++
		if n <= offset {
			continue
		}
		if q.Limit > 0 && int64(n-offset) > q.Limit {
			page.Continue = fmt.Sprintf("t%d", int64(offset)+q.Limit)
			break
		}
		if m.caches(o.GetNamespace()) {
			page.Items = append(page.Items, fmt.Sprintf("%s/%s/%s@%s", m.Name, o.GetNamespace(), o.GetName(), o.GetResourceVersion()))
		}
	}
	return page, nil
}

// asked returns the namespace that the member is asked for, and whether it is asked at all.
func (m *proxyMember) asked(namespace string) (string, bool) {
	switch {
	case m.CachedNamespaces == nil:
		return namespace, true
	case namespace != metav1.NamespaceAll:
		return namespace, m.caches(namespace)
	case len(m.CachedNamespaces) == 1:
		return m.CachedNamespaces[0], true
	default:
		return metav1.NamespaceAll, true
	}
}

func (m *proxyMember) caches(namespace string) bool {
	return m.CachedNamespaces == nil || slices.Contains(m.CachedNamespaces, namespace)
}

func (m *proxyMember) object(namespace, name string) *unstructured.Unstructured {
	if m.NotCached || !m.caches(namespace) {
		return nil
	}
	for i := range m.Items {
		if m.Items[i].GetNamespace() == namespace && m.Items[i].GetName() == name {
			return &m.Items[i]
		}
	}
	return nil
}
