package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"time"

	"github.com/karmada-toolkit/karmada/internal/wait"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
)

// followInterval is the time between two looks at the end of a log.
const followInterval = 200 * time.Millisecond

// Names are the names of the processes.
func (r *Runtime) Names() []string { return r.f.Processes() }

// StopParts stops processes, and the agent and the estimator of a member before the member.
func (r *Runtime) StopParts(ctx context.Context, names []string) error {
	var first, rest []string
	for _, name := range r.f.Processes() {
		switch {
		case !slices.Contains(names, name):
		case slices.Contains(r.f.Members, name):
			first = append(first, federation.Agent(name), federation.Estimator(name))
			rest = append(rest, name)
		case name == federation.ControlPlane:
			rest = append(rest, name)
		case !slices.Contains(first, name):
			first = append(first, name)
		}
	}
	if err := r.stopAll(ctx, first); err != nil {
		return err
	}
	return r.stopAll(ctx, rest)
}

// Logs prints the log of a process.
func (r *Runtime) Logs(ctx context.Context, name string, options federation.LogOptions, out io.Writer) error {
	log, err := os.Open(r.f.Dir().Log(name))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s has no log yet; start it with %q", name, r.f.Command(r.Deps, "up"))
	}
	if err != nil {
		return fmt.Errorf("reading the log of %s: %w", name, err)
	}
	defer log.Close() //nolint:errcheck // only read
	if options.Tail >= 0 {
		if err := seekLines(log, options.Tail); err != nil {
			return fmt.Errorf("reading the log of %s: %w", name, err)
		}
	}
	tick := time.NewTicker(followInterval)
	defer tick.Stop()
	for {
		if _, err := io.Copy(out, log); err != nil {
			return fmt.Errorf("printing the log of %s: %w", name, err)
		}
		if !options.Follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// seekLines moves to the beginning of the last n lines of a file.
func seekLines(file io.ReadSeeker, n int) error {
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil || n == 0 {
		return err
	}
	const size = 16 << 10
	block := make([]byte, size)
	for start := end; start > 0; {
		length := min(start, size)
		start -= length
		if _, err := file.Seek(start, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.ReadFull(file, block[:length]); err != nil {
			return err
		}
		for i := length; i > 0; {
			i = int64(bytes.LastIndexByte(block[:i], '\n'))
			if i < 0 {
				break
			}
			if start+i == end-1 {
				continue // it ends the last line
			}
			if n--; n <= 0 {
				_, err := file.Seek(start+i+1, io.SeekStart)
				return err
			}
		}
	}
	_, err = file.Seek(0, io.SeekStart)
	return err
}

// awaitListening waits until a server listens at an address.
func awaitListening(ctx context.Context, address string) error {
	return wait.Until(ctx, wait.Options{Interval: pollInterval}, func(ctx context.Context) error {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}
