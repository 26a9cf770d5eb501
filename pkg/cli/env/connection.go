package env

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/karmada-toolkit/karmada/internal/private"
	"github.com/karmada-toolkit/karmada/internal/version"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

const (
	// answerLimit is how long a server may take to answer a request before it is probed. A server that answers the probe
	// is slow, one that does not is reported.
	answerLimit = 6 * time.Second
	// probeShare is the part of answerLimit that a probe may take. With one probe before the first request, a silent
	// server is reported after 10 s.
	probeShare = 3
	// federationFile is the file in the directory of a local federation.
	federationFile = "federation.json"
)

// ConnectionError is why no request reaches the control plane. Its text is complete: it names the server and the next
// step.
type ConnectionError struct {
	message string
	err     error
}

// Error implements error.
func (e *ConnectionError) Error() string { return e.message }

// Unwrap returns the error of the transport.
func (e *ConnectionError) Unwrap() error { return e.err }

// ConnectionFailure returns the ConnectionError in the chain of an error, or nil. Of several errors each must have it.
func ConnectionFailure(err error) *ConnectionError {
	if list, ok := errors.AsType[utilerrors.Aggregate](err); ok {
		var found *ConnectionError
		for _, one := range list.Errors() {
			if found = ConnectionFailure(one); found == nil {
				return nil
			}
		}
		return found
	}
	if found, ok := errors.AsType[*ConnectionError](err); ok {
		return found
	}
	return nil
}

// limits are how long a server may be silent.
type limits struct {
	// answer, probe and alive are the limits of a request, a probe, and a probe of the API server itself.
	answer, probe, alive time.Duration
	// total is what errors name.
	total time.Duration
	// limited reports whether they are of --request-timeout.
	limited bool
}

// limitsOf returns the limits with which a silent server is reported before requests of a timeout end: a probe may be sent
// before the first request, and one while it is not answered.
func limitsOf(timeout time.Duration) limits {
	return limits{answer: 2 * timeout / 5, probe: timeout / 5, alive: timeout / 5, total: timeout, limited: true}
}

// connection explains, once for all commands, why the control plane cannot be reached.
type connection struct {
	// flags are those of the control plane; nil for another server.
	flags *genericclioptions.ConfigFlags
	// kubeconfig returns the path of the kubeconfig file in use, or "". Optional.
	kubeconfig func() string
	// program is what the user types, choose the flag that names a control plane, by default --kubeconfig.
	program, choose string
	// last receives each failure, foreign that the server is no control plane, unserved that it does not serve the API of
	// clusters, unadmitted what to say of a webhook that it cannot call.
	last, foreign, unserved, unadmitted *atomic.Pointer[ConnectionError]
	// defaults are the limits without --request-timeout.
	defaults limits

	looked sync.Once
	// answered is set once the server answered anything.
	answered atomic.Bool
	mu       sync.Mutex
	// failed is set once the server did not answer: other requests would wait as long. hangs is the same for the
	// aggregated API server alone.
	failed, hangs *ConnectionError
}

// wrap is the last change of the configuration of clients of the control plane.
func (c *connection) wrap(config *rest.Config) *rest.Config {
	config = unlimited(config)
	if v := version.Get(); config.UserAgent == "" {
		config.UserAgent = fmt.Sprintf("karmadactl/%s (%s) kubernetes/%s", v.GitVersion, v.Platform, cmp.Or(v.GitShortCommit, "unknown"))
	}
	if c.flags != nil && strings.HasSuffix(config.Host, "localhost:8080") {
		if raw, err := c.flags.ToRawKubeConfigLoader().RawConfig(); err == nil && len(raw.Clusters) == 0 && *c.flags.APIServer == "" {
			c.failed = &ConnectionError{message: noKubeconfig(c.program)}
		}
	}
	own := c.defaults
	if config.Timeout > 0 { // by --request-timeout
		own = limitsOf(config.Timeout)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &roundTripper{connection: c, next: next, limits: own, path: basePath(config.Host)}
	})
	return config
}

// basePath returns the path of the URL of a server.
func basePath(host string) string {
	if u, err := url.Parse(host); err == nil && u.Host != "" {
		return strings.TrimRight(u.Path, "/")
	}
	return ""
}

// missingKubeconfig returns the error text for a file of $KUBECONFIG that does not exist, or "". flag names a kubeconfig.
func missingKubeconfig(flag string) string {
	for _, path := range filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar)) {
		if _, err := os.Stat(path); path != "" && err != nil { //nolint:gosec // the user's own variable
			return fmt.Sprintf("no kubeconfig was found: $KUBECONFIG names %s, which does not exist; correct it, or name a kubeconfig with %s", path, flag)
		}
	}
	return ""
}

// noKubeconfig returns the error text of a command that needs the kubeconfig of a control plane and finds none. program is
// what the user types.
func noKubeconfig(program string) string {
	if missing := missingKubeconfig("--kubeconfig"); missing != "" {
		return missing
	}
	return fmt.Sprintf("%s. %q starts a federation on this machine", noKubeconfigWith("--kubeconfig"), program+" local up")
}

// noKubeconfigWith returns the error text of a command that finds no kubeconfig, which a flag names.
func noKubeconfigWith(flag string) string {
	return fmt.Sprintf("no kubeconfig was found; name one with %s or $KUBECONFIG", flag)
}

// refused explains a connection that the server refuses.
func (c *connection) refused(host string, err error) *ConnectionError {
	message := fmt.Sprintf("The connection to the server %s was refused - did you specify the right host or port?", host)
	if name, flags := c.localFederation(); name != "" {
		message = fmt.Sprintf("the local federation %q is not running: %s refuses connections; %q starts it",
			name, host, c.program+" local up"+flags)
	}
	return &ConnectionError{message: message, err: err}
}

// localFederation returns the name of the federation of this machine that the kubeconfig belongs to, or "", and the flags of
// "local" that name it.
func (c *connection) localFederation() (name, flags string) {
	if c.kubeconfig == nil {
		return "", ""
	}
	root, name := federationOf(c.kubeconfig())
	return name, localFlags(root, name)
}

// localFlags returns the flags of "local" that name a federation.
func localFlags(root, name string) string {
	out := " --name " + name
	if byDefault, err := private.Federations(os.Getenv); err != nil || root != byDefault {
		out += " --dir " + root
	}
	return out
}

// federationOf returns the federation of this machine that a kubeconfig file belongs to, and the directory that has its
// directory; both are "" if there is none.
func federationOf(path string) (root, name string) {
	if path == "" {
		return "", ""
	}
	dir := filepath.Dir(path)
	if absolute, err := filepath.Abs(dir); err == nil {
		dir = absolute
	}
	if _, err := os.Stat(filepath.Join(dir, federationFile)); err != nil {
		return "", ""
	}
	return filepath.Dir(dir), filepath.Base(dir)
}

// notServed explains, and records, that a control plane does not serve the API of clusters.
func (c *connection) notServed(host string, err error) *ConnectionError {
	failure := &ConnectionError{err: err, message: fmt.Sprintf(
		"the control plane %s does not serve the API of member clusters (%s): its aggregated API server is unavailable; %s", host, clusterv1alpha1.GroupName, c.restart("karmada-aggregated-apiserver"))}
	c.unserved.Store(failure)
	return failure
}

// restart returns the next step if a role of the control plane does not run.
func (c *connection) restart(role string) string {
	if name, flags := c.localFederation(); name != "" {
		return fmt.Sprintf("%q shows what does not run, %q starts it", c.program+" local status"+flags, c.program+" local up"+flags)
	}
	return fmt.Sprintf("see whether the pods of %s run in the host cluster", role)
}

// notAdmitted records what to say if an internal error of a control plane is that it cannot call its webhook.
func (c *connection) notAdmitted(host string) {
	c.unadmitted.Store(&ConnectionError{message: fmt.Sprintf(
		"the control plane %s cannot admit the change: its admission webhook is unavailable; %s", host, c.restart("karmada-webhook"))})
}

// noControlPlane explains, and records, that a server is no control plane.
func (c *connection) noControlPlane(host string, err error) *ConnectionError {
	failure := &ConnectionError{err: err, message: fmt.Sprintf(
		"the server %s is no karmada control plane: it has no API of member clusters (%s); choose one with %s and --karmada-context",
		host, clusterv1alpha1.GroupName, cmp.Or(c.choose, "--kubeconfig"))}
	c.foreign.Store(failure)
	return failure
}

func (c *connection) failure() *ConnectionError {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

func (c *connection) fail(err *ConnectionError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = err
}

func (c *connection) hanging() *ConnectionError {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hangs
}

func (c *connection) hang(err *ConnectionError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hangs = err
}
