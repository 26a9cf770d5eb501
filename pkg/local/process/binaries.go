package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// The servers that a federation is made of.
const (
	kubeliteBinary = "kubelite"
	karmadaBinary  = "karmada"
)

// binDirVariable names a directory with the servers.
const binDirVariable = "KARMADA_BIN_DIR"

// binaries are the paths of the servers.
type binaries struct{ kubelite, karmada string }

// findBinaries looks for the servers beside the program, then in
// $KARMADA_BIN_DIR, then on the PATH.
func findBinaries(executable string, getenv func(string) string) (binaries, error) {
	var out binaries
	var errs []error
	for name, path := range map[string]*string{kubeliteBinary: &out.kubelite, karmadaBinary: &out.karmada} {
		found, err := findBinary(name, executable, getenv(binDirVariable))
		errs = append(errs, err)
		*path = found
	}
	return out, errors.Join(errs...)
}

func findBinary(name, executable, binDir string) (string, error) {
	var dirs []string
	if executable != "" {
		if resolved, err := filepath.EvalSymlinks(executable); err == nil {
			executable = resolved
		}
		dirs = append(dirs, filepath.Dir(executable))
	}
	if binDir != "" {
		dirs = append(dirs, binDir)
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return filepath.Abs(path)
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("the server %q was not found beside this program, in $%s or on the PATH: build it with \"make build\", or set %s to the directory that has it", name, binDirVariable, binDirVariable)
	}
	return filepath.Abs(path)
}
