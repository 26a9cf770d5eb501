package clusterstatus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

const (
	acceptAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
	aggregated       = "g=apidiscovery.k8s.io"
	// groupDiscoveryInterval is the time between two discoveries of a cluster without
	// aggregated discovery, which takes a request per group.
	groupDiscoveryInterval = time.Minute
	// coreInterval is the time between two requests for what changes only when a cluster is upgraded: the core group and the version. They
	// are requested sooner when another group changes.
	coreInterval = time.Minute
)

// errPartial is returned when the APIs of a cluster are not complete.
var errPartial = errors.New("some groups are not available")

// enablements caches the APIs of a cluster by the ETags of its discovery.
type enablements struct {
	member *access.Member
	parts  map[string]*part // by path
	// list is the last complete result of parts, nil if it is to be computed.
	list []clusterv1alpha1.APIEnablement
	// stored is the list of a Cluster that had the same APIs as list when they were compared.
	stored []clusterv1alpha1.APIEnablement
	// byGroup is the last result of a discovery group by group, at byGroupAt.
	byGroup   []clusterv1alpha1.APIEnablement
	byGroupAt time.Time
	// coreAt is when the core group was requested last, and version what the cluster answered since; empty for nothing.
	coreAt  time.Time
	version string
}

type part struct {
	tag     string
	list    []clusterv1alpha1.APIEnablement
	partial bool
}

// get returns the APIs that the cluster serves, sorted. With errPartial the list is
// not complete.
func (e *enablements) get(ctx context.Context, member *access.Member, now time.Time) ([]clusterv1alpha1.APIEnablement, error) {
	if e.member != member {
		*e = enablements{member: member, parts: map[string]*part{"/api": {}, "/apis": {}}}
	}
	if e.byGroup != nil && now.Before(e.byGroupAt.Add(groupDiscoveryInterval)) {
		return e.byGroup, nil
	}
	partial, core := false, !now.Before(e.coreAt.Add(coreInterval))
	for _, path := range []string{"/apis", "/api"} {
		p := e.parts[path]
		if path == "/api" && !core {
			continue
		}
		result, err := p.refresh(ctx, member, path)
		switch {
		case err != nil:
			return nil, err
		case result == unsupported:
			return e.discoverGroups(member, now)
		case result == changed:
			e.list, e.stored, core = nil, nil, true
		}
		partial = partial || p.partial
	}
	if core {
		e.coreAt, e.version = now, ""
	}
	if e.list != nil {
		return e.list, nil
	}
	out := slices.Concat(e.parts["/api"].list, e.parts["/apis"].list)
	sortEnablements(out)
	out, cut := bound(out)
	if partial || cut {
		return out, errPartial
	}
	e.list = out
	return out, nil
}

// keep returns the list that a Cluster has stored if it is the same as list, so that nothing compares the two again for as
// long as neither changes.
func (e *enablements) keep(stored, list []clusterv1alpha1.APIEnablement) []clusterv1alpha1.APIEnablement {
	switch {
	case len(list) == 0 || len(stored) != len(list) || len(e.list) == 0 || &e.list[0] != &list[0]:
		return list
	case len(e.stored) == len(stored) && &e.stored[0] == &stored[0]:
		return stored
	case equality.Semantic.DeepEqual(stored, list):
		e.stored = stored
		return stored
	}
	return list
}

const (
	// maxEnablements limits the list of the APIs of a cluster, in bytes: every component
	// caches it for every cluster.
	maxEnablements = 512 << 10
	// maxAPIName limits the name of a group, version, resource or kind, in bytes.
	maxAPIName = 253
	// maxVersion limits the version of a cluster, in bytes.
	maxVersion = 128
)

// bound removes what has invalid names or exceeds the limits, and reports whether it
// removed anything. The list is sorted.
func bound(list []clusterv1alpha1.APIEnablement) (out []clusterv1alpha1.APIEnablement, cut bool) {
	const perEntry = 40
	size := 0
	for _, e := range list {
		size += perEntry + len(e.GroupVersion)
		if !apiName(e.GroupVersion) || size > maxEnablements {
			cut = true
			continue
		}
		kept := clusterv1alpha1.APIEnablement{GroupVersion: e.GroupVersion}
		for _, r := range e.Resources {
			size += perEntry + len(r.Name) + len(r.Kind)
			if !apiName(r.Name) || !apiName(r.Kind) || size > maxEnablements {
				cut = true
				continue
			}
			kept.Resources = append(kept.Resources, r)
		}
		out = append(out, kept)
	}
	return out, cut
}

// apiName reports whether a text is valid as the name of a group, resource or kind.
func apiName(s string) bool {
	return s != "" && len(s) <= maxAPIName && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// discovery is the result of a request for the groups of one path.
type discovery int

const (
	unchanged discovery = iota
	changed
	// unsupported is that of a cluster without aggregated discovery.
	unsupported
)

// refresh gets the groups of one path.
func (p *part) refresh(ctx context.Context, member *access.Member, path string) (discovery, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, member.URL(path), nil)
	if err != nil {
		return unchanged, fmt.Errorf("getting %s: %w", path, err)
	}
	req.Header.Set("Accept", acceptAggregated)
	if p.tag != "" {
		req.Header.Set("If-None-Match", p.tag)
	}
	resp, err := member.HTTP().Do(req)
	if err != nil {
		return unchanged, fmt.Errorf("getting %s: %w", path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusNotModified:
		return unchanged, nil
	case resp.StatusCode != http.StatusOK:
		return unchanged, fmt.Errorf("getting %s: unexpected status code %d", path, resp.StatusCode)
	case !strings.Contains(resp.Header.Get("Content-Type"), aggregated):
		return unsupported, nil
	}
	var groups apidiscoveryv2.APIGroupDiscoveryList
	if err := json.NewDecoder(resp.Body).Decode(&groups); err != nil {
		return unchanged, fmt.Errorf("decoding the response of %s: %w", path, err)
	}
	p.list, p.partial = fromGroups(&groups)
	if p.tag = resp.Header.Get("Etag"); p.partial {
		p.tag = "" // the tag does not always change when a group becomes available
	}
	return changed, nil
}

func fromGroups(groups *apidiscoveryv2.APIGroupDiscoveryList) (list []clusterv1alpha1.APIEnablement, partial bool) {
	for i := range groups.Items {
		group := &groups.Items[i]
		for j := range group.Versions {
			v := &group.Versions[j]
			if v.Freshness == apidiscoveryv2.DiscoveryFreshnessStale {
				partial = true
			}
			e := clusterv1alpha1.APIEnablement{GroupVersion: schema.GroupVersion{Group: group.Name, Version: v.Version}.String()}
			for k := range v.Resources {
				if kind := v.Resources[k].ResponseKind; kind != nil {
					e.Resources = append(e.Resources, clusterv1alpha1.APIResource{Name: v.Resources[k].Resource, Kind: kind.Kind})
				}
			}
			if v.Freshness == apidiscoveryv2.DiscoveryFreshnessStale && len(e.Resources) == 0 {
				continue
			}
			list = append(list, e)
		}
	}
	return list, partial
}

// discoverGroups gets the resources group by group.
func (e *enablements) discoverGroups(member *access.Member, now time.Time) ([]clusterv1alpha1.APIEnablement, error) {
	_, lists, err := member.Discovery().ServerGroupsAndResources()
	out, cut := bound(fromLists(lists))
	if err == nil && cut {
		err = errPartial
	}
	if err != nil {
		if len(out) == 0 {
			return nil, fmt.Errorf("discovering the APIs of the cluster: %w", err)
		}
		return out, errPartial
	}
	e.byGroup, e.byGroupAt, e.version = out, now, ""
	return out, nil
}

func fromLists(lists []*metav1.APIResourceList) []clusterv1alpha1.APIEnablement {
	out := make([]clusterv1alpha1.APIEnablement, 0, len(lists))
	for _, list := range lists {
		e := clusterv1alpha1.APIEnablement{GroupVersion: list.GroupVersion}
		for i := range list.APIResources {
			if name := list.APIResources[i].Name; !strings.Contains(name, "/") {
				e.Resources = append(e.Resources, clusterv1alpha1.APIResource{Name: name, Kind: list.APIResources[i].Kind})
			}
		}
		out = append(out, e)
	}
	sortEnablements(out)
	return out
}

func sortEnablements(list []clusterv1alpha1.APIEnablement) {
	slices.SortFunc(list, func(a, b clusterv1alpha1.APIEnablement) int { return cmp.Compare(a.GroupVersion, b.GroupVersion) })
	for i := range list {
		slices.SortFunc(list[i].Resources, func(a, b clusterv1alpha1.APIResource) int { return cmp.Compare(a.Name, b.Name) })
	}
}

// enablementsCondition returns the condition CompleteAPIEnablements.
func enablementsCondition(list []clusterv1alpha1.APIEnablement, err error) metav1.Condition {
	c := metav1.Condition{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements}
	switch {
	case len(list) == 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Empty", "collected empty APIEnablements from the cluster"
	case err != nil:
		c.Status, c.Reason = metav1.ConditionFalse, "Partial"
		c.Message = fmt.Sprintf("might collect partial APIEnablements(%d) from the cluster", len(list))
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "Complete", "collected complete APIEnablements from the cluster"
	}
	return c
}

// kubernetesVersion returns the version of the cluster, see coreInterval, or nothing if it is not available.
func (e *enablements) kubernetesVersion(ctx context.Context, member *access.Member) string {
	if e.version != "" {
		return e.version
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, member.URL("/version"), nil)
	if err != nil {
		return ""
	}
	resp, err := member.HTTP().Do(req)
	if err != nil {
		return ""
	}
	defer func() { _ = resp.Body.Close() }()
	var info version.Info
	if resp.StatusCode == http.StatusOK && json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&info) == nil {
		e.version = plaintext.Line(info.GitVersion, maxVersion)
	}
	return e.version
}
