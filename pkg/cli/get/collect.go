package get

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/cli/fanout"
)

// controlPlaneName stands for the control plane where clusters are named.
const controlPlaneName = "Karmada"

// searchName stands for the role search of the control plane, which answers for all members.
const searchName = "the role search"

// collector queries clusters.
type collector struct {
	*request
	sources *sources
	targets []target
	// members are the clusters to query, beside the control plane if it is in scope.
	members []string
	// unlisted is why the members are not known while the control plane serves its own objects.
	unlisted error
	pending  pending
}

// result is the outcome of all queries.
type result struct {
	answers []answer
	errs    []error
	// notes name the clusters that have not reported yet. That is a failure only if the
	// command line names them.
	notes []string
	// failed is the last error of each cluster that failed.
	failed map[string]string
}

func (r *result) failure() error { return utilerrors.NewAggregate(r.errs) }

// newCollector resolves the clusters and the types of the targets in the control plane.
func newCollector(ctx context.Context, e *env.Env, plane *env.Access, r *request, targets []target) (*collector, error) {
	namespace, _, err := plane.Namespace()
	if err != nil {
		return nil, err
	}
	c := &collector{request: r, targets: targets, sources: &sources{access: plane, selection: selection{
		namespace: namespace, allNamespaces: r.allNamespaces, labels: r.labels, fields: r.fields, tables: r.tables, fullRows: r.sortBy != "",
		wide: *r.print.OutputFormat == "wide",
	}, counts: bindingCounts{now: e.Now}}}
	if c.sources.known, c.sources.unknown, err = resolve(plane, targets); err != nil {
		return nil, err
	}
	if r.cached {
		return c, c.fromCaches(ctx, plane.ControlPlane)
	}
	if r.scope == env.Karmada || !r.explicit && len(c.sources.unknown) == 0 && ownTypes(c.sources.known) {
		r.scope = env.Karmada
		return c, c.onlyControlPlane()
	}
	c.members, err = plane.ControlPlane.KnownClusters(ctx, r.clusters)
	if err != nil && r.scope == env.All && len(r.clusters) == 0 && plane.ControlPlane.Unserved() {
		c.unlisted, err = err, nil
	}
	r.severalClusters = len(c.members) > 1 || len(c.members) == 1 && c.controlPlane()
	return c, err
}

// fromCaches makes the role search the only source.
func (c *collector) fromCaches(ctx context.Context, plane *env.ControlPlane) error {
	if len(c.clusters) > 0 {
		if _, err := plane.KnownClusters(ctx, c.clusters); err != nil {
			return err
		}
	}
	if err := c.onlyControlPlane(); err != nil {
		return err
	}
	config, err := plane.SearchConfig()
	c.sources.search, c.sources.selection.clusters = config, c.clusters
	c.members, c.severalClusters = []string{searchName}, true
	return err
}

// ownTypes reports whether all types are of the control plane only.
func ownTypes(queries []query) bool {
	return !slices.ContainsFunc(queries, func(q query) bool {
		return !strings.HasSuffix(q.mapping.Resource.Group, ".karmada.io")
	})
}

func (c *collector) onlyControlPlane() error {
	if len(c.sources.unknown) > 0 {
		return errUnknownType{arg: c.sources.unknown[0].arg}
	}
	return nil
}

// controlPlane reports whether the control plane is queried.
func (c *collector) controlPlane() bool { return c.scope != env.Members }

// single reports whether one object of one cluster was requested.
func (c *collector) single() bool {
	if c.cached {
		return false // several members may have it
	}
	clusters := len(c.members)
	if c.controlPlane() {
		clusters++
	}
	return clusters == 1 && len(c.targets) == 1 && len(c.targets[0].names) == 1
}

// collect queries the control plane and all members in parallel.
func (c *collector) collect(ctx context.Context) (*result, error) {
	var own fanout.Outcome[*reply]
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		if c.controlPlane() {
			own = fanout.Each(ctx, fanout.Limits{}, []string{controlPlaneName}, c.pending.track(c.sources.queryControlPlane))[0]
		}
	}()
	limits := fanout.Limits{Deadline: c.memberTimeout}
	if c.cached {
		limits.Deadline = 0
	}
	outcomes := fanout.Each(ctx, limits, c.members, c.pending.track(c.sources.queryMember))
	<-ready
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.controlPlane() {
		outcomes = slices.Insert(outcomes, 0, own)
	}
	return c.gather(outcomes)
}

// reply is the response of a cluster, with the types that it does not have.
type reply struct {
	parts   []*part
	unknown []string
}

// gather separates responses and failures. That a cluster does not have a type or a name
// is an error only if no cluster has it, or the command line names the cluster.
func (c *collector) gather(outcomes []fanout.Outcome[*reply]) (*result, error) {
	res := &result{failed: map[string]string{}}
	missing := &missing{clusters: map[string][]string{}, errs: map[string]error{}, inNamespace: map[string]bool{}}
	queried, unknown, found := 0, map[string]int{}, map[string]bool{}
	for _, o := range outcomes {
		if o.Err != nil {
			c.addFailure(res, o.Cluster, o.Err)
		}
		if o.Value == nil || o.Err != nil && len(o.Value.parts) == 0 {
			continue
		}
		queried++
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
		if n := unknown[t.arg]; n > 0 && n == queried {
			return nil, errUnknownType{arg: t.arg}
		}
	}
	if c.unlisted != nil {
		res.errs = append(res.errs, c.unlisted)
	}
	if !c.ignoreMissing {
		res.errs = append(res.errs, missing.errors(c, found)...)
	}
	return res, nil
}

// names are the requested names that exist.
func (p *part) names() []string {
	return slices.DeleteFunc(slices.Clone(p.requested), func(name string) bool { return slices.Contains(p.missing, name) })
}

// hintScope writes how to include the members if the output is empty and a table
// would have included them.
func (c *collector) hintScope(e *env.Env, res *result) {
	if !c.explicit && c.scope == env.Karmada && !c.request.tables && res.empty() && !ownTypes(c.sources.known) {
		e.SayLine("control plane only; add -s members or -s all")
	}
}

// nothing returns the message for an empty result.
func (c *collector) nothing(res *result) string {
	if c.scope == env.Members && len(c.members) == 0 {
		return "No member Clusters found in Karmada control plane"
	}
	for _, a := range res.answers {
		for _, p := range a.parts {
			if p.mapping.Scope.Name() == meta.RESTScopeNameNamespace && !c.sources.allNamespaces {
				return fmt.Sprintf("No resources found in %s namespace.", c.sources.namespace)
			}
		}
	}
	return "No resources found"
}

func (c *collector) now(e *env.Env) metav1.Time { return metav1.NewTime(e.Now()) }
