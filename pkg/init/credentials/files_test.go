package credentials

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/karmada-toolkit/karmada/pkg/init/config"
)

func TestFiles_WriteTwiceChangesNothing(t *testing.T) {
	o := config.New()
	o.DataPath = filepath.Join(t.TempDir(), "data")
	d := FilesOf(request(t, o))
	if d.PKI != filepath.Join(o.DataPath, "pki") {
		t.Errorf("certificates do not follow --karmada-data: %s", d.PKI)
	}
	who := Owner{HostID: "id", Namespace: "ns"}
	c := issue(t, o, nil)
	for i, want := range []bool{true, false} {
		a, err := d.WriteCertificates(who, c)
		if err != nil {
			t.Fatal(err)
		}
		b, err := d.WriteKubeconfig(c)
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
	got, err := d.Certificates()
	if err != nil || len(got) != len(c.Data) {
		t.Errorf("%d of %d files are read back, %v", len(got), len(c.Data), err)
	}
	if !d.OwnedBy(who, nil) || d.OwnedBy(Owner{HostID: "id", Namespace: "other"}, nil) {
		t.Error("the owner is not recognised")
	}
}

func TestFiles_FilesOfTheReference(t *testing.T) {
	o := config.New()
	o.DataPath = t.TempDir()
	d := FilesOf(request(t, o))
	c := issue(t, o, nil)
	if _, err := d.WriteCertificates(Owner{}, c); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(o.DataPath, ownerFile)); err != nil {
		t.Fatal(err)
	}
	who := Owner{HostID: "id", Namespace: "ns"}
	if !d.OwnedBy(who, c.Data) {
		t.Error("the files of the installation that is there are not ours")
	}
	if !d.OwnedBy(who, renewed(t, c)) {
		t.Error("the files of the installation that has another authority by now are not ours")
	}
	if d.OwnedBy(who, issue(t, o, nil).Data) {
		t.Error("files of another authority are ours")
	}
	moved, err := d.SetAside(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if err != nil || filepath.Base(moved) != "previous-20260102-030405" {
		t.Fatal(moved, err)
	}
	if got, err := d.Certificates(); err != nil || len(got) != 0 {
		t.Errorf("%d files are left, %v", len(got), err)
	}
	if !d.OwnedBy(who, nil) {
		t.Error("an empty directory is not ours")
	}
}

// A neighbour who prepares the directory, or may write it, would know the keys of the control plane or replace the kubeconfig.
func TestFiles_PreparedByNeighbours(t *testing.T) {
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	mine := t.TempDir()
	for name, files := range map[string]Files{
		"data": {Data: open, PKI: mine}, "certificates": {Data: mine, PKI: open}, "a directory in it": {Data: filepath.Join(open, "new"), PKI: mine},
		"a link into it": {Data: link(t, filepath.Join(mine, "link"), filepath.Join(open, ".")), PKI: mine},
	} {
		if err := files.CheckWritable(); err == nil || !strings.Contains(err.Error(), "can be written by other users") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Chmod(open, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if err := (Files{Data: filepath.Join(open, "new"), PKI: mine}).CheckWritable(); err != nil {
		t.Errorf("in a directory like /tmp: %v", err)
	}
}

func link(t *testing.T, from, to string) string {
	t.Helper()
	if err := os.Symlink(to, from); err != nil {
		t.Fatal(err)
	}
	return from
}

func TestFiles_Writable(t *testing.T) {
	root := t.TempDir()
	if err := (Files{Data: filepath.Join(root, "a", "b"), PKI: filepath.Join(root, "c")}).CheckWritable(); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) > 0 {
		t.Errorf("something was left: %v, %v", entries, err)
	}
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := (Files{Data: filepath.Join(file, "x"), PKI: root}).CheckWritable()
	if err == nil || !strings.Contains(err.Error(), "--karmada-data") {
		t.Errorf("got %v", err)
	}
}
