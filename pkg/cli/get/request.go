package get

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/internal/kube"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// acceptTable requests a table that the server formats.
const acceptTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"

// chunk is the number of objects in a page of a list.
const chunk = "500"

// maxList is the maximal size of all pages of a list, in bytes.
const maxList = 512 << 20

// selection is the query for every type.
type selection struct {
	namespace     string
	allNamespaces bool
	labels        string
	fields        string
	// tables requests tables instead of objects; with objects in their rows if
	// fullRows.
	tables, fullRows bool
	// wide reports whether tables show all columns.
	wide bool
	// clusters are those whose objects are wanted of a server that answers for several; none is all.
	clusters []string
}

// part are the objects of one type that a server has.
type part struct {
	mapping *meta.RESTMapping
	table   *metav1.Table
	objects []unstructured.Unstructured
	// requested are the requested names, missing those that the server does not have.
	requested, missing []string
	// namespaceMissing reports whether the server does not have the namespace in which
	// names are missing.
	namespaceMissing bool
	// resourceVersion is that of the list.
	resourceVersion string
	// merged are set if a server answered for several clusters: which are wanted, and that of each row.
	merged       bool
	wanted       []string
	rowsClusters []string
}

// empty reports whether the server has no object of the type.
func (p *part) empty() bool { return p.size() == 0 }

func (p *part) size() int {
	if p.table == nil {
		return len(p.objects)
	}
	return len(p.objects) + len(p.table.Rows)
}

// clusterOf returns the cluster of a row of the table: that of the server, unless it answered for several.
func (p *part) clusterOf(row int, server string) string {
	switch {
	case row < len(p.rowsClusters):
		return p.rowsClusters[row]
	case p.merged && p.table == nil && row < len(p.objects):
		return cachedFrom(&p.objects[row])
	}
	return server
}

// server is the control plane or a member.
type server struct {
	rest rest.Interface
	selection
	// counts of the control plane's bindings.
	counts *bindingCounts
	// merged reports whether it answers for several clusters.
	merged bool
}

func newServer(config *rest.Config, s selection) (*server, error) {
	config = rest.CopyConfig(config)
	config.ContentConfig = resource.UnstructuredPlusDefaultContentConfig()
	config.GroupVersion = &schema.GroupVersion{}
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	return &server{rest: client, selection: s}, nil
}

// get returns the objects of a type: all, or those that the query names. With an error it
// returns the objects before.
func (s *server) get(ctx context.Context, q query) (*part, error) {
	p := s.newPart(q)
	if s.merged && len(q.names) > 0 {
		return p, s.listNames(ctx, q, p)
	}
	if len(q.names) == 0 {
		if err := s.list(ctx, q, p); err != nil {
			return p, err
		}
		return p, s.decorate(ctx, p)
	}
	for _, name := range q.names {
		p.requested = append(p.requested, name)
		body, err := kube.Body(ctx, s.request(q, name))
		switch {
		case isMissing(err):
			if len(p.missing) == 0 {
				p.namespaceMissing = s.namespaceMissing(ctx, q)
			}
			p.missing = append(p.missing, name)
		case err != nil:
			p.requested = p.requested[:len(p.requested)-1]
			return p, typed(err)
		default:
			if err := p.add(body); err != nil {
				return p, err
			}
		}
	}
	return p, s.decorate(ctx, p)
}

func (s *server) newPart(q query) *part {
	return &part{mapping: q.mapping, merged: s.merged, wanted: s.clusters}
}

// listNames gets the objects of several clusters that have the names of a query.
func (s *server) listNames(ctx context.Context, q query, p *part) error {
	named := *s
	for _, name := range q.names {
		before := p.size()
		named.fields = "metadata.name=" + name
		if err := named.list(ctx, query{target: target{arg: q.arg}, mapping: q.mapping}, p); err != nil {
			return err
		}
		p.requested = append(p.requested, name)
		if p.size() == before {
			p.missing = append(p.missing, name)
		}
	}
	return nil
}

// namespaceMissing reports whether the namespace of a query does not exist. The
// namespace default always does.
func (s *server) namespaceMissing(ctx context.Context, q query) bool {
	if q.mapping.Scope.Name() != meta.RESTScopeNameNamespace || s.namespace == metav1.NamespaceDefault {
		return false
	}
	_, err := kube.Body(ctx, s.rest.Get().AbsPath("/api/v1/namespaces", s.namespace))
	return isMissing(err)
}

// list gets everything of a type in chunks, or in one piece where the chunks
// expire.
func (s *server) list(ctx context.Context, q query, p *part) error {
	limit, next := chunk, ""
	for size := 0; ; {
		body, err := kube.Body(ctx, s.listRequest(q, limit, next))
		if smaller := smallerPage(limit); access.IsLimit(err) && smaller != "" {
			limit = smaller
			continue
		}
		if apierrors.IsResourceExpired(err) && next != "" {
			p.table, p.objects = nil, nil
			limit, next = "", ""
			continue
		}
		if apierrors.HasStatusCause(err, searchv1alpha1.CauseNotCached) {
			return p.notCached()
		}
		if err != nil {
			return typed(err)
		}
		var list struct {
			Metadata metav1.ListMeta `json:"metadata"`
		}
		if err := json.Unmarshal(body, &list); err != nil {
			return fmt.Errorf("reading the list of %s: %w", q.arg, err)
		}
		if size += len(body); size > maxList {
			return fmt.Errorf("the list of %s is larger than %d MiB; select less with -l or -n", q.arg, maxList>>20)
		}
		if err := p.add(body); err != nil {
			return err
		}
		p.resourceVersion = list.Metadata.ResourceVersion
		if !p.cached() {
			return p.notCached()
		}
		if next = list.Metadata.Continue; next == "" {
			return nil
		}
	}
}

// smallerPage returns the limit to try after a page that was too large, or "" if
// there is none.
func smallerPage(limit string) string {
	n, err := strconv.Atoi(limit)
	if err != nil || n <= 1 {
		return ""
	}
	return strconv.Itoa(max(1, n/8))
}

func (s *server) listRequest(q query, limit, next string) *rest.Request {
	r := s.request(q, "")
	for name, value := range map[string]string{"labelSelector": s.labels, "fieldSelector": s.fields, "limit": limit, "continue": next} {
		if value != "" {
			r.Param(name, value)
		}
	}
	return r
}

// request returns the request for a type, or for one object of it.
func (s *server) request(q query, name string) *rest.Request {
	gvr := q.mapping.Resource
	path := []string{"/apis", gvr.Group, gvr.Version}
	if gvr.Group == "" {
		path = []string{"/api", gvr.Version}
	}
	if q.mapping.Scope.Name() == meta.RESTScopeNameNamespace && !s.allNamespaces {
		path = append(path, "namespaces", s.namespace)
	}
	path = append(path, gvr.Resource)
	if name != "" {
		path = append(path, name)
	}
	r := s.rest.Get().AbsPath(path...)
	if s.tables {
		r.SetHeader("Accept", acceptTable)
		if _, decorated := s.decorated(gvr.GroupResource()); s.fullRows || decorated {
			r.Param("includeObject", "Object")
		}
	}
	return r
}

// add adds a table, a list or an object.
func (p *part) add(body []byte) error {
	var head struct {
		metav1.TypeMeta `json:",inline"`
	}
	if err := json.Unmarshal(body, &head); err != nil {
		return fmt.Errorf("reading %s: %w", p.mapping.Resource.Resource, err)
	}
	if head.Kind == "Table" {
		return p.addTable(body)
	}
	if !strings.HasSuffix(head.Kind, "List") {
		var u unstructured.Unstructured
		if err := u.UnmarshalJSON(body); err != nil {
			return fmt.Errorf("reading %s: %w", p.mapping.Resource.Resource, err)
		}
		if err := p.check(&u); err != nil {
			return err
		}
		if p.wants(cachedFrom(&u)) {
			p.objects = append(p.objects, u)
		}
		return nil
	}
	var list unstructured.UnstructuredList
	if err := list.UnmarshalJSON(body); err != nil {
		return fmt.Errorf("reading the list of %s: %w", p.mapping.Resource.Resource, err)
	}
	for i := range list.Items {
		if item := &list.Items[i]; item.GetKind() == "" {
			item.SetGroupVersionKind(p.mapping.GroupVersionKind)
		}
		if err := p.check(&list.Items[i]); err != nil {
			return err
		}
		if p.wants(cachedFrom(&list.Items[i])) {
			p.objects = append(p.objects, list.Items[i])
		}
	}
	return nil
}

// check returns an error unless an object has the type that was requested. The client of a member compares namespaces and
// names.
func (p *part) check(obj *unstructured.Unstructured) error {
	if err := access.Requested(p.mapping.GroupVersionKind, "", "").Check(access.IdentityOf(obj)); err != nil {
		return fmt.Errorf("reading %s: %w", p.mapping.Resource.Resource, err)
	}
	return nil
}

func (p *part) addTable(body []byte) error {
	var table metav1.Table
	if err := json.Unmarshal(body, &table); err != nil {
		return fmt.Errorf("reading the table of %s: %w", p.mapping.Resource.Resource, err)
	}
	if p.merged {
		p.takeClusters(&table)
	}
	if p.table == nil {
		p.table = &table
		return nil
	}
	if len(p.table.ColumnDefinitions) == 0 {
		p.table.ColumnDefinitions = table.ColumnDefinitions
	}
	p.table.Rows = append(p.table.Rows, table.Rows...)
	return nil
}
