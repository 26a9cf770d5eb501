package pki

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	secretMode fs.FileMode = 0o600
	publicMode fs.FileMode = 0o644
	dirMode    fs.FileMode = 0o700
)

// Dir is a Storage in a directory, which is made when needed. Writes are atomic.
type Dir string

// Read returns the content of a file.
func (d Dir) Read(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(string(d), name))
}

// Write replaces a file; secret ones can be read by their owner only.
func (d Dir) Write(name string, data []byte, secret bool) error {
	mode := publicMode
	if secret {
		mode = secretMode
	}
	return WriteFile(filepath.Join(string(d), name), data, mode)
}

// Path returns where a file of the directory is.
func (d Dir) Path(name string) string { return filepath.Join(string(d), name) }

// WriteFile writes a file so that a reader sees the old content or the new, never a part, whatever happens in
// between. Missing directories are made.
func WriteFile(path string, data []byte, mode fs.FileMode) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(os.Remove(tmp.Name())))
		}
	}()
	if err := fill(tmp, data, mode); err != nil {
		return errors.Join(err, tmp.Close())
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

func fill(f *os.File, data []byte, mode fs.FileMode) error {
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("syncing: %w", err)
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
