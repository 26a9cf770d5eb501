package webhook

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// MaxBodyBytes is the largest body of a request that is read, on every path: two
// objects of 3 MiB, which is the largest that the API server accepts, and 1 MiB
// for the rest of a review.
const MaxBodyBytes = 7 << 20

const (
	// bodyTimeout is how long a client may take to send the body of a request. API
	// servers give a webhook at most 30 s for everything.
	bodyTimeout = 15 * time.Second
	// anonymousRequests is how many requests without a client certificate are
	// processed at the same time; more wait for their turn. Together with
	// MaxBodyBytes it bounds the memory that every client of the port can take.
	anonymousRequests = 16
)

// convertPath is where the API server converts custom resources. It presents no
// client certificate there.
const convertPath = "/convert"

// limited returns the handler of a path that reads no body larger than
// MaxBodyBytes and waits for none longer than bodyTimeout.
func limited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer limitBody(w, r)()
		next.ServeHTTP(w, r)
	})
}

// limitBody limits size and time of the body of a request until the returned
// function is called.
func limitBody(w http.ResponseWriter, r *http.Request) (stop func()) {
	if r.Body == nil || r.Body == http.NoBody {
		return func() {}
	}
	r.Body = http.MaxBytesReader(w, r.Body, MaxBodyBytes)
	control := http.NewResponseController(w)
	timer := time.AfterFunc(bodyTimeout, func() {
		_ = control.SetReadDeadline(time.Unix(1, 0)) // a time in the past ends what reads
	})
	return func() { timer.Stop() }
}

// buffered returns the handler of a path for every client: the whole body is read
// before it is decoded, and only slots requests are processed at a time.
func buffered(next http.Handler, slots int) http.Handler {
	turns := make(chan struct{}, slots)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > MaxBodyBytes {
			tooLarge(w)
			return
		}
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
		case <-r.Context().Done():
			return
		}
		stop := limitBody(w, r)
		body, err := io.ReadAll(r.Body)
		stop()
		var large *http.MaxBytesError
		switch {
		case errors.As(err, &large):
			tooLarge(w)
			return
		case err != nil:
			http.Error(w, "the request body cannot be read", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// tooLarge answers a request whose body is over the limit.
func tooLarge(w http.ResponseWriter) {
	http.Error(w, fmt.Sprintf("request entity is too large; limit is %d bytes", MaxBodyBytes), http.StatusRequestEntityTooLarge)
}

// authenticated returns the handler of a path for the API server only: the
// request must come with a verified client certificate of one of the common
// names. No names allow every certificate of the authority.
func authenticated(next http.Handler, commonNames []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, ok := clientName(r.TLS)
		switch {
		case !ok:
			http.Error(w, "a client certificate of the API server is required; see --client-ca-file", http.StatusUnauthorized)
		case len(commonNames) > 0 && !slices.Contains(commonNames, name):
			http.Error(w, fmt.Sprintf("client %q may not send admission reviews; see --client-allowed-names", name), http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// clientName returns the common name of the verified certificate of a client, and
// reports whether there is one.
func clientName(state *tls.ConnectionState) (string, bool) {
	if state == nil || len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return "", false
	}
	return state.VerifiedChains[0][0].Subject.CommonName, true
}

// protected returns the handlers as they are served: every body is limited, and
// admission is for the API server only if client certificates are requested.
func (o *Options) protected(handlers map[string]http.Handler) map[string]http.Handler {
	out := map[string]http.Handler{}
	for path, handler := range handlers {
		switch {
		case path == convertPath:
			handler = buffered(handler, anonymousRequests)
		case o.ClientCAFile != "" && isAdmission(path):
			handler = authenticated(limited(handler), o.ClientAllowedNames)
		default:
			handler = limited(handler)
		}
		out[path] = handler
	}
	return out
}

// isAdmission reports whether a path serves admission reviews.
func isAdmission(path string) bool {
	return strings.HasPrefix(path, "/mutate-") || strings.HasPrefix(path, "/validate-")
}
