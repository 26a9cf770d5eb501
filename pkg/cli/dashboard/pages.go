package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/cli/planning"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
	"github.com/karmada-toolkit/karmada/pkg/insight/explain"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
	"github.com/karmada-toolkit/karmada/pkg/insight/status"
	"github.com/karmada-toolkit/karmada/pkg/insight/why"
	"github.com/karmada-toolkit/karmada/pkg/operate/capacity"
)

// pages computes the pages.
type pages struct {
	program string
	// namespace is that of the kubeconfig.
	namespace string
	live      *live
	reader    *snapshot.Reader
	source    *planning.Source
	settings  planning.Settings
	templates map[string]*template.Template
}

// view is what a template shows. Its fields beside page and code are for all pages.
type view struct {
	page  string
	code  int
	Title string
	// Text is the error, and Next what to do.
	Text, Next string
	// Query is that of the page.
	Query string
	// Topic limits the updates that the page gets: see topicOf.
	Topic string
	// Live reports whether the page is read again for each update.
	Live bool
	// Lost is why what is shown is not current.
	Lost, LostSince string
	Gaps            []string
	Healthy         bool
	Problems        int
	Data            any
}

// frame fills in what is shown beside the page.
func (v *view) frame(s *state, now time.Time) {
	v.Gaps, v.Healthy, v.Problems = s.report.Gaps, s.report.Healthy, s.report.ProblemCount
	if s.lost != nil {
		err := s.lost
		if request := (&url.Error{}); errors.As(err, &request) {
			err = request.Err // the rest is an address
		}
		v.Lost, v.LostSince = why.Line(err.Error()), duration.HumanDuration(now.Sub(s.lostSince))
	}
}

// failed returns the page of an error.
func failed(err error) *view {
	v := &view{page: "failed", Title: "This cannot be shown", Text: why.Line(err.Error()), code: http.StatusInternalServerError, Next: "Load the page again. If that does not help, run the command that the page is for."}
	var bad *badRequest
	switch {
	case errors.As(err, &bad):
		v.code, v.Title, v.Next = http.StatusBadRequest, "The request cannot be understood", bad.next
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		v.code, v.Title, v.Next = http.StatusNotFound, "There is no such object", "It may have been deleted. Go back to the overview."
	case apierrors.IsForbidden(err):
		v.code, v.Title, v.Next = http.StatusForbidden, "You may not read this", "Ask for the ClusterRole karmada-insight."
	case errors.Is(err, context.DeadlineExceeded):
		v.code, v.Title = http.StatusGatewayTimeout, "The control plane did not answer in time"
	}
	v.Live = v.code >= http.StatusInternalServerError // it goes on when the control plane answers again
	return v
}

// badRequest is an error in what a browser sent.
type badRequest struct{ text, next string }

// Error implements error.
func (e *badRequest) Error() string { return e.text }

// topic is what a page shows. The zero value is all.
type topic struct{ binding *client.ObjectKey }

// ofNoBinding is the topic of pages that are read again after some seconds, because they read more than what is followed.
const ofNoBinding = "binding="

// topicOf returns the topic of a query: "binding" is the namespace and name of a binding, or empty for none.
func topicOf(q url.Values) topic {
	if !q.Has("binding") {
		return topic{}
	}
	namespace, name, _ := strings.Cut(q.Get("binding"), "/")
	return topic{&client.ObjectKey{Namespace: namespace, Name: name}}
}

// differs reports whether a page about the topic is to be read again. What a binding does not show, such as events, is read again
// after some seconds.
func (t topic) differs(shown, now *state) bool {
	if t.binding == nil || now.Now.Sub(shown.Now) >= refreshInterval || (shown.lost == nil) != (now.lost == nil) || !maps.Equal(shown.ready, now.ready) {
		return true
	}
	was, is := shown.binding(*t.binding), now.binding(*t.binding)
	return (was == nil) != (is == nil) || is != nil && was.GetResourceVersion() != is.GetResourceVersion()
}

// object is an object with the link to its page.
type object struct{ why.Object }

// Link returns the address of the page.
func (o object) Link() string {
	q := url.Values{"apiVersion": {o.APIVersion}, "kind": {o.Kind}, "name": {o.Name}}
	if o.Namespace != "" {
		q.Set("namespace", o.Namespace)
	}
	return pageOf(o.APIVersion, o.Kind) + "?" + q.Encode()
}

// pageOf returns the page for a kind.
func pageOf(apiVersion, kind string) string {
	group, _, _ := strings.Cut(apiVersion, "/")
	switch {
	case group == clusterv1alpha1.GroupName && kind == "Cluster":
		return "cluster"
	case group == policyv1alpha1.GroupName && strings.HasSuffix(kind, "Policy"):
		return "policy"
	}
	return "workload"
}

// explained reads the object that a query names, and explains it.
func (p *pages) explained(ctx context.Context, q url.Values) (*unstructured.Unstructured, *why.Account, error) {
	gv, err := schema.ParseGroupVersion(q.Get("apiVersion"))
	if err != nil || q.Get("kind") == "" || q.Get("name") == "" {
		return nil, nil, &badRequest{"the address of the page does not name an object", "Go back to the overview, and choose the object there."}
	}
	mapping, err := p.source.Mapper.RESTMapping(gv.WithKind(q.Get("kind")).GroupKind(), gv.Version)
	if err != nil {
		return nil, nil, err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := p.source.Client.Get(ctx, client.ObjectKey{Namespace: q.Get("namespace"), Name: q.Get("name")}, u); err != nil {
		return nil, nil, err
	}
	account, err := explain.Object(ctx, p.reader, u, mapping, p.program)
	return u, account, err
}

// room is a resource of a cluster.
type room struct {
	capacity.Share
	Cluster string
}

// Percent returns the part that is requested, of 100.
func (r room) Percent() int { return int(100 * min(1, r.Used)) }

// Level returns how full it is in a word.
func (r room) Level() string {
	switch {
	case r.Used >= 0.95:
		return "full"
	case r.Used >= 0.8:
		return "high"
	}
	return "ok"
}

// rooms returns the resources of a cluster.
func rooms(c *clusterv1alpha1.Cluster) []room {
	var out []room
	for _, s := range capacity.Shares(c) {
		out = append(out, room{s, c.Name})
	}
	return out
}

// clusterRow is a cluster in the overview.
type clusterRow struct {
	status.Cluster
	Link  string
	Rooms []room
}

// State returns the state of the cluster in a word.
func (c *clusterRow) State() string {
	switch {
	case c.Removed:
		return "being removed"
	case !c.Ready:
		return "not Ready"
	case c.Cordoned:
		return "cordoned"
	}
	return "Ready"
}

// clusterRows returns the clusters.
func clusterRows(s *state) []clusterRow {
	if s.report.Clusters == nil {
		return nil
	}
	var out []clusterRow
	for i, c := range s.report.Clusters.Items {
		row := clusterRow{Cluster: c, Link: clusterLink(c.Name)}
		if i < len(s.Clusters) && s.Clusters[i].Name == c.Name {
			row.Rooms = rooms(s.Clusters[i])
		}
		out = append(out, row)
	}
	return out
}

func clusterLink(name string) string {
	return object{why.Object{APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: "Cluster", Name: name}}.Link()
}

// cluster shows a cluster.
func (p *pages) cluster(ctx context.Context, r *http.Request) (*view, error) {
	u, account, err := p.explained(ctx, r.URL.Query())
	if err != nil {
		return nil, err
	}
	s := p.live.state()
	data := struct {
		*why.Account
		Cluster    clusterRow
		Conditions []condition
		Rows       []row
		More       int
	}{Account: account, Conditions: conditions(u, why.BadIfTrue)}
	for _, c := range clusterRows(s) {
		if c.Name == u.GetName() {
			data.Cluster = c
		}
	}
	for _, row := range rowsOf(s, []string{u.GetName()}) {
		if row.fill(); row.Cells[0] != nil {
			data.Rows = append(data.Rows, row)
		}
	}
	slices.SortStableFunc(data.Rows, func(a, b row) int { return cmp.Compare(a.Cells[0].order(), b.Cells[0].order()) })
	if n := len(data.Rows); n > maxListed {
		data.Rows, data.More = data.Rows[:maxListed], n-maxListed
	}
	return &view{page: "cluster", Title: "Cluster " + u.GetName(), Live: true, Topic: ofNoBinding, Data: data}, nil
}

// maxListed is the number of objects of a list without pages.
const maxListed = 200

// condition is a condition of an object.
type condition struct{ Type, Status, Reason, Message, State string }

// conditions returns those of an object. Most report a problem if they are not True.
func conditions(u *unstructured.Unstructured, badIfTrue func(string) bool) []condition {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	var out []condition
	for _, item := range list {
		fields, _ := item.(map[string]any)
		text := func(name string) string {
			value, _ := fields[name].(string)
			return why.Line(value)
		}
		c := condition{text("type"), text("status"), text("reason"), text("message"), string(status.Unhealthy)}
		if (c.Status == "True") != badIfTrue(c.Type) {
			c.State = string(status.Healthy)
		}
		out = append(out, c)
	}
	return out
}

// policies lists the propagation and override policies.
func (p *pages) policies(ctx context.Context, _ *http.Request) (*view, error) {
	type item struct {
		object
		Has int
	}
	var data struct {
		Propagation, Override []item
		Gaps                  []string
	}
	has := map[client.ObjectKey]int{}
	for _, b := range p.live.state().Bindings {
		if claim, claimed := policy.Of(b); claimed {
			has[client.ObjectKey{Namespace: claim.Namespace, Name: claim.Name}]++
		}
	}
	for _, gap := range []string{snapshot.Policies, snapshot.ClusterPolicies, snapshot.Overrides, snapshot.ClusterOverrides} {
		kind := strings.TrimSuffix(gap, "ies") + "y"
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(policyv1alpha1.GroupVersion.WithKind(kind + "List"))
		err := p.source.Client.List(ctx, list)
		if apierrors.IsForbidden(err) && !strings.HasPrefix(kind, "Cluster") {
			err = p.source.Client.List(ctx, list, client.InNamespace(p.namespace))
		}
		if err != nil {
			data.Gaps = append(data.Gaps, why.Gaps(snapshot.Gaps{{What: gap, Err: err}})...)
		}
		for i := range list.Items {
			u := &list.Items[i]
			o := item{object{why.Object{APIVersion: u.GetAPIVersion(), Kind: kind, Namespace: u.GetNamespace(), Name: u.GetName()}}, has[client.ObjectKeyFromObject(u)]}
			if strings.HasSuffix(kind, "OverridePolicy") {
				data.Override = append(data.Override, o)
			} else {
				data.Propagation = append(data.Propagation, o)
			}
		}
	}
	return &view{page: "policies", Title: "Policies", Live: true, Topic: ofNoBinding, Data: data}, nil
}

// policy shows a policy.
func (p *pages) policy(ctx context.Context, r *http.Request) (*view, error) {
	u, account, err := p.explained(ctx, r.URL.Query())
	if err != nil {
		return nil, err
	}
	s := p.live.state()
	data := struct {
		*why.Account
		Rows    []row
		Columns []column
		More    int
	}{Account: account, Columns: columnsOf(s)}
	for _, row := range rowsOf(s, names(data.Columns)) {
		claim, claimed := policy.Of(row.binding)
		if claimed && claim.Scope().Kind == u.GetKind() && claim.Namespace == u.GetNamespace() && claim.Name == u.GetName() {
			data.Rows = append(data.Rows, row)
		}
	}
	if n := len(data.Rows); n > maxListed {
		data.Rows, data.More = data.Rows[:maxListed], n-maxListed
	}
	for i := range data.Rows {
		data.Rows[i].fill()
	}
	return &view{page: "policy", Title: account.Object.String(), Live: true, Topic: ofNoBinding, Data: data}, nil
}

// number returns a number of a query between two others.
func number(q url.Values, name string, least, most int) int {
	n, err := strconv.Atoi(q.Get(name))
	if err != nil {
		return least
	}
	return max(least, min(n, most))
}

// functions are those of the templates.
func functions() template.FuncMap {
	return template.FuncMap{
		"count": why.Count,
		"glyph": func(state any) string { return glyphs()[fmt.Sprint(state)] },
		"label": func(state any) string { return stateLabels()[fmt.Sprint(state)] },
		"low":   func(text any) string { return strings.ToLower(fmt.Sprint(text)) },
		"link":  func(o why.Object) string { return object{o}.Link() },
		"scope": func(b workv1alpha2.Binding) string { return scope.BindingIn(b.GetNamespace()).Kind },
	}
}

// glyphs are the shapes of states, which are not told apart by colours only.
func glyphs() map[string]string {
	return map[string]string{
		string(status.Healthy): "●", string(status.Unhealthy): "▲", string(status.Unknown): "◌", string(status.NotApplied): "✖",
		string(status.NotYetApplied): "◔", string(status.Suspended): "❚", string(status.Unreachable): "◇", string(status.Leaving): "➜",
	}
}

// stateLabels are the words for states.
func stateLabels() map[string]string {
	return map[string]string{
		string(status.Healthy): "healthy", string(status.Unhealthy): "unhealthy", string(status.Unknown): "applied, health not known", string(status.NotApplied): "refused by the cluster",
		string(status.NotYetApplied): "not applied yet", string(status.Suspended): "suspended", string(status.Unreachable): "cluster not Ready", string(status.Leaving): "being evicted",
	}
}

// parse returns the templates of the pages.
func parse() (map[string]*template.Template, error) {
	out := map[string]*template.Template{}
	for _, name := range []string{"admitted", "refused"} {
		t, err := template.ParseFS(embedded, "assets/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("reading the pages: %w", err)
		}
		out[name] = t
	}
	for _, name := range []string{"overview", "workload", "cluster", "policies", "policy", "plan", "failed"} {
		t, err := template.New("layout.html").Funcs(functions()).ParseFS(embedded, "assets/layout.html", "assets/parts.html", "assets/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("reading the pages: %w", err)
		}
		out[name] = t
	}
	return out, nil
}
