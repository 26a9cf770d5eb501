//go:build unix

package local

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	syscall.Umask(0o022) // directories of tests are this user's alone
	os.Exit(m.Run())
}

func savedFederation(t *testing.T) *Federation {
	t.Helper()
	f := &Federation{Name: "f", Members: []string{"member1"}, dir: filepath.Join(t.TempDir(), "f")}
	if err := f.save(); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestLoad_RefusesRecordsThatOthersCouldWrite(t *testing.T) {
	attacks := map[string]struct {
		path func(f *Federation) string
		want string
	}{
		"the directory of the federation": {func(f *Federation) string { return f.dir }, "--dir"},
		"the directory of federations":    {func(f *Federation) string { return filepath.Dir(f.dir) }, "--dir"},
		"the record":                      {func(f *Federation) string { return filepath.Join(f.dir, stateFile) }, stateFile},
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			f := savedFederation(t)
			if err := os.Chmod(attack.path(f), 0o777); err != nil {
				t.Fatal(err)
			}
			root := filepath.Dir(f.dir)
			_, err := Load(root, "f")
			if err == nil || !strings.Contains(err.Error(), "can be written by other users") || !strings.Contains(err.Error(), attack.want) {
				t.Errorf("got %v", err)
			}
			if err := Down(t.Context(), testDeps(), root, "f", true); err == nil {
				t.Error("down --purge goes by it")
			}
			if _, err := os.Stat(filepath.Join(f.dir, stateFile)); err != nil {
				t.Errorf("something was removed: %v", err)
			}
		})
	}
}

func TestLoad_RefusesNamesOutsideOfTheDirectory(t *testing.T) {
	for _, state := range []Federation{
		{Name: "f", Members: []string{"../victim"}},
		{Name: "f", Members: []string{"member1"}, Pull: []string{"../victim"}},
		{Name: "other"},
	} {
		f := savedFederation(t)
		data, err := json.Marshal(state)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(f.dir, stateFile), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(filepath.Dir(f.dir), "f"); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%+v: got %v", state, err)
		}
	}
}

func TestProcess_PlantedRecordEndsNobody(t *testing.T) {
	victim, err := savedFederation(t).process("sleeper").start(time.Now(), "sleep", "60")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = victim.stop(t.Context()) })
	f := savedFederation(t)
	p := f.process("member1")
	plant := map[string]func() error{
		"a link to the record of a process": func() error { return os.Symlink(victim.recordPath(), p.recordPath()) },
		"a record that others could write": func() error {
			data, err := os.ReadFile(victim.recordPath())
			return errors.Join(err, os.WriteFile(p.recordPath(), data, 0o600), os.Chmod(p.recordPath(), 0o666))
		},
	}
	for name, attack := range plant {
		t.Run(name, func(t *testing.T) {
			if err := errors.Join(os.RemoveAll(filepath.Dir(p.recordPath())), os.Mkdir(filepath.Dir(p.recordPath()), 0o700), attack()); err != nil {
				t.Fatal(err)
			}
			if err := Down(t.Context(), testDeps(), filepath.Dir(f.dir), "f", false); err != nil {
				t.Fatal(err)
			}
			if _, alive := victim.running(); !alive {
				t.Error("the process was ended")
			}
		})
	}
}

func TestStart_DoesNotWriteThroughLinks(t *testing.T) {
	f := savedFederation(t)
	victim := filepath.Join(t.TempDir(), "victim")
	if err := errors.Join(os.WriteFile(victim, []byte("precious"), 0o600), os.Mkdir(filepath.Join(f.dir, logsDir), 0o700), os.Symlink(victim, f.log("sleeper"))); err != nil {
		t.Fatal(err)
	}
	if c, err := f.process("sleeper").start(time.Now(), "sleep", "60"); err == nil || !strings.Contains(err.Error(), "is a link") {
		t.Errorf("got %v", err)
		_ = c.stop(t.Context())
	}
	if err := os.Symlink(victim, filepath.Join(f.dir, lockFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.lock(); err == nil || !strings.Contains(err.Error(), "is a link") {
		t.Errorf("the lock: got %v", err)
	}
	if data, err := os.ReadFile(victim); err != nil || string(data) != "precious" {
		t.Errorf("the file that the link leads to has %q, %v", data, err)
	}
	other := savedFederation(t)
	if err := errors.Join(os.RemoveAll(filepath.Join(other.dir, logsDir)), os.Symlink(filepath.Dir(victim), filepath.Join(other.dir, logsDir))); err != nil {
		t.Fatal(err)
	}
	if _, err := other.lock(); err == nil || !strings.Contains(err.Error(), "is not a directory") {
		t.Errorf("a directory that is a link: got %v", err)
	}
}

func TestDown_PurgeLeavesWhatItDidNotMake(t *testing.T) {
	f := savedFederation(t)
	victim := filepath.Join(t.TempDir(), "victim")
	own := []string{"member1", logsDir, "." + stateFile + ".123", kubeconfigFile}
	for _, name := range own {
		if err := os.Mkdir(filepath.Join(f.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(
		os.Mkdir(victim, 0o700), os.WriteFile(filepath.Join(victim, "precious"), nil, 0o600),
		os.Symlink(victim, filepath.Join(f.dir, "member1", "link")), os.WriteFile(filepath.Join(f.dir, "thesis.tex"), nil, 0o600),
	); err != nil {
		t.Fatal(err)
	}
	err := Down(t.Context(), testDeps(), filepath.Dir(f.dir), "f", true)
	if err == nil || !strings.Contains(err.Error(), filepath.Join(f.dir, "thesis.tex")) {
		t.Errorf("got %v", err)
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "thesis.tex" {
		t.Errorf("left: %v, %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(victim, "precious")); err != nil {
		t.Errorf("what a link leads to was removed: %v", err)
	}
	clean := savedFederation(t)
	if err := Down(t.Context(), testDeps(), filepath.Dir(clean.dir), "f", true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(clean.dir); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
}
