package role

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRemoveData(t *testing.T) {
	dir := t.TempDir()
	write := func(parts ...string) string {
		path := filepath.Join(parts...)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("data"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	data, other := write(dir, "etcd", "member", "snap", "db"), write(dir, "etcd", "notes.txt")
	outside := write(dir, "outside", "file")
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(dir, "etcd", "member", "link")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // again when nothing is left
		if err := removeData(filepath.Join(dir, "etcd")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(data); err == nil {
		t.Error("the data is there")
	}
	for _, path := range []string{other, outside} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(dir, "etcd", "member")); err != nil {
		t.Fatal(err)
	}
	if err := removeData(filepath.Join(dir, "etcd")); err == nil {
		t.Error("a link was taken for data")
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
	if err := removeData(filepath.Join(dir, "missing")); err == nil {
		t.Error("a directory that does not exist was cleaned")
	}
}
