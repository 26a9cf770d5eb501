//go:build unix

package private

import (
	"io/fs"
	"os"
	"syscall"
)

// noFollow keeps an open from following a link, and from waiting for the other end of a pipe.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

func current() identity { return identity{user: os.Geteuid(), group: os.Getegid()} }

func entryOf(info fs.FileInfo) (entry, bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return entry{}, false
	}
	return entry{user: int(s.Uid), group: int(s.Gid), mode: info.Mode()}, true
}
