//go:build unix

package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/karmada-toolkit/karmada/internal/private"
)

// detach gives the process a session of its own, so that signals to this program
// do not reach it.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func terminate(pid int) error { return signal(pid, syscall.SIGTERM) }

func kill(pid int) error { return signal(pid, syscall.SIGKILL) }

func signal(pid int, s syscall.Signal) error {
	if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// lock takes an exclusive lock on a file without waiting. The lock ends with the
// process.
func lock(path string) (unlock func(), err error) {
	file, err := private.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, errLocked
	}
	return func() { _ = file.Close() }, nil
}

var errLocked = errors.New("another command is working on it")

// startOf returns text that tells this process apart from others that had or will
// have its number. A process that is dead, waited for or not, is an error.
func startOf(pid int) (string, error) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if errors.Is(err, os.ErrNotExist) {
		if _, noProc := os.Stat("/proc/self/stat"); noProc != nil {
			return startByPS(pid)
		}
	}
	if err != nil {
		return "", err
	}
	// The second field is the name in brackets, which may hold anything.
	_, rest, ok := strings.Cut(string(data[strings.LastIndexByte(string(data), ')')+1:]), " ")
	fields := strings.Fields(rest)
	const state, start = 0, 19
	if !ok || len(fields) <= start {
		return "", fmt.Errorf("reading the state of process %d: unknown format", pid)
	}
	if fields[state] == "Z" || fields[state] == "X" {
		return "", fmt.Errorf("process %d is dead", pid)
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(boot)) + "/" + fields[start], nil
}

// ending says whether parts of a dead process are still there: a process that was
// killed is dead before the last of its threads has let go of its files.
func ending(pid int) bool {
	threads, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
	return err == nil && len(threads) > 1
}

// killed says whether a process has been sent a signal that it cannot survive: it
// may answer for a moment longer.
func killed(pid int) bool {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	return err == nil && killPending(string(status))
}

// killPending reads it from what the system tells of a process.
func killPending(status string) bool {
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		if name != "SigPnd" && name != "ShdPnd" {
			continue
		}
		pending, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		if err == nil && pending&(1<<(syscall.SIGKILL-1)) != 0 {
			return true
		}
	}
	return false
}

// startByPS is startOf for systems without /proc.
func startByPS(pid int) (string, error) {
	out, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output() //nolint:gosec,noctx // a number; quick
	if err != nil {
		return "", fmt.Errorf("looking up process %d: %w", pid, err)
	}
	state, start, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if strings.HasPrefix(state, "Z") || start == "" {
		return "", fmt.Errorf("process %d is dead", pid)
	}
	return strings.TrimSpace(start), nil
}
