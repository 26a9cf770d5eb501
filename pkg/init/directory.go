package installer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/karmada-toolkit/karmada/internal/pki"
)

// ownerFile says, in the data directory, which installation its files are of.
const ownerFile = "installation.json"

// oldTimeout is how long the control plane of files that are in the way may take
// to answer.
const oldTimeout = 3 * time.Second

// owner identifies an installation: a namespace of a cluster.
type owner struct {
	// HostID is the UID of the host's namespace kube-system.
	HostID    string `json:"hostID"`
	Namespace string `json:"namespace"`
}

// directory are the local files of an installation.
type directory struct {
	data, pki string
}

func (o *Options) directory() directory { return directory{data: o.DataPath, pki: o.pkiPath()} }

func (d directory) kubeconfig() string { return filepath.Join(d.data, kubeconfigName) }

// owner returns whose files these are; ok is false when nothing says so.
func (d directory) owner() (who owner, ok bool) {
	content, err := os.ReadFile(filepath.Join(d.data, ownerFile))
	if err != nil {
		return owner{}, false
	}
	return who, json.Unmarshal(content, &who) == nil
}

// certificates returns the files NAME.crt and NAME.key.
func (d directory) certificates() (map[string][]byte, error) {
	entries, err := os.ReadDir(d.pki)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string][]byte{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the certificates in %s: %w", d.pki, err)
	}
	out := map[string][]byte{}
	for _, e := range entries {
		if !isCertificate(e.Name()) || e.IsDir() {
			continue
		}
		content, err := os.ReadFile(filepath.Join(d.pki, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading the certificates in %s: %w", d.pki, err)
		}
		out[e.Name()] = content
	}
	return out, nil
}

func isCertificate(name string) bool {
	return strings.HasSuffix(name, ".crt") || strings.HasSuffix(name, ".key")
}

// writable reports whether files can be made, and leaves nothing behind.
func (d directory) writable() error {
	for flag, path := range map[string]string{"--karmada-data": d.data, "--karmada-pki": d.pki} {
		if err := tryWrite(path); err != nil {
			return fmt.Errorf("the directory %s cannot be written (%w): choose one that can, such as --karmada-data=$HOME/.karmada, or run this with more rights (%s names it)", path, err, flag)
		}
	}
	return nil
}

// tryWrite makes and removes a file in a directory, or in the nearest one above it
// that exists.
func tryWrite(dir string) error {
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
	f, err := os.CreateTemp(dir, ".karmada-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// ours says whether the files may be used and replaced: they are of this
// installation, or there are none.
func (d directory) ours(who owner, installed map[string][]byte) bool {
	if mark, ok := d.owner(); ok {
		return mark == who
	}
	ca, err := os.ReadFile(filepath.Join(d.pki, "ca.crt"))
	if err != nil {
		_, err = os.Stat(d.kubeconfig())
		return errors.Is(err, fs.ErrNotExist)
	}
	return bytes.Equal(ca, installed["ca.crt"])
}

// alive says whether the control plane of the kubeconfig in the directory answers.
func (d directory) alive(ctx context.Context) (server string, ok bool) {
	cfg, err := clientcmd.BuildConfigFromFlags("", d.kubeconfig())
	if err != nil {
		return "", false
	}
	ctx, cancel := context.WithTimeout(ctx, oldTimeout)
	defer cancel()
	return cfg.Host, readyz(ctx, cfg) == nil
}

// readyz asks an API server whether it is ready.
func readyz(ctx context.Context, cfg *rest.Config) error {
	c, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.Host+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // only the status counts
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s/readyz answers %s", cfg.Host, resp.Status)
	}
	return nil
}

// setAside moves the files of another installation into a directory beside them.
func (d directory) setAside(now time.Time) (string, error) {
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
	certificates, err := d.certificates()
	if err != nil {
		return "", err
	}
	for file := range certificates {
		if err := move(d.pki, file); err != nil {
			return "", fmt.Errorf("setting the files of another control plane aside: %w", err)
		}
	}
	for _, file := range []string{kubeconfigName, ownerFile} {
		if err := move(d.data, file); err != nil {
			return "", fmt.Errorf("setting the files of another control plane aside: %w", err)
		}
	}
	return moved, nil
}

// writeCertificates brings the certificates up to date and says whether any
// changed.
func (d directory) writeCertificates(who owner, c *credentials) (changed bool, err error) {
	mark, err := json.Marshal(who)
	if err != nil {
		return false, fmt.Errorf("encoding %s: %w", ownerFile, err)
	}
	changed, err = put(filepath.Join(d.data, ownerFile), append(mark, '\n'), 0o644)
	for _, name := range slices.Sorted(maps.Keys(c.data)) {
		mode := fs.FileMode(0o644)
		if strings.HasSuffix(name, ".key") {
			mode = 0o600
		}
		if err != nil {
			return changed, err
		}
		var wrote bool
		wrote, err = put(filepath.Join(d.pki, name), c.data[name], mode)
		changed = changed || wrote
	}
	return changed, err
}

// writeKubeconfig brings the administrator's kubeconfig up to date and says
// whether it changed.
func (d directory) writeKubeconfig(c *credentials) (changed bool, err error) {
	return put(d.kubeconfig(), c.admin, 0o600)
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
