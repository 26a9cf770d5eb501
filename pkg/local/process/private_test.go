//go:build unix

package process

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/karmada-toolkit/karmada/pkg/local/federation/federationtest"
	"github.com/karmada-toolkit/karmada/pkg/local/settings"
)

func TestMain(m *testing.M) {
	syscall.Umask(0o022) // directories of tests are this user's alone
	os.Exit(m.Run())
}

func TestStop_IgnoresPlantedRecords(t *testing.T) {
	victim, err := process{"sleeper", federationtest.Saved(t).Dir()}.start(time.Now(), "sleep", "60")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = victim.stop(t.Context()) })
	f := federationtest.Saved(t)
	p := process{"member1", f.Dir()}
	plant := map[string]func() error{
		"a link to the record of a process": func() error { return os.Symlink(victim.dir.Record(victim.name), p.dir.Record(p.name)) },
		"a record that others could write": func() error {
			data, err := os.ReadFile(victim.dir.Record(victim.name))
			return errors.Join(err, os.WriteFile(p.dir.Record(p.name), data, 0o600), os.Chmod(p.dir.Record(p.name), 0o666))
		},
	}
	for name, attack := range plant {
		t.Run(name, func(t *testing.T) {
			if err := errors.Join(os.RemoveAll(filepath.Dir(p.dir.Record(p.name))), os.Mkdir(filepath.Dir(p.dir.Record(p.name)), 0o700), attack()); err != nil {
				t.Fatal(err)
			}
			if _, err := New(federationtest.Deps(), f, Request{}, settings.Request{}).Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, alive := victim.running(); !alive {
				t.Error("the process was ended")
			}
		})
	}
}

func TestStart_DoesNotWriteThroughLinks(t *testing.T) {
	f := federationtest.Saved(t)
	victim := filepath.Join(t.TempDir(), "victim")
	if err := errors.Join(os.WriteFile(victim, []byte("precious"), 0o600), os.Mkdir(filepath.Join(string(f.Dir()), "logs"), 0o700), os.Symlink(victim, f.Dir().Log("sleeper"))); err != nil {
		t.Fatal(err)
	}
	if c, err := (process{"sleeper", f.Dir()}).start(time.Now(), "sleep", "60"); err == nil || !strings.Contains(err.Error(), "is a link") {
		t.Errorf("got %v", err)
		_ = c.stop(t.Context())
	}
	if err := os.Symlink(victim, filepath.Join(string(f.Dir()), "lock")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Dir().Lock(); err == nil || !strings.Contains(err.Error(), "is a link") {
		t.Errorf("the lock: got %v", err)
	}
	if data, err := os.ReadFile(victim); err != nil || string(data) != "precious" {
		t.Errorf("the file that the link leads to has %q, %v", data, err)
	}
	other := federationtest.Saved(t)
	if err := errors.Join(os.RemoveAll(filepath.Join(string(other.Dir()), "logs")), os.Symlink(filepath.Dir(victim), filepath.Join(string(other.Dir()), "logs"))); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Dir().Lock(); err == nil || !strings.Contains(err.Error(), "is not a directory") {
		t.Errorf("a directory that is a link: got %v", err)
	}
}
