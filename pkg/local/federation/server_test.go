package federation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindServer_BesideThenVariableThenPath(t *testing.T) {
	beside, variable := t.TempDir(), t.TempDir()
	for _, dir := range []string{beside, variable} {
		if err := os.WriteFile(filepath.Join(dir, "kubelite"), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", "")
	d := Deps{Executable: filepath.Join(beside, "karmadactl"), Getenv: func(string) string { return variable }}
	if got, err := d.FindServer(KubeliteServer); err != nil || got != filepath.Join(beside, "kubelite") {
		t.Errorf("beside: %q, %v", got, err)
	}
	d.Executable = ""
	if got, err := d.FindServer(KubeliteServer); err != nil || got != filepath.Join(variable, "kubelite") {
		t.Errorf("variable: %q, %v", got, err)
	}
	if _, err := d.FindServer(KarmadaServer); err == nil || !strings.Contains(err.Error(), binDirVariable) {
		t.Errorf("missing: %v", err)
	}
}
