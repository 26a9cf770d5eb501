package kubelite

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/karmada-toolkit/karmada/internal/kubelite/ready"
	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/private"
)

const (
	// socketName is the name of the socket of etcd.
	socketName = "etcd.sock"
	// socketDirPrefix begins the names of directories for sockets under the system's temporary directory.
	socketDirPrefix = "kubelite-"
)

// maxSocketPath is what fits into a Unix socket address on Linux and macOS.
const maxSocketPath = 100

// dataDir is a directory that this process has for itself.
type dataDir struct {
	path string
	lock *os.File
}

// openDataDir makes the directory if needed and locks it.
func openDataDir(path string) (*dataDir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("data directory %s cannot be made: %w: choose another with --data-dir", path, err)
	}
	if err := private.CheckDir(path); err != nil {
		return nil, fmt.Errorf("data directory %s cannot be used: %w with --data-dir", path, err)
	}
	lock, err := private.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory %s cannot be written: %w: choose another with --data-dir", path, err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder := lockHolder(lock)
		_ = lock.Close()
		return nil, fmt.Errorf("data directory %s is in use by another kubelite%s: stop it first, or choose another with --data-dir", path, holder)
	}
	d := &dataDir{path: path, lock: lock}
	if err := d.claim(); err != nil {
		d.close()
		return nil, fmt.Errorf("data directory %s cannot be written: %w", path, err)
	}
	return d, nil
}

func lockHolder(lock *os.File) string {
	buf := make([]byte, 32)
	n, _ := lock.ReadAt(buf, 0)
	if pid := strings.TrimSpace(string(buf[:n])); pid != "" {
		return " (process " + pid + ")"
	}
	return ""
}

// claim leaves the process's number in the lock file and removes a ready signal that a killed process left behind.
func (d *dataDir) claim() error {
	if err := d.lock.Truncate(0); err != nil {
		return err
	}
	if _, err := d.lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return err
	}
	return d.removeReady()
}

func (d *dataDir) removeReady() error {
	if err := os.Remove(ready.Path(d.path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// close releases the lock. The file is kept: after its removal two processes could lock two files of one name.
func (d *dataDir) close() {
	_ = d.removeReady() // a start that was interrupted may have written the signal last
	_ = d.lock.Close()
}

func (d *dataDir) join(elem ...string) string {
	return filepath.Join(append([]string{d.path}, elem...)...)
}

// socketPath returns where to listen for local clients: inside the data directory, or, if that path is too long for
// a socket or would need quoting in a URL or list, in a directory under the system's temporary one. A link remembers that one, for the start after a crash.
func (d *dataDir) socketPath() (path string, cleanup func(), err error) {
	link := d.join("run")
	if old, err := os.Readlink(link); err == nil {
		if isSocketDir(old) {
			_ = private.RemoveSocketDir(old, socketName)
		}
		_ = os.Remove(link)
	}
	path = d.join(socketName)
	if len(path) <= maxSocketPath && plainPath(path) {
		return path, func() { _ = os.Remove(path) }, nil
	}
	dir, err := os.MkdirTemp("", socketDirPrefix)
	if err != nil {
		return "", nil, fmt.Errorf("making a directory for a socket: %w", err)
	}
	if err := os.Symlink(dir, link); err != nil {
		return "", nil, fmt.Errorf("remembering the directory of a socket: %w", err)
	}
	return filepath.Join(dir, socketName), func() { _, _ = private.RemoveSocketDir(dir, socketName), os.Remove(link) }, nil
}

// isSocketDir reports whether a path is one that socketPath may have made. Where the link leads to could have been
// chosen by another process.
func isSocketDir(path string) bool {
	return filepath.Dir(path) == filepath.Clean(os.TempDir()) && strings.HasPrefix(filepath.Base(path), socketDirPrefix)
}

// plainPath reports whether a path means the same in a URL and in a list with commas.
func plainPath(path string) bool {
	return !strings.ContainsFunc(path, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("/._-", r)
	})
}

// listen opens the API server's port: the requested one, else the one used before, else a free one, and remembers it.
func (d *dataDir) listen(address string, wanted int) (net.Listener, error) {
	file := d.join("port")
	port := wanted
	if port == 0 {
		var err error
		if port, err = readPort(file); err != nil {
			return nil, err
		}
	}
	if port == 0 {
		return listenFree(address, file)
	}
	listener, err := listenPort(address, port)
	if err != nil {
		return nil, portError(err, address, port, wanted == 0, file)
	}
	return listener, savePort(file, port)
}

func portError(err error, address string, port int, remembered bool, file string) error {
	if remembered {
		return fmt.Errorf("port %d of %s, which this cluster used before, cannot be opened: %w: stop what listens there, or remove %s for a new port", port, address, err, file)
	}
	return fmt.Errorf("port %d of %s cannot be opened: %w: stop what listens there, or choose another with --secure-port", port, address, err)
}

// listenPort retries for a short time: the port of a process that was just killed may not be free at once.
func listenPort(address string, port int) (listener net.Listener, err error) {
	for range 10 {
		listener, err = net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
		if !errors.Is(err, syscall.EADDRINUSE) {
			return listener, err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, err
}

func listenFree(address, file string) (net.Listener, error) {
	listener, err := ready.ListenFree(address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%w: choose one with --secure-port", err)
	case err != nil:
		return nil, fmt.Errorf("listening on %s: %w: choose another address with --bind-address", address, err)
	}
	return listener, savePort(file, listener.Addr().(*net.TCPAddr).Port)
}

func readPort(file string) (int, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the port used before: %w", err)
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || port < 1 || port > 65535 {
		return 0, fmt.Errorf("%s does not hold a port: remove it for a new one", file)
	}
	return port, nil
}

func savePort(file string, port int) error {
	if old, err := readPort(file); err == nil && old == port {
		return nil
	}
	if err := pki.WriteFile(file, []byte(strconv.Itoa(port)+"\n"), 0o600); err != nil {
		return fmt.Errorf("remembering the port: %w", err)
	}
	return nil
}
