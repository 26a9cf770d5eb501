package credentials

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/private"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
)

// ownerFile holds, in the data directory, the installation that its files are of.
const ownerFile = "installation.json"

// oldTimeout is how long the control plane of files that are in the way may take
// to answer.
const oldTimeout = 3 * time.Second

// Owner identifies an installation: a namespace of a cluster.
type Owner struct {
	// HostID is the UID of the host's namespace kube-system.
	HostID    string `json:"hostID"`
	Namespace string `json:"namespace"`
}

// OwnerOf returns the installation in a namespace of the host cluster.
func OwnerOf(host *hostcluster.Facts, namespace string) Owner {
	return Owner{HostID: host.ID, Namespace: namespace}
}

// Files are the local files of an installation.
type Files struct {
	// Data is the directory of the administrator's kubeconfig, PKI that of the certificates.
	Data, PKI string
}

// FilesOf returns the files that a configuration names.
func FilesOf(c *config.Configuration) Files { return Files{Data: c.DataPath, PKI: c.PKIPath} }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (f Files) Kubeconfig() string { return filepath.Join(f.Data, KubeconfigName) }

// Owner returns the installation that the files are of; ok is false when it is not known.
func (f Files) Owner() (who Owner, ok bool) {
	content, err := os.ReadFile(filepath.Join(f.Data, ownerFile))
	if err != nil {
		return Owner{}, false
	}
	return who, json.Unmarshal(content, &who) == nil
}

// Certificates returns the files NAME.crt and NAME.key.
func (f Files) Certificates() (map[string][]byte, error) {
	entries, err := os.ReadDir(f.PKI)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string][]byte{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the certificates in %s: %w", f.PKI, err)
	}
	out := map[string][]byte{}
	for _, e := range entries {
		if !isCertificate(e.Name()) || e.IsDir() {
			continue
		}
		content, err := os.ReadFile(filepath.Join(f.PKI, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading the certificates in %s: %w", f.PKI, err)
		}
		out[e.Name()] = content
	}
	return out, nil
}

func isCertificate(name string) bool {
	return strings.HasSuffix(name, ".crt") || strings.HasSuffix(name, ".key")
}

// CheckWritable returns why files cannot be made, and leaves nothing behind.
func (f Files) CheckWritable() error {
	for flag, path := range map[string]string{"--karmada-data": f.Data, "--karmada-pki": f.PKI} {
		if err := tryWrite(path); err != nil {
			return fmt.Errorf("the directory %s cannot be written (%w): choose one that can, such as --karmada-data=$HOME/.karmada, or run this with more rights (%s names it)", path, err, flag)
		}
	}
	return nil
}

// tryWrite makes and removes a file in a directory, or in the nearest one above it
// that exists.
func tryWrite(dir string) error {
	wanted := dir
	for {
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir:
			dir = filepath.Dir(dir)
			continue
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is not a directory", dir)
		}
		break
	}
	// Keys and the administrator's kubeconfig are read and written here: others must not have prepared or replace them.
	check := private.CheckSharedDir
	if dir == wanted {
		check = private.CheckDir
	}
	if err := check(dir); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".karmada-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// OwnedBy reports whether the files may be used and replaced by an installation: they are its own, or there are none.
func (f Files) OwnedBy(who Owner, installed map[string][]byte) bool {
	if mark, ok := f.Owner(); ok {
		return mark == who
	}
	ca, err := os.ReadFile(filepath.Join(f.PKI, "ca.crt"))
	if err != nil {
		_, err = os.Stat(f.Kubeconfig())
		return errors.Is(err, fs.ErrNotExist)
	}
	return pki.BundleContains(installed["ca.crt"], ca)
}

// Alive reports whether the control plane of the kubeconfig in the directory answers, and its URL.
func (f Files) Alive(ctx context.Context) (server string, ok bool) {
	cfg, err := clientcmd.BuildConfigFromFlags("", f.Kubeconfig())
	if err != nil {
		return "", false
	}
	ctx, cancel := context.WithTimeout(ctx, oldTimeout)
	defer cancel()
	return cfg.Host, Readyz(ctx, cfg) == nil
}

// Readyz returns why an API server is not ready.
func Readyz(ctx context.Context, cfg *rest.Config) error {
	c, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return err
	}
	return kube.CheckOK(ctx, c, cfg.Host+"/readyz")
}

// SetAside moves the files of another installation into a directory beside them.
func (f Files) SetAside(now time.Time) (string, error) {
	name := "previous-" + now.UTC().Format("20060102-150405")
	var moved string
	move := func(dir, file string) error {
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(to, 0o700); err != nil {
			return err
		}
		err := os.Rename(filepath.Join(dir, file), filepath.Join(to, file))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		moved = to
		return err
	}
	certificates, err := f.Certificates()
	if err != nil {
		return "", err
	}
	for file := range certificates {
		if err := move(f.PKI, file); err != nil {
			return "", fmt.Errorf("setting the files of another control plane aside: %w", err)
		}
	}
	for _, file := range []string{KubeconfigName, ownerFile} {
		if err := move(f.Data, file); err != nil {
			return "", fmt.Errorf("setting the files of another control plane aside: %w", err)
		}
	}
	return moved, nil
}

// WriteCertificates writes the certificates that differ, and reports whether there were any.
func (f Files) WriteCertificates(who Owner, c *Credentials) (changed bool, err error) {
	mark, err := json.Marshal(who)
	if err != nil {
		return false, fmt.Errorf("encoding %s: %w", ownerFile, err)
	}
	changed, err = put(filepath.Join(f.Data, ownerFile), append(mark, '\n'), 0o644)
	for _, name := range slices.Sorted(maps.Keys(c.Data)) {
		mode := fs.FileMode(0o644)
		if strings.HasSuffix(name, ".key") {
			mode = 0o600
		}
		if err != nil {
			return changed, err
		}
		var wrote bool
		wrote, err = put(filepath.Join(f.PKI, name), c.Data[name], mode)
		changed = changed || wrote
	}
	return changed, err
}

// WriteKubeconfig writes the administrator's kubeconfig if it differs, and reports whether it did.
func (f Files) WriteKubeconfig(c *Credentials) (changed bool, err error) {
	return put(f.Kubeconfig(), c.Admin, 0o600)
}

// put writes a file unless its content and mode are the same.
func put(path string, content []byte, mode fs.FileMode) (changed bool, err error) {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		if info, err := os.Stat(path); err == nil && info.Mode().Perm() == mode {
			return false, nil
		}
	}
	if err := pki.WriteFile(path, content, mode); err != nil {
		return false, fmt.Errorf("writing %s: %w; choose another directory with --karmada-data", path, err)
	}
	return true, nil
}
