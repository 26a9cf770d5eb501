//go:build unix

package inotify

import (
	"os"
	"syscall"
)

// openFiles returns how many files the process has open, 0 where the system does not report it, and how many it may
// open.
func openFiles() (open, limit uint64) {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return 0, 0
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0, uint64(r.Cur) //nolint:unconvert // signed on some systems
	}
	return uint64(len(entries)), uint64(r.Cur) //nolint:unconvert // signed on some systems
}
