package kindcluster

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"sigs.k8s.io/kind/pkg/exec"
	"sigs.k8s.io/kind/pkg/log"
)

// libraryLog is what the kind library logged about a cluster: its current step and
// its warnings.
type libraryLog struct {
	mu       sync.Mutex
	current  string
	warnings []string
}

func newLibraryLog() *libraryLog { return &libraryLog{current: "its turn"} }

func (s *libraryLog) setStep(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = what
}

// step is the current step.
func (s *libraryLog) step() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

func (s *libraryLog) warn(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warnings = append(s.warnings, what)
}

// explain adds to an error of the library its warnings and the last line of the
// command that failed.
func (s *libraryLog) explain(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.Join(s.warnings, "; ")
	var run *exec.RunError
	if errors.As(err, &run) || asRunError(err, &run) {
		if line := lastLine(string(run.Output)); line != "" {
			text = strings.TrimPrefix(text+"; "+line, "; ")
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

// libraryLogger is the logger of the kind library.
type libraryLogger struct{ log *libraryLog }

var _ log.Logger = libraryLogger{}

// Warn implements log.Logger.
func (l libraryLogger) Warn(message string) { l.log.warn(message) }

// Warnf implements log.Logger.
func (l libraryLogger) Warnf(format string, args ...any) { l.Warn(fmt.Sprintf(format, args...)) }

// Error implements log.Logger.
func (l libraryLogger) Error(message string) { l.log.warn(message) }

// Errorf implements log.Logger.
func (l libraryLogger) Errorf(format string, args ...any) { l.Error(fmt.Sprintf(format, args...)) }

// V implements log.Logger.
func (l libraryLogger) V(level log.Level) log.InfoLogger { return libraryInfo{l.log, level} }

// libraryInfo receives the steps of the library, which are logged at level 0.
type libraryInfo struct {
	log   *libraryLog
	level log.Level
}

// Info implements log.InfoLogger.
func (i libraryInfo) Info(message string) {
	if step, ok := parseStep(message); ok && i.Enabled() {
		i.log.setStep(step)
	}
}

// Infof implements log.InfoLogger.
func (i libraryInfo) Infof(format string, args ...any) { i.Info(fmt.Sprintf(format, args...)) }

// Enabled implements log.InfoLogger.
func (i libraryInfo) Enabled() bool { return i.level == 0 }

// parseStep returns the text of a step that begins from a line such as
// " • Starting control-plane 🕹️  ...".
func parseStep(line string) (string, bool) {
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
