//go:build unix

package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
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

// startOf returns text that distinguishes this process from others that had or will
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

// ending reports whether threads of a dead process are left: a process that was
// killed is dead before the last of its threads has closed its files.
func ending(pid int) bool {
	threads, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
	return err == nil && len(threads) > 1
}

// killed reports whether SIGKILL is pending for a process, which may answer for a
// short time longer.
func killed(pid int) bool {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	return err == nil && killPending(string(status))
}

// killPending reads it from /proc/PID/status.
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
	out, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output() //nolint:gosec // a number; quick
	if err != nil {
		return "", fmt.Errorf("looking up process %d: %w", pid, err)
	}
	state, start, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if strings.HasPrefix(state, "Z") || start == "" {
		return "", fmt.Errorf("process %d is dead", pid)
	}
	return strings.TrimSpace(start), nil
}
