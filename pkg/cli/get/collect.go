package get

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/cli/fanout"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// controlPlaneName stands for the control plane where clusters are named.
const controlPlaneName = "Karmada"

// collector asks clusters.
type collector struct {
	access *env.Access
	*request
	selection
	targets []target
	// members are the clusters to ask, beside the control plane if it is in scope.
	members []string
	// known and unknown are the targets as the control plane sees them.
	known   []query
	unknown []target
	// pending are the clusters that have not answered yet.
	pending sync.Map
}

// result is what came of asking.
type result struct {
	answers []answer
	errs    []error
	// notes are about clusters that cannot answer yet, which is no failure unless the
	// command line names them.
	notes []string
	// failed is what was last said of a cluster that did not answer.
	failed map[string]string
}

func (r *result) failure() error { return utilerrors.NewAggregate(r.errs) }

// newCollector finds out which clusters there are and what the control plane knows
// of the types asked for.
func newCollector(ctx context.Context, plane *env.Access, r *request, targets []target) (*collector, error) {
	namespace, _, err := plane.Namespace()
	if err != nil {
		return nil, err
	}
	c := &collector{access: plane, request: r, targets: targets, selection: selection{
		namespace: namespace, allNamespaces: r.allNamespaces, labels: r.labels, fields: r.fields, tables: r.tables, fullRows: r.sortBy != "",
		wide: *r.print.OutputFormat == "wide",
	}}
	if c.known, c.unknown, err = resolve(plane, targets); err != nil {
		return nil, err
	}
	if r.scope == env.Karmada || !r.explicit && len(c.unknown) == 0 && ownTypes(c.known) {
		r.scope = env.Karmada
		return c, c.onlyControlPlane()
	}
	c.members, err = plane.ControlPlane.KnownClusters(ctx, r.clusters)
	return c, err
}

// ownTypes says whether all types are the federation's own, of which members have
// nothing to show.
func ownTypes(queries []query) bool {
	return !slices.ContainsFunc(queries, func(q query) bool {
		return !strings.HasSuffix(q.mapping.Resource.Group, ".karmada.io")
	})
}

func (c *collector) onlyControlPlane() error {
	if len(c.unknown) > 0 {
		return errUnknownType{arg: c.unknown[0].arg}
	}
	return nil
}

// controlPlane says whether the control plane is asked too.
func (c *collector) controlPlane() bool { return c.scope != env.Members }

// single says whether one object of one cluster was asked for.
func (c *collector) single() bool {
	clusters := len(c.members)
	if c.controlPlane() {
		clusters++
	}
	return clusters == 1 && len(c.targets) == 1 && len(c.targets[0].names) == 1
}

// collect asks the control plane and all members at once.
func (c *collector) collect(ctx context.Context) (*result, error) {
	var own fanout.Outcome[*reply]
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		if c.controlPlane() {
			own = fanout.Each(ctx, fanout.Limits{}, []string{controlPlaneName}, c.noting(c.askControlPlane))[0]
		}
	}()
	outcomes := fanout.Each(ctx, fanout.Limits{Deadline: c.memberTimeout}, c.members, c.noting(c.askMember))
	<-ready
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.controlPlane() {
		outcomes = slices.Insert(outcomes, 0, own)
	}
	return c.gather(outcomes)
}

// noting keeps the list of those that have not answered yet.
func (c *collector) noting(ask func(context.Context, string) (*reply, error)) func(context.Context, string) (*reply, error) {
	return func(ctx context.Context, cluster string) (*reply, error) {
		c.pending.Store(cluster, true)
		defer c.pending.Delete(cluster)
		return ask(ctx, cluster)
	}
}

// waitingFor names those that have not answered yet.
func (c *collector) waitingFor() string {
	var names []string
	c.pending.Range(func(cluster, _ any) bool {
		names = append(names, fmt.Sprint(cluster))
		return true
	})
	if len(names) == 0 {
		return ""
	}
	slices.SortFunc(names, compareClusters)
	return "an answer of " + strings.Join(names, ", ")
}

// reply is the answer of a cluster, with the types that it does not have.
type reply struct {
	parts   []*part
	unknown []string
}

func (c *collector) askControlPlane(ctx context.Context, _ string) (*reply, error) {
	config, err := c.access.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	s, err := newServer(config, c.selection)
	if err != nil {
		return nil, err
	}
	r := &reply{}
	for _, t := range c.unknown {
		r.unknown = append(r.unknown, t.arg)
	}
	return r, c.askAll(ctx, s, c.known, r)
}

// askMember asks a member, in the versions of the control plane. Only where the
// member does not have those is it asked which it has.
func (c *collector) askMember(ctx context.Context, cluster string) (*reply, error) {
	config, err := c.access.ControlPlane.MemberConfig(cluster)
	if err != nil {
		return nil, err
	}
	s, err := newServer(access.Guard(config), c.selection)
	if err != nil {
		return nil, err
	}
	r := &reply{}
	if err := c.askAll(ctx, s, c.known, r); err != nil {
		return r, err
	}
	again := slices.Clone(c.unknown)
	for _, q := range c.known {
		if slices.Contains(r.unknown, q.arg) {
			again = append(again, q.target)
		}
	}
	if len(again) == 0 {
		return r, nil
	}
	known, unknown, err := resolve(c.access.MemberAccess(cluster), again)
	if err != nil {
		return r, err
	}
	r.unknown = nil
	for _, t := range unknown {
		r.unknown = append(r.unknown, t.arg)
	}
	return r, c.askAll(ctx, s, known, r)
}

// askAll puts queries to a server, one after the other. What it has is kept also if
// others fail; all fail in the same way if the server is not reached.
func (c *collector) askAll(ctx context.Context, s *server, queries []query, r *reply) error {
	var errs []error
	for _, q := range queries {
		p, err := s.ask(ctx, q)
		switch {
		case errors.Is(err, errNoType):
			r.unknown = append(r.unknown, q.arg)
			continue
		case err != nil && !slices.ContainsFunc(errs, func(e error) bool { return e.Error() == err.Error() }):
			errs = append(errs, err)
		}
		if err == nil || !p.empty() {
			r.parts = append(r.parts, p)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// gather sorts out answers and failures. A type or a name that some cluster has is
// not missed in the others, unless they were named.
func (c *collector) gather(outcomes []fanout.Outcome[*reply]) (*result, error) {
	res := &result{failed: map[string]string{}}
	asked, unknown, missing, found := 0, map[string]int{}, newMissing(), map[string]bool{}
	for _, o := range outcomes {
		if o.Err != nil {
			c.addFailure(res, o.Cluster, o.Err)
		}
		if o.Value == nil || o.Err != nil && len(o.Value.parts) == 0 {
			continue
		}
		asked++
		for _, arg := range o.Value.unknown {
			unknown[arg]++
		}
		a := answer{cluster: o.Cluster}
		for _, p := range o.Value.parts {
			a.parts = append(a.parts, p)
			missing.add(o.Cluster, p, found)
		}
		res.answers = append(res.answers, a)
	}
	for _, t := range c.targets {
		if n := unknown[t.arg]; n > 0 && n == asked {
			return nil, errUnknownType{arg: t.arg}
		}
	}
	if !c.ignoreMissing {
		res.errs = append(res.errs, missing.errors(c, found)...)
	}
	return res, nil
}

// addFailure adds the errors of a cluster. That a cluster has not reported yet is a note, unless the cluster was named.
func (c *collector) addFailure(res *result, cluster string, failure error) {
	deadline := c.memberTimeout
	if cluster == controlPlaneName {
		deadline = 0
	}
	for _, err := range each(failure) {
		text := fanout.ClusterError(cluster, err, deadline)
		res.failed[cluster] = text.Error()
		if fanout.NotReported(err) && !slices.Contains(c.clusters, cluster) {
			res.notes = append(res.notes, text.Error())
			continue
		}
		res.errs = append(res.errs, text)
	}
}

// each takes joined errors apart.
func each(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// missing are names that clusters were asked for and do not have.
type missing struct {
	order    []string
	clusters map[string][]string
	errs     map[string]error
	// inNamespace are the names whose namespace some cluster has.
	inNamespace map[string]bool
}

func newMissing() *missing {
	return &missing{clusters: map[string][]string{}, errs: map[string]error{}, inNamespace: map[string]bool{}}
}

func (m *missing) add(cluster string, p *part, found map[string]bool) {
	resource := p.mapping.Resource.GroupResource()
	for _, name := range p.names() {
		found[resource.String()+"/"+name] = true
	}
	for _, name := range p.missing {
		key := resource.String() + "/" + name
		if m.errs[key] == nil {
			m.order = append(m.order, key)
			m.errs[key] = apierrors.NewNotFound(resource, name)
		}
		m.clusters[key] = append(m.clusters[key], cluster)
		m.inNamespace[key] = m.inNamespace[key] || !p.namespaceMissing
	}
}

func (m *missing) errors(c *collector, found map[string]bool) []error {
	var errs []error
	add := func(err error) {
		if !slices.ContainsFunc(errs, func(e error) bool { return e.Error() == err.Error() }) {
			errs = append(errs, err)
		}
	}
	for _, key := range m.order {
		err := m.errs[key]
		if !found[key] && !m.inNamespace[key] {
			err = apierrors.NewNotFound(corev1.Resource("namespaces"), c.namespace)
		}
		if !found[key] && len(c.clusters) == 0 {
			add(err)
			continue
		}
		for _, cluster := range m.clusters[key] {
			if slices.Contains(c.clusters, cluster) {
				add(fmt.Errorf("cluster(%s): %w", cluster, err))
			}
		}
	}
	return errs
}

// names are those that were asked for and found.
func (p *part) names() []string {
	return slices.DeleteFunc(slices.Clone(p.asked), func(name string) bool { return slices.Contains(p.missing, name) })
}

// hintScope writes how to include the members if the output is empty and a table
// would have included them.
func (c *collector) hintScope(e *env.Env, res *result) {
	if !c.explicit && c.scope == env.Karmada && !c.request.tables && res.empty() && !ownTypes(c.known) {
		e.SayLine("control plane only; add -s members or -s all")
	}
}

// nothing words that there is nothing to show.
func (c *collector) nothing(res *result) string {
	if c.scope == env.Members && len(c.members) == 0 {
		return "No member Clusters found in Karmada control plane"
	}
	for _, a := range res.answers {
		for _, p := range a.parts {
			if p.mapping.Scope.Name() == meta.RESTScopeNameNamespace && !c.selection.allNamespaces {
				return fmt.Sprintf("No resources found in %s namespace.", c.namespace)
			}
		}
	}
	return "No resources found"
}

func (c *collector) now(e *env.Env) metav1.Time { return metav1.NewTime(e.Now()) }
