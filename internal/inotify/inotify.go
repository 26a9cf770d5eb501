// Package inotify explains errors of file watchers.
package inotify

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// advice is the next step when the user has no inotify instance left.
const advice = `no inotify instance is left: raise fs.inotify.max_user_instances, for example with "sysctl -w fs.inotify.max_user_instances=8192"`

// Explain adds the next step to an error about too many open files: to raise the number of inotify instances of a user,
// or the number of open files of a process. It returns every other error as it is.
func Explain(err error) error {
	if err == nil || !tooManyFiles(err) {
		return err
	}
	return fmt.Errorf("%w: %s", err, explanation(openFiles()))
}

// tooManyFiles also reads the text: not every library wraps the error of the system, and an error can be another
// process's.
func tooManyFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || strings.Contains(err.Error(), syscall.EMFILE.Error())
}

// explanation returns the next step for a process with open files of at most limit. The system has the same error for
// both limits; a process far from its own has met the other.
func explanation(open, limit uint64) string {
	if open > 0 && open < limit/2 {
		return advice
	}
	return advice + `; or the process has too many open files: raise their number, for example with "ulimit -n 65536"`
}
