package kubelite

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/karmada-toolkit/karmada/internal/kubelite/ready"
)

func openTestDir(t *testing.T, path string) *dataDir {
	t.Helper()
	d, err := openDataDir(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	return d
}

func portOf(t *testing.T, l net.Listener) int {
	t.Helper()
	return l.Addr().(*net.TCPAddr).Port
}

func TestOpenDataDir_LockedBySomeoneElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "dir")
	openTestDir(t, path)
	_, err := openDataDir(path)
	if err == nil {
		t.Fatal("a second process got the directory too")
	}
	for _, want := range []string{path, "in use by another kubelite", "process " + strconv.Itoa(os.Getpid()), "--data-dir"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
}

func TestOpenDataDir_FreeAgainAfterClose(t *testing.T) {
	path := t.TempDir()
	d, err := openDataDir(path)
	if err != nil {
		t.Fatal(err)
	}
	d.close()
	openTestDir(t, path)
}

func TestOpenDataDir_RemovesAnOldReadySignal(t *testing.T) {
	path := t.TempDir()
	if err := ready.Write(path, ready.Info{PID: 1}); err != nil {
		t.Fatal(err)
	}
	openTestDir(t, path)
	if _, err := ready.Read(path); !os.IsNotExist(err) {
		t.Errorf("the signal is still there: %v", err)
	}
}

func TestOpenDataDir_NotADirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openDataDir(filepath.Join(file, "sub")); err == nil || !strings.Contains(err.Error(), "cannot be made") {
		t.Errorf("got %v", err)
	}
}

func TestListen_RemembersThePort(t *testing.T) {
	d := openTestDir(t, t.TempDir())
	first, err := d.listen("127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	port := portOf(t, first)
	if port < ready.FirstPort || port > ready.LastPort {
		t.Errorf("port %d is outside of %d to %d", port, ready.FirstPort, ready.LastPort)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := d.listen("127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Close() }()
	if got := portOf(t, second); got != port {
		t.Errorf("second start got port %d, want %d", got, port)
	}
}

func TestListen_TakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	port := portOf(t, taken)

	t.Run("a wanted port names the flag", func(t *testing.T) {
		d := openTestDir(t, t.TempDir())
		_, err := d.listen("127.0.0.1", port)
		if err == nil || !strings.Contains(err.Error(), "port "+strconv.Itoa(port)) || !strings.Contains(err.Error(), "--secure-port") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a remembered port names the file", func(t *testing.T) {
		d := openTestDir(t, t.TempDir())
		if err := savePort(d.join("port"), port); err != nil {
			t.Fatal(err)
		}
		_, err := d.listen("127.0.0.1", 0)
		if err == nil || !strings.Contains(err.Error(), d.join("port")) {
			t.Errorf("got %v", err)
		}
	})
}

func TestListen_DamagedPortFile(t *testing.T) {
	d := openTestDir(t, t.TempDir())
	if err := os.WriteFile(d.join("port"), []byte("many"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.listen("127.0.0.1", 0); err == nil || !strings.Contains(err.Error(), "does not hold a port") {
		t.Errorf("got %v", err)
	}
}

func TestSocketPath(t *testing.T) {
	t.Run("inside the data directory", func(t *testing.T) {
		d := &dataDir{path: "/short"}
		path, _, err := d.socketPath()
		if err != nil || path != "/short/etcd.sock" {
			t.Errorf("got %q, %v", path, err)
		}
	})
	t.Run("elsewhere when the path has a comma", func(t *testing.T) {
		d := openTestDir(t, filepath.Join(t.TempDir(), "a, b"))
		path, cleanup, err := d.socketPath()
		if err != nil || !plainPath(path) {
			t.Errorf("got %q, %v", path, err)
		}
		cleanup()
	})
	t.Run("elsewhere when the path is too long, and cleaned up after a crash", func(t *testing.T) {
		d := openTestDir(t, filepath.Join(t.TempDir(), strings.Repeat("long", 30)))
		first, _, err := d.socketPath()
		if err != nil {
			t.Fatal(err)
		}
		second, cleanup, err := d.socketPath()
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{first, second} {
			if len(path) > maxSocketPath {
				t.Errorf("%q is too long", path)
			}
		}
		if _, err := os.Stat(filepath.Dir(first)); !os.IsNotExist(err) {
			t.Errorf("the directory of the first start is still there: %v", err)
		}
		cleanup()
		if _, err := os.Stat(filepath.Dir(second)); !os.IsNotExist(err) {
			t.Errorf("the directory is still there: %v", err)
		}
	})
}

func TestOpenDataDir_RefusesWhatOthersCanWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	_, err := openDataDir(dir)
	if err == nil || !strings.Contains(err.Error(), "can be written by other users") || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("got %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("something was written: %v, %v", entries, err)
	}
}

func TestOpenDataDir_PlantedLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	victim := filepath.Join(t.TempDir(), "victim")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(victim, []byte("precious"), 0o600), os.Symlink(victim, filepath.Join(dir, "lock"))); err != nil {
		t.Fatal(err)
	}
	if _, err := openDataDir(dir); err == nil || !strings.Contains(err.Error(), "is a link") {
		t.Errorf("got %v", err)
	}
	if data, err := os.ReadFile(victim); err != nil || string(data) != "precious" {
		t.Errorf("the file that the link leads to has %q, %v", data, err)
	}
}

// TestSocketPath_PlantedLink has links where an earlier start would remember a directory of a socket.
func TestSocketPath_PlantedLink(t *testing.T) {
	victims := map[string]string{
		"elsewhere":               t.TempDir(),
		"named like a socket's":   filepath.Join(os.TempDir(), socketDirPrefix+"victim-"+strconv.Itoa(os.Getpid())),
		"below the temporary one": filepath.Join(t.TempDir(), socketDirPrefix+"victim"),
	}
	for name, victim := range victims {
		t.Run(name, func(t *testing.T) {
			precious := filepath.Join(victim, "precious")
			if err := errors.Join(os.MkdirAll(victim, 0o700), os.WriteFile(precious, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(victim) })
			d := openTestDir(t, filepath.Join(t.TempDir(), "data"))
			if err := os.Symlink(victim, d.join("run")); err != nil {
				t.Fatal(err)
			}
			_, cleanup, err := d.socketPath()
			if err != nil {
				t.Fatal(err)
			}
			cleanup()
			if _, err := os.Stat(precious); err != nil {
				t.Errorf("what the link leads to was removed: %v", err)
			}
			if _, err := os.Lstat(d.join("run")); !os.IsNotExist(err) {
				t.Errorf("the link is still there: %v", err)
			}
		})
	}
}
