package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

const (
	// membersAtOnce bounds the number of members that are queried at the same time.
	membersAtOnce = 64
	// defaultMemberTimeout is how long one member is waited for.
	defaultMemberTimeout = 10 * time.Second
	// maxMemberAnswer bounds the answer of one member, in bytes after decompression:
	// the answers of all are in memory until they are merged.
	maxMemberAnswer = 32 << 20
	// maxWarning is how long the reason may be that a member is left out, in bytes.
	maxWarning = 1024
	// pieceSize is how much of an answer is read at a time, in bytes.
	pieceSize = 256 << 10
)

// allClusters serves requests to all clusters at once: lists are merged, a named
// object is found in the one cluster that has it.
type allClusters struct {
	clusters Clusters
	members  *Members
	home     *ControlPlane
	timeout  time.Duration
}

// reply is what one member answered.
type reply struct {
	cluster string
	member  *member
	code    int
	header  http.Header
	body    []byte
	err     error
}

// handler serves one request. What it is follows from the inner path alone.
func (a *allClusters) handler(in Inner, requester user.Info, responder rest.Responder) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, err := in.Info(req)
		if err != nil {
			responder.Error(apierrors.NewBadRequest(err.Error()))
			return
		}
		switch {
		case !info.IsResourceRequest:
			a.home.Handler(in, requester, responder).ServeHTTP(w, req)
		case info.Verb == "list":
			a.list(w, req, in, info, requester, responder)
		case info.Name != "":
			a.one(w, req, in, info, requester, responder)
		default:
			responder.Error(status(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
				fmt.Sprintf("Request verb %s is not support", info.Verb)))
		}
	})
}

// one finds the cluster that has the object and carries the request there.
func (a *allClusters) one(w http.ResponseWriter, req *http.Request, in Inner, info *genericrequest.RequestInfo, requester user.Info, responder rest.Responder) {
	question := Inner{path: objectPath(info)}
	header := http.Header{"Accept": {"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json"}}
	replies, err := a.query(req.Context(), question, header, requester, 0)
	if err != nil {
		responder.Error(err)
		return
	}
	var found []reply
	for _, r := range replies {
		if r.err == nil && r.code == http.StatusOK {
			found = append(found, r)
		}
	}
	warn(w.Header(), replies)
	switch len(found) {
	case 0:
		responder.Error(status(http.StatusNotFound, metav1.StatusReasonNotFound,
			"resource not found or don't have permission to get it"))
	case 1:
		forward(found[0].member, in, requester, responder, nil).ServeHTTP(w, req)
	default:
		names := make([]string, 0, len(found))
		for _, r := range found {
			names = append(names, r.cluster)
		}
		responder.Error(status(http.StatusConflict, metav1.StatusReasonConflict,
			"conflict resource, exist in more than one cluster: "+strings.Join(names, ",")))
	}
}

// list merges the lists of all clusters. They are requested in whole: a place to
// continue from exists in one cluster only.
func (a *allClusters) list(w http.ResponseWriter, req *http.Request, in Inner, info *genericrequest.RequestInfo, requester user.Info, responder rest.Responder) {
	question := in
	query := in.url(&url.URL{}, req).Query()
	query.Del("limit")
	query.Del("continue")
	whole := query.Encode()
	question.query = &whole
	accept := acceptJSON(req.Header.Values("Accept"))
	replies, err := a.query(req.Context(), question, http.Header{"Accept": {accept}}, requester, maxMemberAnswer)
	if err != nil {
		responder.Error(err)
		return
	}
	merged, header := merge(replies, wantedList{resource: info.Resource, table: strings.Contains(accept, "as=Table")})
	warn(w.Header(), replies)
	if merged == nil {
		responder.Error(status(http.StatusNotFound, metav1.StatusReasonNotFound, "not found"))
		return
	}
	copyHeader(w.Header(), header)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_ = merged.write(w) // the client is gone
}

// query sends a GET to every cluster, in the name of the requester, and returns the
// answers by name of the cluster. Bodies are read up to limit bytes, not at all if it
// is 0. Clusters that are not ready are not queried.
func (a *allClusters) query(ctx context.Context, question Inner, header http.Header, requester user.Info, limit int64) ([]reply, error) {
	clusters, err := a.clusters.All(ctx)
	if err != nil {
		return nil, err
	}
	names := sets.New[string]()
	for i := range clusters {
		names.Insert(clusters[i].Name)
	}
	a.members.pool.Keep(names.Has)
	slices.SortFunc(clusters, func(x, y clusterv1alpha1.Cluster) int { return strings.Compare(x.Name, y.Name) })
	replies := make([]reply, len(clusters))
	var group errgroup.Group
	group.SetLimit(membersAtOnce)
	for i := range clusters {
		group.Go(func() error {
			replies[i] = a.askOne(ctx, &clusters[i], question, header, requester, limit)
			return nil
		})
	}
	_ = group.Wait() // the functions keep their errors
	return replies, nil
}

func (a *allClusters) askOne(ctx context.Context, c *clusterv1alpha1.Cluster, question Inner, header http.Header, requester user.Info, limit int64) reply {
	r := reply{cluster: c.Name}
	if ready := c.ReadyCondition(); ready != nil && ready.Status != metav1.ConditionTrue {
		r.err = fmt.Errorf("the cluster is not ready (%s)", ready.Reason)
		return r
	}
	if r.member, r.err = a.members.of(ctx, c); r.err != nil {
		return r
	}
	timeout := a.timeout
	if timeout <= 0 {
		timeout = defaultMemberTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := r.member.get(ctx, r.member.plain, question, header, requester)
	if err != nil {
		r.err = err
		return r
	}
	defer func() { _ = answer.Body.Close() }() // read or given up
	r.code, r.header = answer.StatusCode, answer.Header
	if r.code == http.StatusOK && limit > 0 {
		r.body, r.err = readAll(answer, limit)
	}
	return r
}

// get sends a GET to the member in the name of the requester.
func (m *member) get(ctx context.Context, through http.RoundTripper, question Inner, header http.Header, requester user.Info) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	if err != nil {
		return nil, fmt.Errorf("preparing the request: %w", err)
	}
	req.URL = question.url(m.endpoint, req)
	req.Header = header.Clone()
	impersonate(req.Header, requester)
	req.Header.Set("Authorization", "bearer "+m.token)
	return through.RoundTrip(req)
}

// readAll reads an answer unless it is longer than limit.
func readAll(answer *http.Response, limit int64) ([]byte, error) {
	if answer.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	// The pieces are joined once: a buffer that grows would take several times as much.
	var pieces [][]byte
	var size int64
	for piece := make([]byte, 0, pieceSize); ; {
		if len(piece) == cap(piece) {
			pieces, piece = append(pieces, piece), make([]byte, 0, pieceSize)
		}
		n, err := answer.Body.Read(piece[len(piece):cap(piece)])
		piece = piece[:len(piece)+n]
		if size += int64(n); size > limit {
			return nil, tooLarge(limit)
		}
		switch {
		case errors.Is(err, io.EOF):
			return bytes.Join(append(pieces, piece), nil), nil
		case err != nil:
			return nil, fmt.Errorf("reading the answer: %w", err)
		}
	}
}

func tooLarge(limit int64) error {
	return fmt.Errorf("its answer is larger than %d MiB; ask this cluster alone, or for less", limit>>20)
}

// objectPath is the path that shows whether an object exists: its own, or that of
// a subresource that can be read.
func objectPath(info *genericrequest.RequestInfo) string {
	parts := []string{"", info.APIPrefix, info.APIVersion}
	if info.APIGroup != "" {
		parts = []string{"", info.APIPrefix, info.APIGroup, info.APIVersion}
	}
	if info.Namespace != "" && info.Resource != "namespaces" {
		parts = append(parts, "namespaces", info.Namespace)
	}
	parts = append(parts, info.Resource, info.Name)
	switch info.Subresource {
	case "", "exec", "log", "attach", "portforward", "proxy", "binding", "eviction", "token":
	default:
		parts = append(parts, info.Subresource)
	}
	return strings.Join(parts, "/")
}

// acceptJSON keeps of the accepted types those that are JSON, tables included.
func acceptJSON(accept []string) string {
	var kept []string
	for _, line := range accept {
		for one := range strings.SplitSeq(line, ",") {
			if one = strings.TrimSpace(one); one == "application/json" || strings.HasPrefix(one, "application/json;") {
				kept = append(kept, one)
			}
		}
	}
	if len(kept) == 0 {
		return "application/json"
	}
	return strings.Join(kept, ",")
}

// warn adds warnings about the clusters that an answer lacks, and why. That a cluster
// does not have what was requested is no reason.
func warn(header http.Header, replies []reply) {
	for _, r := range replies {
		text := ""
		switch {
		case r.err != nil:
			text = plaintext.Line(fmt.Sprintf("cluster %s: %v", r.cluster, r.err), maxWarning)
		case r.code != http.StatusOK && r.code != http.StatusNotFound:
			text = fmt.Sprintf("cluster %s: answered %d %s", r.cluster, r.code, http.StatusText(r.code))
		default:
			continue
		}
		if value, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			header.Add("Warning", value)
		}
	}
}

// copyHeader copies what belongs to the answer as a whole.
func copyHeader(to, from http.Header) {
	for name, values := range from {
		switch name {
		case "Content-Length", "Content-Encoding", "Transfer-Encoding", "Connection", "Keep-Alive", "Date", "Content-Type", "Trailer", "Upgrade":
			continue
		}
		for _, v := range values {
			to.Add(name, v)
		}
	}
}

func status(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}}
}
