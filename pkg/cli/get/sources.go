package get

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// sources are the control plane and the members, with the query for each.
type sources struct {
	access *env.Access
	selection
	// known are the targets whose types the control plane serves, unknown the others.
	known   []query
	unknown []target
	counts  bindingCounts
	// search is the configuration for the role search, if that answers for the members.
	search *rest.Config
}

// server returns a client of the control plane or a member. Responses of members have limits.
func (s *sources) server(cluster string) (*server, error) {
	if cluster == controlPlaneName {
		config, err := s.access.ToRESTConfig()
		if err != nil {
			return nil, err
		}
		srv, err := newServer(config, s.selection)
		if err == nil {
			srv.counts = &s.counts
		}
		return srv, err
	}
	if cluster == searchName {
		srv, err := newServer(s.search, s.selection)
		if err == nil {
			srv.merged = true
		}
		return srv, err
	}
	config, err := s.access.ControlPlane.MemberConfig(cluster)
	if err != nil {
		return nil, err
	}
	return newServer(access.Guard(config), s.selection)
}

// queryControlPlane queries the control plane.
func (s *sources) queryControlPlane(ctx context.Context, _ string) (*reply, error) {
	srv, err := s.server(controlPlaneName)
	if err != nil {
		return nil, err
	}
	r := &reply{}
	for _, t := range s.unknown {
		r.unknown = append(r.unknown, t.arg)
	}
	return r, queryAll(ctx, srv, s.known, r)
}

// queryMember queries a member in the API versions of the control plane, and then the types that the member does not
// have in these versions in its own.
func (s *sources) queryMember(ctx context.Context, cluster string) (*reply, error) {
	srv, err := s.server(cluster)
	if err != nil {
		return nil, err
	}
	r := &reply{}
	if err := queryAll(ctx, srv, s.known, r); err != nil {
		return r, err
	}
	if srv.merged {
		return r, nil
	}
	again := slices.Clone(s.unknown)
	for _, q := range s.known {
		if slices.Contains(r.unknown, q.arg) {
			again = append(again, q.target)
		}
	}
	if len(again) == 0 {
		return r, nil
	}
	known, unknown, err := resolve(s.access.MemberAccess(cluster), again)
	if err != nil {
		return r, err
	}
	r.unknown = nil
	for _, t := range unknown {
		r.unknown = append(r.unknown, t.arg)
	}
	return r, queryAll(ctx, srv, known, r)
}

// queryAll sends queries to a server, one after the other. The parts before a failure are kept. Queries that fail in
// the same way are one error.
func queryAll(ctx context.Context, s *server, queries []query, r *reply) error {
	var errs []error
	for _, q := range queries {
		p, err := s.get(ctx, q)
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

// pending are the clusters that have not responded yet.
type pending struct{ clusters sync.Map }

// track returns query with the cluster pending while it runs.
func (p *pending) track(query func(context.Context, string) (*reply, error)) func(context.Context, string) (*reply, error) {
	return func(ctx context.Context, cluster string) (*reply, error) {
		p.clusters.Store(cluster, true)
		defer p.clusters.Delete(cluster)
		return query(ctx, cluster)
	}
}

// String names the pending clusters.
func (p *pending) String() string {
	var names []string
	p.clusters.Range(func(cluster, _ any) bool {
		names = append(names, fmt.Sprint(cluster))
		return true
	})
	if len(names) == 0 {
		return ""
	}
	slices.SortFunc(names, compareClusters)
	return "an answer of " + strings.Join(names, ", ")
}
