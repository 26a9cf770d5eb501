package federation

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// The servers that a federation is made of.
const (
	KubeliteServer = "kubelite"
	KarmadaServer  = "karmada"
)

// binDirVariable names a directory with the servers.
const binDirVariable = "KARMADA_BIN_DIR"

// FindServer looks for a server beside the program, then in $KARMADA_BIN_DIR, then on the PATH.
func (d Deps) FindServer(name string) (string, error) {
	var dirs []string
	if executable := d.Executable; executable != "" {
		if resolved, err := filepath.EvalSymlinks(executable); err == nil {
			executable = resolved
		}
		dirs = append(dirs, filepath.Dir(executable))
	}
	if dir := d.Getenv(binDirVariable); dir != "" {
		dirs = append(dirs, dir)
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
