package backend

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/opensearch-project/opensearch-go/v4"
	"github.com/opensearch-project/opensearch-go/v4/opensearchapi"
	corev1 "k8s.io/api/core/v1"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/search"
)

const (
	// requestTimeout is that of one request, purgeTimeout that of the deletion of many documents.
	requestTimeout = 30 * time.Second
	purgeTimeout   = 5 * time.Minute
	// maxAnswer is the length of an answer at most, in bytes.
	maxAnswer = 32 << 20
)

// Keys of the Secret of a store.
const (
	keyUserName       = "username"
	keyUserNameOfText = "userName" // the one that the description of the field names
	keyPassword       = "password"
	keyCA             = "ca.crt"
)

// client makes requests to an OpenSearch server.
type client struct {
	api       *opensearchapi.Client
	transport *http.Transport
}

// connect returns a client with the credentials of a Secret; nil stands for none. It makes no request.
// The fence refuses its writes.
func connect(config *searchv1alpha1.OpenSearchConfig, secret *corev1.Secret, fence *controllers.Fence) (*client, error) {
	if len(config.Addresses) == 0 {
		return nil, errors.New("not found opensearch address")
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	var user, password string
	if secret != nil {
		user = cmp.Or(string(secret.Data[keyUserName]), string(secret.Data[keyUserNameOfText]))
		password = string(secret.Data[keyPassword])
		if ca := secret.Data[keyCA]; len(ca) > 0 {
			settings.RootCAs = x509.NewCertPool()
			if !settings.RootCAs.AppendCertsFromPEM(ca) {
				return nil, fmt.Errorf("key %s of Secret %s/%s has no certificate", keyCA, secret.Namespace, secret.Name)
			}
		}
		if cert := secret.Data[corev1.TLSCertKey]; len(cert) > 0 {
			pair, err := tls.X509KeyPair(cert, secret.Data[corev1.TLSPrivateKeyKey])
			if err != nil {
				return nil, fmt.Errorf("reading %s and %s of Secret %s/%s: %w", corev1.TLSCertKey, corev1.TLSPrivateKeyKey, secret.Namespace, secret.Name, err)
			}
			settings.Certificates = []tls.Certificate{pair}
		}
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: settings, TLSHandshakeTimeout: requestTimeout, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
	}
	api, err := opensearchapi.NewClient(opensearchapi.Config{Client: opensearch.Config{
		Addresses: config.Addresses, Username: user, Password: password, Transport: fence.Wrap(limited{transport}),
		// Another address is tried at once; all else is tried again with a back-off.
		MaxRetries: len(config.Addresses) - 1, DisableRetry: len(config.Addresses) == 1, RetryOnStatus: []int{http.StatusBadGateway},
	}})
	if err != nil {
		return nil, fmt.Errorf("preparing the client of OpenSearch: %w", err)
	}
	return &client{api, transport}, nil
}

// limited ends answers that are too long with an error.
type limited struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswer)
	}
	return resp, err
}

// ensure creates the index, or adds the fields that it lacks.
func (c *client) ensure(ctx context.Context, index string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	settings, mapping, err := search.IndexSettings()
	if err != nil {
		return err
	}
	_, err = c.api.Indices.Create(ctx, opensearchapi.IndicesCreateReq{Index: index, Body: bytes.NewReader(settings)})
	if failed, ok := errors.AsType[*opensearch.StructError](err); ok && failed.Err.Type == "resource_already_exists_exception" {
		_, err = c.api.Indices.Mapping.Put(ctx, opensearchapi.MappingPutReq{Indices: []string{index}, Body: bytes.NewReader(mapping)})
	}
	if err != nil {
		return fmt.Errorf("preparing index %s: %w", index, err)
	}
	return nil
}

// write is one line of a bulk request: without a document, a deletion.
type write struct {
	id       string
	document []byte
}

// body appends the lines of a write.
func (w *write) appendTo(to *bytes.Buffer) error {
	action := "delete"
	if w.document != nil {
		action = "index"
	}
	line, err := json.Marshal(map[string]any{action: map[string]string{"_id": w.id}})
	if err != nil {
		return fmt.Errorf("encoding a bulk request: %w", err)
	}
	to.Write(line)
	to.WriteByte('\n')
	if w.document != nil {
		to.Write(w.document)
		to.WriteByte('\n')
	}
	return nil
}

// outcome is what became of a write.
type outcome struct {
	// again reports that the server is busy; otherwise a write with a reason is refused.
	again  bool
	reason string
}

// bulk writes many, and returns what became of each. An error is about all of them.
func (c *client) bulk(ctx context.Context, index string, writes []write) ([]outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var body bytes.Buffer
	for i := range writes {
		if err := writes[i].appendTo(&body); err != nil {
			return nil, err
		}
	}
	resp, err := c.api.Bulk(ctx, opensearchapi.BulkReq{Index: index, Body: &body})
	if resp != nil && resp.Inspect().Response != nil && resp.Inspect().Response.StatusCode == http.StatusRequestEntityTooLarge {
		return nil, errTooLarge
	}
	if err != nil {
		return nil, fmt.Errorf("writing %d documents to index %s: %w", len(writes), index, err)
	}
	if len(resp.Items) != len(writes) {
		return nil, fmt.Errorf("writing %d documents to index %s: the server answered for %d", len(writes), index, len(resp.Items))
	}
	out := make([]outcome, len(writes))
	for i, item := range resp.Items {
		for _, result := range item {
			if result.Status < http.StatusMultipleChoices || result.Status == http.StatusNotFound && writes[i].document == nil {
				continue
			}
			out[i].again = result.Status == http.StatusTooManyRequests || result.Status >= http.StatusInternalServerError
			out[i].reason = http.StatusText(result.Status)
			if result.Error != nil {
				out[i].reason = result.Error.Type + ": " + result.Error.Reason
			}
		}
	}
	return out, nil
}

// errTooLarge is the error for a request that the server finds too long.
var errTooLarge = errors.New("the server refuses requests of this length")

// query selects documents: those that have all, and none of not, by the field.
type query struct {
	has map[string]string
	not map[string][]string
}

// body returns the query in JSON.
func (q query) body() (io.Reader, error) {
	filter := make([]any, 0, len(q.has))
	for field, value := range q.has {
		filter = append(filter, map[string]any{"term": map[string]string{field: value}})
	}
	not := make([]any, 0, len(q.not))
	for field, values := range q.not {
		if len(values) > 0 {
			not = append(not, map[string]any{"terms": map[string][]string{field: values}})
		}
	}
	data, err := json.Marshal(map[string]any{"query": map[string]any{"bool": map[string]any{"filter": filter, "must_not": not}}})
	if err != nil {
		return nil, fmt.Errorf("encoding a query: %w", err)
	}
	return bytes.NewReader(data), nil
}

// purge deletes the documents of indices that a query selects. Indices that do not exist have none.
func (c *client) purge(ctx context.Context, indices string, q query) error {
	ctx, cancel := context.WithTimeout(ctx, purgeTimeout)
	defer cancel()
	body, err := q.body()
	if err != nil {
		return err
	}
	yes := true
	// Documents that were written just now are found after a refresh only.
	if _, err := c.api.Indices.Refresh(ctx, &opensearchapi.IndicesRefreshReq{
		Indices: []string{indices}, Params: opensearchapi.IndicesRefreshParams{IgnoreUnavailable: &yes, AllowNoIndices: &yes},
	}); err != nil {
		return fmt.Errorf("refreshing index %s: %w", indices, err)
	}
	_, err = c.api.Document.DeleteByQuery(ctx, opensearchapi.DocumentDeleteByQueryReq{
		Indices: []string{indices}, Body: body,
		Params: opensearchapi.DocumentDeleteByQueryParams{Conflicts: "proceed", IgnoreUnavailable: &yes, AllowNoIndices: &yes},
	})
	if err != nil {
		return fmt.Errorf("deleting documents of index %s: %w", indices, err)
	}
	return nil
}

// close ends the connections.
func (c *client) close() { c.transport.CloseIdleConnections() }
