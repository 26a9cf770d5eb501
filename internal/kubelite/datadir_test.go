package kubelite

import (
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
	if port < firstPort || port > lastPort {
		t.Errorf("port %d is outside of %d to %d", port, firstPort, lastPort)
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
