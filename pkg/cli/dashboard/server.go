package dashboard

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed assets
var embedded embed.FS

const (
	// maxStreams is the number of pages that get updates at a time.
	maxStreams = 64
	// maxBody is the size in bytes of the largest file that is planned.
	maxBody = 4 << 20
	// requestTimeout bounds the time of a page.
	requestTimeout = 30 * time.Second
	// contentPolicy is the Content-Security-Policy of all answers.
	contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

// server serves the pages on a port of 127.0.0.1.
//
// Who has the cookie may read. The address that gives it has a token, which works once. Browsers send cookies of a host to each of its
// ports: that of the dashboard is limited to a path with a random part, which servers of other users of the machine do not know.
type server struct {
	*pages
	port int
	// base is the path of all pages, with a slash at both ends.
	base string
	// session is the value of the cookie.
	session string

	mu sync.Mutex
	// token is what gives the cookie; empty after it did.
	token   string
	streams int
}

// newServer returns a server of pages.
func newServer(p *pages, port int) *server {
	return &server{pages: p, port: port, base: "/" + random(8) + "/", session: random(32), token: random(32)}
}

// random returns random bytes in hexadecimal digits.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it does not fail
	return hex.EncodeToString(b)
}

// url returns the address that gives the cookie.
func (s *server) url() string {
	return fmt.Sprintf("http://127.0.0.1:%d%s?token=%s", s.port, s.base, s.token)
}

// cookie returns the name of the cookie. Each dashboard on a machine has its own.
func (s *server) cookie() string { return fmt.Sprintf("karmada-dashboard-%d", s.port) }

// serve serves until ctx ends.
func (s *server) serve(ctx context.Context, listener net.Listener) error {
	h := &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: requestTimeout, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = h.Close() })
	defer stop()
	if err := h.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the dashboard: %w", err)
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if !s.own(r.Host) {
		s.refuse(w, r, http.StatusForbidden, "This is not the address of the dashboard", "The dashboard answers at 127.0.0.1 and localhost only.")
		return
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		s.refuse(w, r, http.StatusForbidden, "Another page sent this request", "The dashboard answers requests of its own pages only.")
		return
	}
	path, found := strings.CutPrefix(r.URL.Path, s.base)
	switch token := r.URL.Query().Get("token"); {
	case found && s.admitted(r) && token != "", found && token != "" && s.redeem(token):
		s.admit(w)
	case !found || !s.admitted(r):
		s.refuse(w, r, http.StatusUnauthorized, "The dashboard does not know this browser",
			"Open the address that the command printed. It works in one browser: for another one, run the command again.")
	case r.Method != http.MethodGet && r.Method != http.MethodPost:
		s.refuse(w, r, http.StatusMethodNotAllowed, "The dashboard does not know this method", "It only reads.")
	default:
		s.route(w, r, path)
	}
}

// own reports whether a Host is that of the dashboard. Another one is a name that resolves to this machine by an attacker's DNS.
func (s *server) own(host string) bool {
	return slices.Contains([]string{fmt.Sprintf("127.0.0.1:%d", s.port), fmt.Sprintf("localhost:%d", s.port)}, host)
}

// admitted reports whether a request has the cookie.
func (s *server) admitted(r *http.Request) bool {
	return slices.ContainsFunc(r.CookiesNamed(s.cookie()), func(c *http.Cookie) bool {
		return subtle.ConstantTimeCompare([]byte(c.Value), []byte(s.session)) == 1
	})
}

// redeem reports whether a token gives the cookie.
func (s *server) redeem(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == "" || subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 {
		return false
	}
	s.token = ""
	return true
}

// admit sets the cookie and goes to the first page. That is a navigation of this page and no redirection: a browser that came from another
// site would not send the cookie with one.
func (s *server) admit(w http.ResponseWriter) {
	//nolint:gosec // Secure cookies are not sent to 127.0.0.1 by every browser
	http.SetCookie(w, &http.Cookie{Name: s.cookie(), Value: s.session, Path: s.base, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	s.render(w, http.StatusOK, "admitted", s.base)
}

// refuse answers with an error.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, code int, title, text string) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	s.render(w, code, "refused", struct{ Title, Text string }{title, text})
}

// route serves a path below the base.
func (s *server) route(w http.ResponseWriter, r *http.Request, path string) {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	switch r.Body = http.MaxBytesReader(w, r.Body, maxBody); {
	case path == "events":
		s.stream(w, r)
		return
	case strings.HasPrefix(path, "assets/"):
		s.asset(w, r, path)
		return
	}
	show := map[string]func(context.Context, *http.Request) (*view, error){
		"": s.overview, "workload": s.workload, "cluster": s.cluster, "policies": s.policies, "policy": s.policy, "plan": s.plan,
	}[path]
	if show == nil || r.Method == http.MethodPost && path != "plan" {
		s.show(w, &view{page: "failed", Title: "There is no such page", code: http.StatusNotFound})
		return
	}
	if s.live.state().reading {
		s.show(w, &view{page: "failed", Title: "Reading the federation", Next: "The page appears when clusters and workloads were read.", Live: true})
		return
	}
	v, err := show(ctx, r)
	if err != nil {
		v = failed(err)
	}
	s.show(w, v)
}

// asset serves a file of the program.
func (s *server) asset(w http.ResponseWriter, r *http.Request, path string) {
	w.Header().Set("Cache-Control", "max-age=3600")
	if info, err := fs.Stat(embedded, path); err != nil || info.IsDir() || strings.HasSuffix(path, ".html") {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	http.StripPrefix(s.base, http.FileServerFS(embedded)).ServeHTTP(w, r)
}

// show writes a page.
func (s *server) show(w http.ResponseWriter, v *view) {
	v.frame(s.live.state(), s.reader.Now())
	s.render(w, max(v.code, http.StatusOK), v.page, v)
}

// render writes a template, or an error if it fails.
func (s *server) render(w http.ResponseWriter, code int, name string, data any) {
	var body bytes.Buffer
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := s.templates[name].Execute(&body, data); err != nil {
		code = http.StatusInternalServerError
		body.Reset()
		template.HTMLEscape(&body, []byte(err.Error()))
	}
	w.WriteHeader(code)
	_, _ = body.WriteTo(w)
}

// stream sends an event whenever the state that a page shows is another one.
func (s *server) stream(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	full := s.streams >= maxStreams
	if !full {
		s.streams++
	}
	s.mu.Unlock()
	if full {
		w.Header().Set("Retry-After", "10")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer func() {
		s.mu.Lock()
		s.streams--
		s.mu.Unlock()
	}()
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", "text/event-stream")
	of := topicOf(r.URL.Query())
	shown, next := s.live.following()
	text := "retry: 1000\n\n"
	for {
		if _, err := w.Write([]byte(text)); err != nil || control.Flush() != nil {
			return
		}
		for text = ""; text == ""; {
			select {
			case <-r.Context().Done():
				return
			case <-next:
			}
			var now *state
			if now, next = s.live.following(); of.differs(shown, now) {
				shown, text = now, "event: update\ndata: -\n\n"
			}
		}
	}
}
