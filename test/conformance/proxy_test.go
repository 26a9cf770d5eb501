package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/cache"
	"github.com/karmada-toolkit/karmada/pkg/domain/search"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
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

// proxyPage is a page of a list. Its token and the number of remaining items are left out of the comparison.
type proxyPage struct {
	Items           []string `json:"items"`
	ResourceVersion string   `json:"resourceVersion"`
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
			return c.Name, c.list(t)
		case "get":
			return c.Name, c.get()
		case "encodeResourceVersion":
			return c.Name, c.same(map[string]any{"resourceVersion": search.NewVersions(c.Versions).Encode()})
		case "prepareList":
			return c.Name, c.prepare()
		case "recover":
			return c.Name, c.recover()
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

// prepare compares what a list begins with. The request to the first cluster is left out: lists are answered from the caches.
func (c *proxyCase) prepare() error {
	var want map[string]any
	if err := json.Unmarshal(c.Expect, &want); err != nil {
		return err
	}
	delete(want, "memberResourceVersion")
	versions, _ := search.DecodeVersions(c.ResourceVersion)
	from := search.Continue{Versions: versions}
	if c.Continue != "" {
		from, _ = search.DecodeContinue(c.Continue)
	}
	of := map[string]any{}
	for _, cluster := range from.Versions.Clusters() {
		of[cluster] = from.Versions.Get(cluster)
	}
	got := map[string]any{
		"startCluster": from.Cluster, "memberContinue": from.Token, "versions": of, "zero": from.Versions.Zero,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return errors.New(diff)
	}
	return nil
}

// recover compares what a member gets of an object that was read from several. A version without an entry for the member is
// recorded as none; here it is an error. Annotations that become empty are left out here.
func (c *proxyCase) recover() error {
	var want struct {
		Changed bool                       `json:"changed"`
		Object  *unstructured.Unstructured `json:"object"`
	}
	if err := json.Unmarshal(c.Expect, &want); err != nil {
		return err
	}
	if len(want.Object.GetAnnotations()) == 0 {
		want.Object.SetAnnotations(nil)
	}
	sent, err := c.Object.MarshalJSON()
	if err != nil {
		return err
	}
	body, err := search.ToMember(search.FormatJSON, sent, c.Cluster)
	if unknown := new(search.UnknownVersionError); errors.As(err, &unknown) {
		if unknown.Cluster != c.Cluster || want.Object.GetResourceVersion() != "" {
			return err
		}
		return nil
	}
	if err != nil {
		return err
	}
	var got unstructured.Unstructured
	if err := got.UnmarshalJSON(body); err != nil {
		return err
	}
	if changed := !bytes.Equal(body, sent); changed != want.Changed {
		return fmt.Errorf("changed: want %t, got %t", want.Changed, changed)
	}
	if diff := cmp.Diff(want.Object, &got); diff != "" {
		return errors.New(diff)
	}
	return nil
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
	data, err := got.Object.MarshalJSON()
	if err != nil {
		return err
	}
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(search.FromMember(search.FormatJSON, data, got.Cluster)); err != nil {
		return err
	}
	if diff := cmp.Diff(want.Object, &object); diff != "" {
		return errors.New(diff)
	}
	return nil
}

// list compares a list and its further pages: all items in their order, and the versions of the clusters that have one. Here the
// pages are full, and a cluster that cannot be read is named as missing: its error is the recorded answer.
func (c *proxyCase) list(t *testing.T) error {
	t.Helper()
	var want struct {
		Pages []proxyPage `json:"pages"`
	}
	if err := json.Unmarshal(c.Expect, &want); err != nil {
		return err
	}
	items, result, err := c.items(c.caches(t))
	if err != nil {
		return err
	}
	var wanted []string
	for _, p := range want.Pages {
		if p.Error != "" {
			return c.missing(p.Error, result.Missing)
		}
		wanted = append(wanted, p.Items...)
	}
	if slices.Contains(c.Tags, itemsLost) {
		err = c.complete(wanted, items)
	} else if diff := cmp.Diff(wanted, items, cmpopts.EquateEmpty()); diff != "" {
		err = errors.New(diff)
	}
	return errors.Join(err, c.versions(want.Pages[0].ResourceVersion, result.Versions))
}

// items returns the items of all pages, with the first page and what is missing on any.
func (c *proxyCase) items(caches *cache.Caches) ([]string, cache.Result, error) {
	selector, err := labels.Parse(c.Request.LabelSelector)
	if err != nil {
		return nil, cache.Result{}, err
	}
	q := cache.Query{Kind: configMap, Resource: configMap.GroupVersion().WithResource("configmaps"), Namespace: c.Request.Namespace, Labels: selector, Limit: c.Request.Limit}
	var out []string
	var first cache.Result
	var missing []cache.Missing
	for n := 0; ; n++ {
		result, err := caches.List(q)
		if err != nil {
			return nil, first, err
		}
		if n == 0 {
			first = result
		}
		missing = append(missing, result.Missing...)
		if size := int64(len(result.Items)); size > q.Limit && q.Limit > 0 || size != q.Limit && result.Continue != "" {
			return nil, first, fmt.Errorf("page %d has %d items, limit %d", n, size, q.Limit)
		}
		for _, item := range result.Items {
			out = append(out, fmt.Sprintf("%s/%s/%s@%s", item.Cluster, item.Namespace, item.Name, item.Version))
		}
		if result.Continue == "" {
			first.Missing = missing
			return out, first, nil
		}
		q.Continue = result.Continue
	}
}

// missing compares the error of a list with the clusters that are missing.
func (c *proxyCase) missing(text string, missing []cache.Missing) error {
	for i := range c.Clusters {
		if c.Clusters[i].ListError == "404" {
			continue // it has no such resource, which is no error
		}
		failing := c.Clusters[i].ListError == text
		if named := slices.ContainsFunc(missing, func(m cache.Missing) bool { return m.Cluster == c.Clusters[i].Name }); named != failing {
			return fmt.Errorf("cluster %s is missing: want %t, got %+v", c.Clusters[i].Name, failing, missing)
		}
	}
	return nil
}

// versions compares the versions of the list. The recorded one keeps those of the request for clusters that do not exist, or do not
// cache the namespace, and an empty one for those that do not have the resource.
func (c *proxyCase) versions(recorded string, got map[string]string) error {
	decoded, _ := search.DecodeVersions(recorded)
	asked, _ := search.DecodeVersions(c.Request.ResourceVersion)
	want := map[string]string{}
	for i := range c.Clusters {
		m := &c.Clusters[i]
		if !m.NotCached && m.ListError == "" {
			want[m.Name] = m.ResourceVersion
			if version := decoded.Get(m.Name); version != "" && version != "0" && version != asked.Get(m.Name) {
				want[m.Name] = version
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return errors.New(diff)
	}
	return nil
}

// complete compares pages that leave out items: what they have is there, in their order, and every cluster's items are there
// once.
func (c *proxyCase) complete(wanted, items []string) error {
	var all []string
	clusters := slices.Clone(c.Clusters)
	slices.SortFunc(clusters, func(a, b proxyMember) int { return strings.Compare(a.Name, b.Name) })
	for i := range clusters {
		m := &clusters[i]
		for _, o := range m.Items {
			if !m.NotCached && m.caches(o.GetNamespace()) {
				all = append(all, fmt.Sprintf("%s/%s/%s@%s", m.Name, o.GetNamespace(), o.GetName(), o.GetResourceVersion()))
			}
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
	return nil
}

var configMap = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// caches returns caches of the members, once they are complete.
func (c *proxyCase) caches(t *testing.T) *cache.Caches {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(c.serve))
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(configMap, meta.RESTScopeNamespace)
	out := cache.New(cache.Deps{Members: func(_ context.Context, cluster *clusterv1alpha1.Cluster) (*access.Member, error) {
		return access.NewMember(cluster.Name, &rest.Config{Host: server.URL + "/" + cluster.Name, QPS: -1}, mapper)
	}})
	t.Cleanup(func() {
		out.End()
		server.CloseClientConnections()
		server.Close()
	})
	var registries []*searchv1alpha1.ResourceRegistry
	var clusters []*clusterv1alpha1.Cluster
	for i := range c.Clusters {
		m := &c.Clusters[i]
		clusters = append(clusters, &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: m.Name, UID: types.UID(m.Name)},
			Status:     clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}},
		})
		if !m.NotCached {
			registries = append(registries, m.registry())
		}
	}
	out.Follow(t.Context(), registries, clusters)
	accesstest.Eventually(t, func() error {
		if !out.Listed() {
			return fmt.Errorf("the caches are not complete: %+v", out.States())
		}
		return nil
	})
	return out
}

// registry returns what selects the ConfigMaps of the cluster.
func (m *proxyMember) registry() *searchv1alpha1.ResourceRegistry {
	out := &searchv1alpha1.ResourceRegistry{ObjectMeta: metav1.ObjectMeta{Name: m.Name}}
	out.Spec.TargetCluster.ClusterNames = []string{m.Name}
	namespaces := m.CachedNamespaces
	if namespaces == nil {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		out.Spec.ResourceSelectors = append(out.Spec.ResourceSelectors, searchv1alpha1.ResourceSelector{APIVersion: "v1", Kind: configMap.Kind, Namespace: namespace})
	}
	return out
}

// serve answers as the members: lists of ConfigMaps, and watches without changes. The path begins with the name of the member.
func (c *proxyCase) serve(w http.ResponseWriter, r *http.Request) {
	name, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	i := slices.IndexFunc(c.Clusters, func(m proxyMember) bool { return m.Name == name })
	if i < 0 || c.Clusters[i].ListError == "404" {
		http.NotFound(w, r)
		return
	}
	m := &c.Clusters[i]
	query := r.URL.Query()
	switch {
	case m.ListError != "":
		http.Error(w, m.ListError, http.StatusInternalServerError)
	case query.Get("sendInitialEvents") != "":
		http.Error(w, "sendInitialEvents is forbidden", http.StatusForbidden)
	case query.Get("watch") != "":
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	default:
		list := unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMapList"}}
		list.SetResourceVersion(m.ResourceVersion)
		namespace, _ := strings.CutSuffix(strings.TrimPrefix(path, "api/v1/namespaces/"), "/configmaps")
		for _, o := range m.Items {
			if path == "api/v1/configmaps" || o.GetNamespace() == namespace {
				list.Items = append(list.Items, o)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(&list)
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
