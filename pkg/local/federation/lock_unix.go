//go:build unix

package federation

import (
	"errors"
	"os"
	"syscall"

	"github.com/karmada-toolkit/karmada/internal/private"
)

var errLocked = errors.New("another command is working on it")

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
