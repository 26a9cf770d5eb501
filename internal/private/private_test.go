//go:build unix

package private

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProblem(t *testing.T) {
	me := identity{user: 1000, group: 1000}
	const dir = fs.ModeDir
	tests := []struct {
		name string
		e    entry
		at   place
		want string // empty: none
	}{
		{"mine alone", entry{1000, 1000, dir | 0o700}, last, ""},
		{"mine, others read", entry{1000, 1000, dir | 0o755}, last, ""},
		{"mine, the group writes", entry{1000, 1000, dir | 0o775}, last, "can be written"},
		{"mine, all write", entry{1000, 1000, dir | 0o777}, last, "can be written"},
		{"mine, all write, sticky", entry{1000, 1000, dir | fs.ModeSticky | 0o777}, last, "can be written"},
		{"another user's", entry{1001, 1000, dir | 0o755}, last, "another user (1001)"},
		{"root's", entry{0, 0, dir | 0o755}, last, "another user (0)"},
		{"/tmp on the way", entry{0, 0, dir | fs.ModeSticky | 0o777}, parent, ""},
		{"/tmp as the shared one", entry{0, 0, dir | fs.ModeSticky | 0o777}, shared, ""},
		{"a shared one that all write", entry{1000, 1000, dir | 0o777}, shared, "can be written"},
		{"a shared one that the group writes", entry{1000, 1000, dir | 0o775}, shared, "can be written"},
		{"all write on the way", entry{1000, 1000, dir | 0o777}, parent, "can be written"},
		{"my group writes on the way", entry{1000, 1000, dir | 0o775}, parent, ""},
		{"another group writes on the way", entry{1000, 50, dir | 0o775}, parent, "can be written"},
		{"another user's on the way", entry{1001, 1000, dir | 0o755}, parent, "another user"},
		{"a sandbox's root", entry{overflowUser, overflowGroup, dir | 0o755}, parent, ""},
		{"my link", entry{1000, 1000, fs.ModeSymlink | 0o777}, parent, ""},
		{"another user's link", entry{1001, 1000, fs.ModeSymlink | 0o777}, parent, "another user"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := me.problem(tt.e, tt.at)
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// privateDir returns a directory that no other user can write, whatever the
// umask.
func privateDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "private")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestCheckDir(t *testing.T) {
	dir := privateDir(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(CheckDir(dir), CheckSharedDir(dir), CheckDir(link)); err != nil {
		t.Errorf("a private directory, and a link to it: %v", err)
	}
	if err := CheckDir(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
	inside := filepath.Join(dir, "inside")
	if err := os.Mkdir(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, link, inside} {
		if err := CheckDir(path); err == nil || !strings.Contains(err.Error(), dir+" can be written by other users") {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

func TestReadFile_NoLinksAndNothingOfOthers(t *testing.T) {
	dir := privateDir(t)
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, []byte("x"), 0o600), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	if data, err := ReadFile(file); err != nil || string(data) != "x" {
		t.Errorf("got %q, %v", data, err)
	}
	if data, err := ReadFile(link); err == nil {
		t.Errorf("a link is followed: %q", data)
	}
	if f, err := OpenFile(link, os.O_RDWR|os.O_TRUNC, 0o600); err == nil || !strings.Contains(err.Error(), "is a link") {
		t.Errorf("a link is opened: %v, %v", f, err)
	}
	if _, err := ReadFile(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(file); err == nil || !strings.Contains(err.Error(), "can be written") {
		t.Errorf("a file that others write: %v", err)
	}
}

func TestRemoveSocketDir_RemovesNothingElse(t *testing.T) {
	const socket = "etcd.sock"
	dir := privateDir(t)
	ours, empty, victim := filepath.Join(dir, "ours"), filepath.Join(dir, "empty"), filepath.Join(dir, "victim")
	for _, d := range []string{ours, empty, victim, filepath.Join(dir, "file")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("unix", filepath.Join(ours, socket))
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = l.Close()
	if err := errors.Join(
		os.WriteFile(filepath.Join(victim, "precious"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "file", socket), nil, 0o600), // a file of that name, but no socket
		os.Symlink(ours, filepath.Join(dir, "link")),
	); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "victim", "file", "missing"} {
		if err := RemoveSocketDir(filepath.Join(dir, name), socket); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, path := range []string{ours, filepath.Join(victim, "precious"), filepath.Join(dir, "file", socket)} {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("it was removed: %v", err)
		}
	}
	for _, d := range []string{ours, empty} {
		if err := RemoveSocketDir(d, socket); err != nil {
			t.Errorf("%s: %v", d, err)
		}
		if _, err := os.Lstat(d); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", d, err)
		}
	}
}
