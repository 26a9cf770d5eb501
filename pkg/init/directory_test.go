package installer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDirectory_WriteTwiceChangesNothing(t *testing.T) {
	o := NewOptions()
	o.DataPath = filepath.Join(t.TempDir(), "data")
	d := o.directory()
	if d.pki != filepath.Join(o.DataPath, "pki") {
		t.Errorf("certificates do not follow --karmada-data: %s", d.pki)
	}
	who := owner{HostID: "id", Namespace: "ns"}
	c := issue(t, o, nil)
	for i, want := range []bool{true, false} {
		a, err := d.writeCertificates(who, c)
		if err != nil {
			t.Fatal(err)
		}
		b, err := d.writeKubeconfig(c)
		if err != nil {
			t.Fatal(err)
		}
		if a != want || b != want {
			t.Errorf("write %d changed %t, %t", i, a, b)
		}
	}
	for name, mode := range map[string]os.FileMode{"pki/ca.key": 0o600, "pki/ca.crt": 0o644, "karmada-apiserver.config": 0o600} {
		info, err := os.Stat(filepath.Join(o.DataPath, name))
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	got, err := d.certificates()
	if err != nil || len(got) != len(c.data) {
		t.Errorf("%d of %d files are read back, %v", len(got), len(c.data), err)
	}
	if !d.ours(who, nil) || d.ours(owner{HostID: "id", Namespace: "other"}, nil) {
		t.Error("the owner is not recognised")
	}
}

func TestDirectory_FilesOfTheReference(t *testing.T) {
	o := NewOptions()
	o.DataPath = t.TempDir()
	d := o.directory()
	c := issue(t, o, nil)
	if _, err := d.writeCertificates(owner{}, c); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(o.DataPath, ownerFile)); err != nil {
		t.Fatal(err)
	}
	who := owner{HostID: "id", Namespace: "ns"}
	if !d.ours(who, c.data) {
		t.Error("the files of the installation that is there are not ours")
	}
	if d.ours(who, issue(t, o, nil).data) {
		t.Error("files of another authority are ours")
	}
	moved, err := d.setAside(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if err != nil || filepath.Base(moved) != "previous-20260102-030405" {
		t.Fatal(moved, err)
	}
	if got, err := d.certificates(); err != nil || len(got) != 0 {
		t.Errorf("%d files are left, %v", len(got), err)
	}
	if !d.ours(who, nil) {
		t.Error("an empty directory is not ours")
	}
}

func TestDirectory_Writable(t *testing.T) {
	root := t.TempDir()
	if err := (directory{data: filepath.Join(root, "a", "b"), pki: filepath.Join(root, "c")}).writable(); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) > 0 {
		t.Errorf("something was left: %v, %v", entries, err)
	}
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := (directory{data: filepath.Join(file, "x"), pki: root}).writable()
	if err == nil || !strings.Contains(err.Error(), "--karmada-data") {
		t.Errorf("got %v", err)
	}
}
