package local

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"sigs.k8s.io/kind/pkg/exec"
	"sigs.k8s.io/kind/pkg/log"
)

// sayings is what the kind library said of a cluster.
type sayings struct {
	mu     sync.Mutex
	latest string
	bad    []string
}

func newSayings() *sayings { return &sayings{latest: "its turn"} }

func (s *sayings) set(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest = what
}

// last is what is being done.
func (s *sayings) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest
}

func (s *sayings) complain(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bad = append(s.bad, what)
}

// explain adds to an error of the library its complaints and the last words of the
// command that failed.
func (s *sayings) explain(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.Join(s.bad, "; ")
	var run *exec.RunError
	if errors.As(err, &run) || asRunError(err, &run) {
		if words := lastLine(string(run.Output)); words != "" {
			text = strings.TrimPrefix(text+"; "+words, "; ")
		}
	}
	if text == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, text)
}

// asRunError finds the failure of a command in an error of the library, whose
// errors do not all unwrap.
func asRunError(err error, run **exec.RunError) bool {
	*run = exec.RunErrorForError(err)
	return *run != nil
}

// kindLogger listens to the kind library.
type kindLogger struct{ said *sayings }

var _ log.Logger = kindLogger{}

// Warn implements log.Logger.
func (l kindLogger) Warn(message string) { l.said.complain(message) }

// Warnf implements log.Logger.
func (l kindLogger) Warnf(format string, args ...any) { l.Warn(fmt.Sprintf(format, args...)) }

// Error implements log.Logger.
func (l kindLogger) Error(message string) { l.said.complain(message) }

// Errorf implements log.Logger.
func (l kindLogger) Errorf(format string, args ...any) { l.Error(fmt.Sprintf(format, args...)) }

// V implements log.Logger.
func (l kindLogger) V(level log.Level) log.InfoLogger { return kindInfo{l.said, level} }

// kindInfo takes the steps of the library, which it tells at level 0.
type kindInfo struct {
	said  *sayings
	level log.Level
}

// Info implements log.InfoLogger.
func (i kindInfo) Info(message string) {
	if step, ok := step(message); ok && i.Enabled() {
		i.said.set(step)
	}
}

// Infof implements log.InfoLogger.
func (i kindInfo) Infof(format string, args ...any) { i.Info(fmt.Sprintf(format, args...)) }

// Enabled implements log.InfoLogger.
func (i kindInfo) Enabled() bool { return i.level == 0 }

// step takes the text of a step that begins out of a line such as
// " • Starting control-plane 🕹️  ...".
func step(line string) (string, bool) {
	text, ok := strings.CutPrefix(strings.TrimSpace(line), "• ")
	if !ok {
		return "", false
	}
	text = strings.TrimSpace(strings.TrimSuffix(text, "..."))
	plain := strings.Map(func(r rune) rune {
		if r > 0x7e {
			return -1
		}
		return r
	}, text)
	return "kind: " + strings.TrimSpace(plain), true
}
