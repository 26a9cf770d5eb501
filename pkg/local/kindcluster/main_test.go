//go:build unix

package kindcluster

import (
	"os"
	"syscall"
	"testing"
)

func TestMain(m *testing.M) {
	syscall.Umask(0o022) // directories of tests are this user's alone
	os.Exit(m.Run())
}
