package kindcluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/karmada-toolkit/karmada/pkg/local/federation"
)

// engineVariable names the container engine, as it does for kind.
const engineVariable = "KIND_EXPERIMENTAL_PROVIDER"

// engineTimeout bounds a probe of a container engine.
const engineTimeout = 10 * time.Second

// engine is the container engine that runs the nodes of kind clusters.
type engine struct {
	name   string
	option cluster.ProviderOption
}

// engines are those that kind supports, in the order in which they are tried.
func engines() []engine {
	return []engine{
		{"docker", cluster.ProviderWithDocker()},
		{"podman", cluster.ProviderWithPodman()},
		{"nerdctl", cluster.ProviderWithNerdctl("")},
	}
}

// findEngine returns the first container engine that answers.
func findEngine(ctx context.Context, getenv func(string) string) (engine, error) {
	wanted := getenv(engineVariable)
	var errs []error
	for _, e := range engines() {
		if wanted != "" && wanted != e.name {
			continue
		}
		if _, err := exec.LookPath(e.name); err != nil {
			errs = append(errs, fmt.Errorf("%s is not on the PATH", e.name))
			continue
		}
		if err := e.answers(ctx); err != nil {
			errs = append(errs, err)
			continue
		}
		return e, nil
	}
	if len(errs) == 0 {
		errs = append(errs, fmt.Errorf("$%s is %q, use docker, podman or nerdctl", engineVariable, wanted))
	}
	return engine{}, fmt.Errorf("no container engine answers, which the runtime %q needs: %w; start Docker, or leave out --runtime to use processes", federation.RuntimeKind, errors.Join(errs...))
}

func (e engine) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, engineTimeout, fmt.Errorf("no answer within %s", engineTimeout))
	defer cancel()
	_, err := e.run(ctx, "info")
	return err
}

// run runs the engine's own command line and returns its output. Errors end with the
// last line of what the engine printed to stderr.
func (e engine) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, e.name, args...) //nolint:gosec // one of the three engines
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		reason := cmp.Or(lastLine(stderr.String()), federation.Cause(ctx, err).Error())
		return "", fmt.Errorf("%s %s: %s", e.name, args[0], reason)
	}
	return strings.TrimSpace(stdout.String()), nil
}

// lastLine returns the last line of what a command printed, without the advice to read the help of the engine.
func lastLine(text string) string {
	last := ""
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "Run '") && !strings.HasPrefix(line, "See '") {
			last = line
		}
	}
	return last
}

// nodeState is the state of the container of a node.
type nodeState struct {
	running bool
	since   time.Time
}

// inspect returns the state of a node's container.
func (e engine) inspect(ctx context.Context, node string) (nodeState, error) {
	out, err := e.run(ctx, "inspect", "--type", "container", "--format", "{{.State.Running}} {{.State.StartedAt}}", node)
	if err != nil {
		return nodeState{}, err
	}
	running, started, _ := strings.Cut(out, " ")
	since, err := time.Parse(time.RFC3339Nano, started)
	if err != nil {
		since = time.Time{} // an engine with another notation; only the age is lost
	}
	return nodeState{running: running == "true", since: since}, nil
}

// has reports whether the engine has an image.
func (e engine) has(ctx context.Context, image string) bool {
	_, err := e.run(ctx, "image", "inspect", "--format", "{{.Id}}", image)
	return err == nil
}
