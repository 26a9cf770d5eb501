package testenv

import (
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// EnvBinDir names a directory with programs that are built already. Without it they are built when needed.
const EnvBinDir = "KARMADA_TEST_BIN_DIR"

// built remembers what this test process has built: paths by name of the command.
var built sync.Map

type buildResult struct {
	path string
	err  error
}

// Binary builds a command of this module, such as "kubelite", and returns the path of the program. Test processes
// share what they build.
func Binary(tb testing.TB, name string) string {
	tb.Helper()
	once, _ := built.LoadOrStore(name, sync.OnceValue(func() buildResult {
		path, err := build(name)
		return buildResult{path, err}
	}))
	result := once.(func() buildResult)()
	if result.err != nil {
		tb.Fatalf("building %s: %v", name, result.err)
	}
	return result.path
}

func build(name string) (string, error) {
	if dir := os.Getenv(EnvBinDir); dir != "" {
		return filepath.Join(dir, name), nil
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(root))
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("karmada-testenv-%d-%x", os.Getuid(), sum.Sum32()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(dir, name+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	path := filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "./cmd/"+name)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as releases are built
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
}

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	file := strings.TrimSpace(string(out))
	if file == "" || file == os.DevNull {
		return "", fmt.Errorf("not inside a module")
	}
	return filepath.Dir(file), nil
}

// lock waits for an exclusive lock on a file.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}
