package process

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/karmada-toolkit/karmada/internal/kubelite/ready"
	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/private"
	"github.com/karmada-toolkit/karmada/internal/wait"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
	"github.com/karmada-toolkit/karmada/pkg/local/settings"
)

const (
	// stopGrace is how long a process may take to end after a signal.
	stopGrace = 15 * time.Second
	// pollInterval is the time between two checks of a process or server.
	pollInterval = 20 * time.Millisecond
)

// record identifies a process across runs of the program: its number alone may
// belong to another process by now.
type record struct {
	PID     int       `json:"pid"`
	Started string    `json:"started"`
	Time    time.Time `json:"time"`
	Command []string  `json:"command"`
}

// process is a process of a federation.
type process struct {
	name string
	dir  federation.Dir
}

// running returns the record of the process if it is alive.
func (p process) running() (record, bool) {
	r := p.read()
	// In this order: what is killed now may be gone at the next check.
	if killed(r.PID) {
		return r, false
	}
	return p.present()
}

// read returns the record of the process, or an empty one.
func (p process) read() (r record) {
	data, err := private.ReadFile(p.dir.Record(p.name))
	if err != nil || json.Unmarshal(data, &r) != nil {
		return record{}
	}
	return r
}

// present is running, but also true of a process that is being killed and has not
// ended yet.
func (p process) present() (record, bool) {
	r := p.read()
	if r.PID == 0 {
		return r, false
	}
	started, err := startOf(r.PID)
	return r, err == nil && started == r.Started
}

// awaitEnd waits until nothing is left of an earlier process of this name, so that
// its files can be locked again.
func (p process) awaitEnd(ctx context.Context) {
	r, alive := p.running()
	if alive || r.PID == 0 {
		return
	}
	_ = wait.Until(ctx, wait.Options{Interval: pollInterval, Timeout: stopGrace}, func(context.Context) error {
		if _, present := p.present(); present || ending(r.PID) {
			return errors.New("it is still ending")
		}
		return nil
	})
}

// child is a process that this program started.
type child struct {
	record
	process
	// exited is closed when the process has ended, with err.
	exited chan struct{}
	err    error
}

// start runs a program apart from this one, with its output in the log. The
// process lives on when this program ends.
func (p process) start(now time.Time, program string, args ...string) (*child, error) {
	for _, path := range []string{p.dir.Log(p.name), p.dir.Record(p.name)} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, fmt.Errorf("starting %s: %w", p.name, err)
		}
	}
	log, err := private.OpenFile(p.dir.Log(p.name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.name, err)
	}
	defer log.Close() //nolint:errcheck // the process has its own handle
	_, _ = fmt.Fprintf(log, "--- %s: starting %s %s\n", now.UTC().Format(time.RFC3339), program, strings.Join(args, " "))
	cmd := exec.Command(program, args...) //nolint:gosec // the program was looked up by name; it outlives every context
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = string(p.dir)
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.name, err)
	}
	c := &child{process: p, exited: make(chan struct{})}
	started, err := startOf(cmd.Process.Pid)
	go func() {
		c.err = cmd.Wait()
		close(c.exited)
	}()
	if err != nil {
		return nil, fmt.Errorf("starting %s: it ended at once; log: %s", p.name, p.dir.Log(p.name))
	}
	c.record = record{PID: cmd.Process.Pid, Started: started, Time: now, Command: cmd.Args}
	data, err := json.Marshal(c.record)
	if err == nil {
		err = pki.WriteFile(p.dir.Record(p.name), data, 0o600)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		return nil, fmt.Errorf("starting %s: remembering the process: %w", p.name, err)
	}
	return c, nil
}

// during returns a context that ends when the process does, with the reason and the
// path of the log as its cause.
func (c *child) during(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-c.exited:
			cancel(c.failure())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// errEnded is the cause of a context that ends with a process that ran before this program.
var errEnded = errors.New("it ended")

// during returns a context that ends with a process that runs already, with errEnded as its cause.
func (p process) during(ctx context.Context, r record) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		err := wait.Until(ctx, wait.Options{Interval: 5 * pollInterval}, func(context.Context) error {
			if now, present := p.present(); present && now.PID == r.PID {
				return errors.New("it is still running")
			}
			return nil
		})
		if err == nil {
			cancel(fmt.Errorf("%s, process %d: %w", p.name, r.PID, errEnded))
		}
	}()
	return ctx, func() { cancel(nil) }
}

// retryEnded calls start, and once more if a process that it found ended meanwhile: one that was sent a signal to end
// runs for some time longer.
func retryEnded(start func() error) error {
	err := start()
	if errors.Is(err, errEnded) {
		err = start()
	}
	return err
}

// failure describes the end of the process by its exit code and its last error.
func (c *child) failure() error {
	log := c.dir.Log(c.name)
	how := "it ended"
	if c.err != nil {
		how = c.err.Error()
	}
	if line := lastError(log); line != "" {
		how += ": " + line
	}
	return fmt.Errorf("%s stopped while starting: %s; its log is %s", c.name, how, log)
}

// lastError returns the last line of a log that can be the cause of an end.
func lastError(path string) string {
	data, err := tailOf(path)
	if err != nil {
		return ""
	}
	lines := strings.Split(string(bytes.TrimSpace(data)), "\n")
	last, unreachable := "", ""
	for i := len(lines) - 1; i >= 0 && i > len(lines)-50; i-- {
		line := strings.TrimSpace(lines[i])
		if strings.HasPrefix(line, "---") {
			return unreachable
		}
		if text, ok := strings.CutPrefix(line, "error: "); ok {
			return text
		}
		if strings.HasPrefix(line, "panic:") {
			return line
		}
		switch {
		case strings.Contains(line, probeFailed):
			unreachable = "the API server of its cluster is unreachable"
		case last == "":
			last = line
		}
	}
	return cmp.Or(last, unreachable)
}

// diskFull returns a text if the log of a process ends with the report that there was no space on the disk. The report may
// be cut off, or follow a line that was.
func diskFull(path string) string {
	data, err := tailOf(path)
	if err != nil || !bytes.Contains(data[max(0, len(data)-1024):], []byte("no space left on device")) {
		return ""
	}
	return "the disk was full"
}

// tailOf returns the end of a file.
func tailOf(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read
	const tail = 16 << 10
	if info, err := file.Stat(); err == nil && info.Size() > tail {
		_, _ = file.Seek(-tail, io.SeekEnd)
	}
	return io.ReadAll(file)
}

// probeFailed is in the lines that programs log for a health check that fails. They name no cause; those of
// estimators and agents fail while the API server of their cluster does not answer.
const probeFailed = "healthz check failed"

// stop terminates the process, and kills it after a grace period. A process that
// does not run is no error. An interruption does not end it: what was asked to end must be
// known to have ended before it is started again.
func (p process) stop(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	r, present := p.present()
	if !present {
		return ignoreMissing(os.Remove(p.dir.Record(p.name)))
	}
	if err := terminate(r.PID); err != nil {
		return fmt.Errorf("stopping %s (process %d): %w", p.name, r.PID, err)
	}
	if !p.gone(ctx) {
		if err := kill(r.PID); err != nil {
			return fmt.Errorf("killing %s (process %d), which did not stop in %s: %w", p.name, r.PID, stopGrace, err)
		}
		if !p.gone(ctx) {
			return fmt.Errorf("%s (process %d) cannot be killed", p.name, r.PID)
		}
	}
	return ignoreMissing(os.Remove(p.dir.Record(p.name)))
}

// gone waits for the end of the process.
func (p process) gone(ctx context.Context) bool {
	return wait.Until(ctx, wait.Options{Interval: pollInterval, Timeout: stopGrace}, func(context.Context) error {
		if _, present := p.present(); present {
			return errors.New("it is still running")
		}
		return nil
	}) == nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// runsWith reports whether a process was started with these arguments. A record
// without arguments is taken to have them.
func (r record) runsWith(args []string) bool {
	return len(r.Command) == 0 || slices.Equal(r.Command[1:], args)
}

// reserved returns the flags by which the processes of a federation find each other.
func reserved(f *federation.Federation) settings.Reserved {
	out := settings.Reserved{}
	overridable := []string{"cluster-success-threshold", "cluster-failure-threshold", "flap-window", "controllers"}
	out.Add(federation.Roles, roleArgs(f, ready.Info{}, true), overridable...)
	out.Add(settings.AgentRole, agentArgs(f, federation.MemberPrefix, "", ready.Info{}), overridable...)
	out.Add(settings.EstimatorRole, estimatorArgs(f, federation.MemberPrefix, ready.Info{}), overridable...)
	return out
}

// SettingNames returns the flags that can be set, as ROLE.FLAG, and the feature gates.
func (r *Runtime) SettingNames(ctx context.Context) (flags, gates []string, err error) {
	karmada, err := r.FindServer(federation.KarmadaServer)
	if err != nil {
		return nil, nil, err
	}
	return settings.Names(ctx, karmada, settings.Layout{Reserved: reserved(r.f)})
}

// roleSettings are the arguments of the control plane's process for the settings of a federation: a flag of one role has
// the name of the role in front.
func roleSettings(of federation.Settings) []string {
	var out []string
	for _, role := range settings.Roles(of) {
		switch role {
		case settings.AgentRole, settings.EstimatorRole:
		case federation.Roles:
			out = append(out, settings.Args(of, role, "")...)
		default:
			out = append(out, settings.Args(of, role, role+".")...)
		}
	}
	return out
}
