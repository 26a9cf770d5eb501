package private

import (
	"os"
	"path/filepath"
)

// Federations returns the default directory of local federations: karmada/local in $XDG_STATE_HOME, by default
// ~/.local/state.
func Federations(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "karmada", "local"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "state", "karmada", "local"), nil
}
