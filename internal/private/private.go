// Package private checks that files and directories belong to the user who runs the program, and that no other user
// can change them. Programs that act on records in a directory, or remove what records name, need to know that.
package private

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// overflowUser and overflowGroup own what has no owner in a user namespace, such as the root directory of a sandbox.
const (
	overflowUser  = 65534
	overflowGroup = 65534
)

// entry is the metadata of a file that is checked.
type entry struct {
	user, group int
	mode        fs.FileMode
}

// identity is who runs the program.
type identity struct{ user, group int }

// place is where an entry is in a path.
type place int

const (
	parent place = iota // a directory on the way
	shared              // the last one, in which others may make files of their own, as in /tmp
	last                // the last one
)

// problem returns why others could change an entry, or nothing.
func (i identity) problem(e entry, at place) string {
	owned := e.user == i.user || (e.user == 0 && at != last) || (e.user == overflowUser && at == parent)
	sticky := e.mode&fs.ModeSticky != 0 && at != last
	groupOnly := e.mode.Perm()&0o002 == 0 && (e.group == 0 || e.group == i.group || e.group == overflowGroup)
	switch {
	case !owned:
		return fmt.Sprintf("belongs to another user (%d)", e.user)
	case e.mode&fs.ModeSymlink != 0: // its mode means nothing
		return ""
	case e.mode.Perm()&0o022 == 0 || sticky || (at == parent && groupOnly):
		return ""
	default:
		return fmt.Sprintf("can be written by other users (mode %s)", e.mode)
	}
}

// CheckDir reports why other users could change what is in a directory: it belongs to another user or can be written
// by others, or a directory or link on the way to it does. The error is fs.ErrNotExist if there is no such directory.
func CheckDir(path string) error { return check(path, last) }

// CheckSharedDir is CheckDir for a directory whose own files are checked one by one: others may make files in it,
// provided that they cannot remove those of this user, as in /tmp.
func CheckSharedDir(path string) error { return check(path, shared) }

func check(path string, at place) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", path)
	}
	if err := checkEntry(real, at); err != nil {
		return err
	}
	for _, p := range []string{real, path} { // the real directories, and the links
		for dir := filepath.Dir(p); ; dir = filepath.Dir(dir) {
			if err := checkEntry(dir, parent); err != nil {
				return err
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return checkEntry(path, linkOr(path, at))
}

// linkOr returns parent for a link, whose owner counts like that of a directory on the way.
func linkOr(path string, at place) place {
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return parent
	}
	return at
}

func checkEntry(path string, at place) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	e, ok := entryOf(info)
	if !ok {
		return nil // the system has no such owners
	}
	if problem := current().problem(e, at); problem != "" {
		return fmt.Errorf("%s %s; what is in it may be another user's: if it is not, use \"chown\" or \"chmod go-w\" on it, else choose another directory", path, problem)
	}
	return nil
}

// maxFile is more than any record has, in bytes.
const maxFile = 16 << 20

// ReadFile reads a regular file that belongs to this user and that others cannot write. It does not follow a link.
func ReadFile(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if e, ok := entryOf(info); ok {
		if problem := current().problem(e, last); problem != "" {
			return nil, fmt.Errorf("%s %s: remove it, or use \"chown\" or \"chmod go-w\" on it if it is yours", path, problem)
		}
	}
	return io.ReadAll(io.LimitReader(file, maxFile))
}

// OpenFile opens a file as os.OpenFile does, but never the file that a link leads to.
func OpenFile(path string, flag int, mode fs.FileMode) (*os.File, error) {
	file, err := os.OpenFile(path, flag|noFollow, mode)
	if err != nil && isLink(path) {
		return nil, fmt.Errorf("%s is a link: remove it", path)
	}
	return file, err
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// RemoveSocketDir removes a directory that was made for a socket, if it is one: it belongs to this user alone and holds
// nothing but a file socket. Anything else stays, and is no error.
func RemoveSocketDir(dir, socket string) error {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() || checkEntry(dir, last) != nil {
		return nil //nolint:nilerr // not ours
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil //nolint:nilerr // not ours
	}
	for _, e := range entries {
		if e.Name() != socket || e.Type() != fs.ModeSocket {
			return nil
		}
	}
	if err := os.Remove(filepath.Join(dir, socket)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Remove(dir)
}
