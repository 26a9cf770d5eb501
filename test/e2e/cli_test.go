package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// result is what a command printed.
type result struct {
	out, err string
	code     int
}

// ctl runs karmadactl with the kubeconfig of the federation and input on stdin.
func ctl(input string, args ...string) result {
	cmd := exec.Command(filepath.Join(bin, "karmadactl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "XDG_STATE_HOME="+stateDir)
	cmd.Stdin = strings.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	r := result{out: stdout.String(), err: stderr.String(), code: cmd.ProcessState.ExitCode()}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.err, r.code = err.Error(), -1
	}
	return r
}

// must runs a command that has to succeed and returns what it printed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	return mustWith(t, "", args...)
}

func mustWith(t *testing.T, input string, args ...string) string {
	t.Helper()
	r := ctl(input, args...)
	if r.code != 0 {
		t.Fatalf("karmadactl %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r.out
}

// fails runs a command that has to fail and returns what it said.
func fails(t *testing.T, input string, args ...string) string {
	t.Helper()
	r := ctl(input, args...)
	if r.code == 0 {
		t.Fatalf("karmadactl %s succeeded\n%s%s", strings.Join(args, " "), r.out, r.err)
	}
	return r.err
}

// apply applies manifests in a namespace.
func apply(t *testing.T, namespace string, manifests ...string) {
	t.Helper()
	mustWith(t, strings.Join(manifests, "\n---\n"), "apply", "-n", namespace, "-f", "-")
}

// member runs a command on a member directly, past the control plane.
func member(name string, args ...string) []string {
	return append(args, "--karmada-context", name)
}

// inBothModes runs a test on the member in Push mode and on the one in Pull mode, beside one another: the objects of a member are
// applied, watched and deleted by the control plane, or by its agent.
func inBothModes(t *testing.T, test func(t *testing.T, member string)) {
	t.Helper()
	for _, name := range []string{"member1", "member2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, name)
		})
	}
}

// eventually waits until check returns nothing to complain about.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	within(t, under.timeout(), check)
}

func within(t *testing.T, limit time.Duration, check func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %v", limit, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// is expects a value.
func is(context, namespace, object, path, want string) func() error {
	return func() error {
		got, err := value(context, namespace, object, path)
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("%s %s of %s/%s is %q, not %q", or(context, "control plane"), path, namespace, object, got, want)
		}
		return nil
	}
}

// targets expects a binding to be scheduled to clusters, in any order.
func targets(namespace, binding string, want ...string) func() error {
	return func() error {
		out, err := value("", namespace, "rb/"+binding, "{.spec.clusters[*].name}")
		if err != nil {
			return err
		}
		got := strings.Fields(out)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("binding %s/%s goes to %v, not %v", namespace, binding, got, want)
		}
		return nil
	}
}

// explained expects texts in what why prints about an object.
func explained(namespace, object string, want ...string) func() error {
	return func() error {
		r := ctl("", "why", object, "-n", namespace)
		text := strings.Join(strings.Fields(r.out), " ")
		for _, w := range want {
			if r.code != 0 || !strings.Contains(text, w) {
				return fmt.Errorf("why %s: exit code %d, and no %q in\n%s%s", object, r.code, w, r.out, r.err)
			}
		}
		return nil
	}
}

// absent expects that a member does not have an object.
func absent(context, namespace, object string) func() error {
	return func() error {
		_, err := value(context, namespace, object, "{.metadata.name}")
		switch {
		case err == nil:
			return fmt.Errorf("%s/%s is in %s", namespace, object, context)
		case strings.Contains(strings.ToLower(err.Error()), "not found"):
			return nil
		default:
			return err
		}
	}
}

// all joins expectations.
func all(checks ...func() error) func() error {
	return func() error {
		for _, check := range checks {
			if err := check(); err != nil {
				return err
			}
		}
		return nil
	}
}

// row is a line of a table by the heading of its columns.
type row map[string]string

// table parses what get prints. Cells must not hold two spaces in a row.
func table(out string) []row {
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	var rows []row
	var heading string
	for _, line := range lines {
		if strings.HasPrefix(line, "NAME") || strings.HasPrefix(line, "CLUSTER ") {
			heading = line
			continue
		}
		if line == "" || heading == "" {
			continue
		}
		rows = append(rows, cells(heading, line))
	}
	return rows
}

func cells(heading, line string) row {
	r := row{}
	names := strings.Fields(heading)
	from := 0
	starts := make([]int, len(names)+1)
	for i, name := range names {
		starts[i] = from + strings.Index(heading[from:], name)
		from = starts[i] + len(name)
	}
	starts[len(names)] = len(line)
	for i, name := range names {
		begin, end := min(starts[i], len(line)), min(starts[i+1], len(line))
		r[name] = strings.TrimSpace(line[begin:end])
	}
	return r
}

// shows expects a row with the given cells in the table that args print.
func shows(want row, args ...string) func() error {
	return func() error {
		r := ctl("", args...)
		if r.code != 0 {
			return fmt.Errorf("%s%s", r.out, r.err)
		}
	rows:
		for _, got := range table(r.out) {
			for column, cell := range want {
				if got[column] != cell {
					continue rows
				}
			}
			return nil
		}
		return fmt.Errorf("no row %v in\n%s%s", want, r.out, r.err)
	}
}

// namespace makes a namespace for a test and removes it afterwards. It is what tests
// on the federation begin with.
func namespace(t *testing.T) string {
	t.Helper()
	if err := started(); err != nil {
		t.Fatal(err)
	}
	name := strings.ToLower(strings.NewReplacer("_", "-", "/", "-").Replace(t.Name()))
	name = strings.TrimPrefix(name, "test")
	if len(name) > 50 {
		name = strings.TrimRight(name[:50], "-")
	}
	must(t, "create", "namespace", name)
	t.Cleanup(func() {
		ctl("", "delete", "propagationpolicies,overridepolicies", "--all", "-n", name)
		ctl("", "delete", "namespace", name, "--wait=false")
	})
	return name
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// Objects that only members have are completed.
func TestCompletion_NamesOfMembers(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, deployment("web", 1), policy("web", to("member1")))
	for _, line := range []string{"get pods", "describe pod", "logs", "exec"} {
		eventually(t, func() error {
			out := ctl("", append(append([]string{"__complete", "-n", ns}, strings.Fields(line)...), "web-")...).out
			if !strings.HasPrefix(out, "web-") {
				return fmt.Errorf("%s completes %q", line, out)
			}
			return nil
		})
	}
}
