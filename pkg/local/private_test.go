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

	"github.com/karmada-toolkit/karmada/pkg/local/federation/federationtest"
)

func TestMain(m *testing.M) {
	syscall.Umask(0o022) // directories of tests are this user's alone
	os.Exit(m.Run())
}

func root(f *Federation) string { return filepath.Dir(string(f.Dir())) }

func TestLoad_RefusesRecordsThatOthersCouldWrite(t *testing.T) {
	attacks := map[string]struct {
		path func(f *Federation) string
		want string
	}{
		"the directory of the federation": {func(f *Federation) string { return string(f.Dir()) }, "--dir"},
		"the directory of federations":    {func(f *Federation) string { return root(f) }, "--dir"},
		"the record":                      {func(f *Federation) string { return filepath.Join(string(f.Dir()), "federation.json") }, "federation.json"},
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			f := federationtest.Saved(t)
			if err := os.Chmod(attack.path(f), 0o777); err != nil {
				t.Fatal(err)
			}
			_, err := Load(root(f), "f")
			if err == nil || !strings.Contains(err.Error(), "can be written by other users") || !strings.Contains(err.Error(), attack.want) {
				t.Errorf("got %v", err)
			}
			if err := Down(t.Context(), federationtest.Deps(), root(f), "f", true); err == nil {
				t.Error("down --purge goes by it")
			}
			if _, err := os.Stat(filepath.Join(string(f.Dir()), "federation.json")); err != nil {
				t.Errorf("something was removed: %v", err)
			}
		})
	}
}

func TestLoad_RefusesNamesOutsideOfTheDirectory(t *testing.T) {
	for _, state := range []*Federation{
		{Name: "f", Members: []string{"../victim"}},
		{Name: "f", Members: []string{"member1"}, Pull: []string{"../victim"}},
		{Name: "other"},
	} {
		f := federationtest.Saved(t)
		data, err := json.Marshal(state)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(string(f.Dir()), "federation.json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(root(f), "f"); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%+v: got %v", state, err)
		}
	}
}

func TestDown_PurgeLeavesWhatItDidNotMake(t *testing.T) {
	f := federationtest.Saved(t)
	victim := filepath.Join(t.TempDir(), "victim")
	own := []string{"member1", "logs", "." + "federation.json" + ".123", "kubeconfig"}
	for _, name := range own {
		if err := os.Mkdir(filepath.Join(string(f.Dir()), name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(
		os.Mkdir(victim, 0o700), os.WriteFile(filepath.Join(victim, "precious"), nil, 0o600),
		os.Symlink(victim, filepath.Join(string(f.Dir()), "member1", "link")), os.WriteFile(filepath.Join(string(f.Dir()), "thesis.tex"), nil, 0o600),
	); err != nil {
		t.Fatal(err)
	}
	err := Down(t.Context(), federationtest.Deps(), root(f), "f", true)
	if err == nil || !strings.Contains(err.Error(), filepath.Join(string(f.Dir()), "thesis.tex")) {
		t.Errorf("got %v", err)
	}
	entries, err := os.ReadDir(string(f.Dir()))
	if err != nil || len(entries) != 1 || entries[0].Name() != "thesis.tex" {
		t.Errorf("left: %v, %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(victim, "precious")); err != nil {
		t.Errorf("what a link leads to was removed: %v", err)
	}
	clean := federationtest.Saved(t)
	if err := Down(t.Context(), federationtest.Deps(), root(clean), "f", true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(string(clean.Dir())); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
}
