package search

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/aggregated/proxy"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/cache"
	domain "github.com/karmada-toolkit/karmada/pkg/domain/search"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

const (
	// consistentAtOnce bounds the number of members that are requested at the same time.
	consistentAtOnce = 64
	// consistentTimeout is how long one member is waited for.
	consistentTimeout = 10 * time.Second
	// maxConsistent is the size of the answers of all members to one request, in bytes: all are in memory until they are merged.
	maxConsistent = maxAnswers / 4
	// leastConsistent is the part of it that each of many members has at least, in bytes.
	leastConsistent = 256 << 10
	// consistentPage is the number of objects in a page of the list of a member. It is divided by consistentFactor when the page
	// exceeds the limits of an answer.
	consistentPage, consistentFactor = 500, 8
)

// wantsConsistent reports whether a request is to be answered by the members at once.
func wantsConsistent(values url.Values, verb string) (bool, error) {
	text := values.Get("consistent")
	if text == "" {
		return false, nil
	}
	out, err := strconv.ParseBool(text)
	switch {
	case err != nil:
		return false, apierrors.NewBadRequest(fmt.Sprintf("the parameter consistent is %q: use true or false", text))
	case out && verb == "watch":
		return false, apierrors.NewBadRequest("a watch is always answered from the caches: leave out the parameter consistent")
	case out && values.Get("continue") != "":
		return false, apierrors.NewBadRequest("a list that is read from the members is whole: leave out the parameter continue")
	}
	return out, nil
}

// fetch is a get or list that the members answer at once, in the name of the requester.
type fetch struct {
	members   *proxy.Members
	cluster   func(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error)
	in        proxy.Inner
	query     url.Values
	info      *genericrequest.RequestInfo
	requester user.Info
	// share is how much the objects of one member may take, in bytes: no member takes that of another.
	share int64
	// lease takes the memory of all answers.
	lease *lease
}

// object is an object of a cluster in JSON.
type object struct {
	cluster, namespace, name string
	data                     []byte
}

// answered is what one member has.
type answered struct {
	objects []object
	version string
	// missing is why the objects are missing; empty if they are not.
	missing string
	// busy is the error that the request is to be repeated later, if it is.
	busy error
}

// all asks all sources at once.
func (f *fetch) all(ctx context.Context, sources []cache.Source) []answered {
	out := make([]answered, len(sources))
	var group errgroup.Group
	group.SetLimit(consistentAtOnce)
	for i, source := range sources {
		group.Go(func() error {
			var err error
			if out[i], err = f.one(ctx, source); err != nil {
				out[i] = answered{missing: plaintext.WithoutURLs(err.Error())}
				if apierrors.IsTooManyRequests(err) {
					out[i].busy = err
				}
			}
			return nil
		})
	}
	_ = group.Wait() // failures are in the answers
	return out
}

// one reads the objects of one member, page by page.
func (f *fetch) one(ctx context.Context, source cache.Source) (answered, error) {
	ctx, cancel := context.WithTimeout(ctx, consistentTimeout)
	defer cancel()
	cluster, err := f.cluster(ctx, source.Cluster)
	if err != nil {
		return answered{}, err
	}
	var out answered
	var size int64
	for limit, next := consistentPage, ""; ; {
		objects, page, err := f.page(ctx, cluster, source, limit, next)
		if access.IsLimit(err) && limit > 1 && f.info.Verb != "get" {
			limit = max(1, limit/consistentFactor)
			continue
		}
		if err != nil {
			return answered{}, err
		}
		var more int64
		for _, o := range objects {
			more += int64(len(o.data))
		}
		if size += more; size > f.share {
			return answered{}, fmt.Errorf("its objects take more than its part of an answer, %d KiB: ask for less", f.share>>10)
		}
		if err := f.lease.grow(more); err != nil {
			return answered{}, err
		}
		out.objects, out.version = append(out.objects, objects...), page.ResourceVersion
		if page.Continue == "" || len(objects) == 0 && page.Continue == next {
			break
		}
		next = page.Continue
	}
	slices.SortFunc(out.objects, func(a, b object) int {
		return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
	})
	return out, nil
}

// page reads one page of the list of a member, or the object.
func (f *fetch) page(ctx context.Context, cluster *clusterv1alpha1.Cluster, source cache.Source, limit int, next string) ([]object, metav1.ListMeta, error) {
	in := f.in
	if f.info.Verb != "get" {
		query := maps.Clone(f.query)
		query.Set("limit", strconv.Itoa(limit))
		if next != "" {
			query.Set("continue", next)
		}
		in = in.WithQuery(query)
	}
	answer, err := f.members.Get(ctx, cluster, in, http.Header{"Accept": {"application/json"}}, f.requester)
	if err != nil {
		return nil, metav1.ListMeta{}, err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read, or given up
	switch {
	case answer.StatusCode == http.StatusNotFound && f.info.Verb == "get":
		return nil, metav1.ListMeta{}, nil
	case answer.StatusCode != http.StatusOK:
		return nil, metav1.ListMeta{}, fmt.Errorf("it answered %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, metav1.ListMeta{}, err
	}
	return f.read(body, source)
}

// read returns the objects of an answer that a registry selects.
func (f *fetch) read(body []byte, source cache.Source) ([]object, metav1.ListMeta, error) {
	var in struct {
		Metadata metav1.ListMeta   `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}
	if f.info.Verb == "get" {
		in.Items = []json.RawMessage{body}
	} else if err := json.Unmarshal(body, &in); err != nil {
		return nil, in.Metadata, errors.New("its answer is no list")
	}
	out := make([]object, 0, len(in.Items))
	for _, item := range in.Items {
		o, ok, err := f.object(item, source)
		if err != nil {
			return nil, in.Metadata, err
		}
		if ok {
			out = append(out, o)
		}
	}
	return out, in.Metadata, nil
}

// object reads an object as the caches keep it: with its kind, which items of lists leave out, and its cluster, without
// managedFields. It reports whether a registry selects its namespace. One that was not asked for is an error.
func (f *fetch) object(data []byte, source cache.Source) (object, bool, error) {
	var u unstructured.Unstructured
	if err := json.Unmarshal(data, &u.Object); err != nil || u.Object == nil {
		return object{}, false, errors.New("its answer has something that is no object")
	}
	u.SetGroupVersionKind(source.Kind)
	namespace := namespaceOf(f.info)
	if u.GetName() == "" || namespace != "" && u.GetNamespace() != namespace || f.info.Name != "" && u.GetName() != f.info.Name {
		return object{}, false, errors.New("its answer has an object that was not requested")
	}
	if u.GetNamespace() != "" && !source.Namespaces.Has(u.GetNamespace()) {
		return object{}, false, nil
	}
	if err := access.CheckQuantities(&u); err != nil {
		return object{}, false, fmt.Errorf("%s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	u.SetManagedFields(nil)
	domain.Annotate(&u, source.Cluster)
	encoded, err := u.MarshalJSON()
	return object{cluster: source.Cluster, namespace: u.GetNamespace(), name: u.GetName(), data: encoded}, true, err
}

// consistent answers a get or list by what the members have now.
func (g *global) consistent(w http.ResponseWriter, req *http.Request, in proxy.Inner, r *reading, info *genericrequest.RequestInfo, requester user.Info, responder rest.Responder) {
	query := in.Query(req)
	for _, name := range []string{"consistent", "strict", "limit", "continue", "resourceVersion", "resourceVersionMatch", "includeObject"} {
		query.Del(name)
	}
	sources, missing := g.cached.caches.Sources(r.query.Resource, r.kind)
	f := &fetch{
		members: g.members, cluster: g.cluster, in: in.WithQuery(query), query: query, info: info, requester: requester,
		share: max(leastConsistent, maxConsistent/int64(max(1, len(sources)))), lease: g.cached.newLease(req),
	}
	defer f.lease.free()
	versions := map[string]string{}
	var objects []object
	for i, a := range f.all(req.Context(), sources) {
		if a.busy != nil {
			responder.Error(a.busy)
			return
		}
		if a.missing != "" {
			missing = append(missing, cache.Missing{Cluster: sources[i].Cluster, Reason: a.missing})
			continue
		}
		if a.version != "" {
			versions[sources[i].Cluster] = a.version
		}
		objects = append(objects, a.objects...)
	}
	if len(missing) > 0 && (r.strict || info.Verb == "get" && len(objects) == 0) {
		responder.Error(apierrors.NewServiceUnavailable(fmt.Sprintf("cluster %s: %s", missing[0].Cluster, missing[0].Reason)))
		return
	}
	for _, m := range missing {
		warning.AddWarning(req.Context(), "", fmt.Sprintf("cluster %s: %s", m.Cluster, m.Reason))
	}
	if info.Verb == "get" {
		found := make([]domain.Located[object], 0, len(objects))
		for _, o := range objects {
			found = append(found, domain.Located[object]{Cluster: o.cluster, Object: o})
		}
		one, err := oneOf(r.query.Resource.GroupResource(), info.Name, found)
		if err != nil {
			responder.Error(err)
			return
		}
		r.writeOne(w, one.cluster, one.data, responder)
		return
	}
	r.writeList(w, domain.NewVersions(versions), "", len(objects), func(i int) (string, []byte, error) {
		return objects[i].cluster, objects[i].data, nil
	}, responder)
}
