package env

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/karmada-toolkit/karmada/internal/limit"
)

// CheckFlags checks the manifests that the flags of a command name: kubectl reads without a limit, and replaces all aliases of YAML.
func (e *Env) CheckFlags(cmd *cobra.Command) (err error) {
	recursive, _ := cmd.Flags().GetBool("recursive") // false without the flag
	cmd.Flags().Visit(func(f *pflag.Flag) {
		several, isSlice := f.Value.(pflag.SliceValue)
		switch value := f.Value.String(); {
		case err != nil:
		case f.Name == "filename" && isSlice:
			names := several.GetSlice()
			for i := range names {
				if err == nil {
					names[i], err = e.Manifest(cmd.Context(), names[i], recursive)
				}
			}
			err = errors.Join(err, several.Replace(names))
		case f.Name == "kustomize" && f.Value.Type() == "string":
			err = CheckKustomization(value)
		case f.Name == "patch":
			_, err = limit.ReadManifest("--patch", strings.NewReader(value))
		case slices.Contains([]string{"patch-file", "desired-file", "observed-file", "status-file"}, f.Name):
			value, err = e.Manifest(cmd.Context(), value, recursive)
			err = errors.Join(err, f.Value.Set(value))
		}
	})
	return err
}

// Manifest checks a file, a directory, a URL or, for "-", the standard input, and returns what kubectl's builder can read in its place.
// What can be read once only is kept in memory. The error of a file that cannot be opened is left to the builder.
func (e *Env) Manifest(ctx context.Context, name string, recursive bool) (string, error) {
	return limit.Within(ctx, name, func() (string, error) { return e.manifest(name, recursive) })
}

func (e *Env) manifest(name string, recursive bool) (string, error) {
	info, err := os.Stat(name)
	if IsURL(name) {
		http.DefaultClient.Transport = bounded{}
		return name, nil
	}
	if name == "-" {
		r, text, err := e.buffer("standard input", e.In)
		e.In, os.Stdin = bytes.NewReader(text), r // the builder reads nothing else
		return name, err
	}
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		r, _, err := e.buffer(name, nil)
		return fmt.Sprintf("/dev/fd/%d", r.Fd()), err
	}
	paths, _ := Files(name, recursive)
	for _, path := range paths {
		if _, err := limit.ReadManifest(path, nil); err != nil && !errors.As(err, new(*fs.PathError)) {
			return "", err
		}
	}
	return name, nil
}

// buffer returns a pipe, which stays open, with a checked manifest.
func (e *Env) buffer(name string, in io.Reader) (*os.File, []byte, error) {
	text, err := limit.ReadManifest(name, in)
	r, w, pipeErr := os.Pipe()
	e.buffers = append(e.buffers, r)
	go func() { _, _ = io.Copy(w, bytes.NewReader(text)); _ = w.Close() }()
	return r, text, errors.Join(err, pipeErr)
}

// Files returns the files that a name stands for: a path, a directory or a pattern.
func Files(name string, recursive bool) ([]string, error) {
	matches := []string{name}
	if _, err := os.Stat(name); os.IsNotExist(err) {
		if matches, err = filepath.Glob(name); err != nil {
			return nil, fmt.Errorf("the pattern %q is not valid: %w", name, err)
		}
		if len(matches) == 0 {
			return nil, fmt.Errorf("the path %q does not exist", name)
		}
	}
	var out []string
	for _, match := range matches {
		visitors, err := resource.ExpandPathsToFileVisitors(nil, match, recursive, resource.FileExtensions, nil)
		if err != nil {
			return nil, err
		}
		for _, v := range visitors {
			if file, ok := v.(*resource.FileVisitor); ok {
				out = append(out, file.Path)
			}
		}
	}
	return out, nil
}

// IsURL reports whether a name is that of a file on a server.
func IsURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

// bounded is a transport for manifests.
type bounded struct{}

// RoundTrip implements http.RoundTripper.
func (bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	text, err := limit.ReadManifest(req.URL.Redacted(), response.Body)
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(text))
	return response, nil
}

// CheckKustomization checks the files of a kustomization.
func CheckKustomization(dir string) error {
	files := &boundedFiles{FileSystem: filesys.MakeFsOnDisk()}
	_, _ = krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, dir) // the builder explains what else is wrong
	return files.err
}

type boundedFiles struct {
	filesys.FileSystem
	err error
}

// ReadFile implements filesys.FileSystem.
func (f *boundedFiles) ReadFile(path string) ([]byte, error) {
	text, err := limit.ReadManifest(path, nil)
	if err != nil && !errors.As(err, new(*fs.PathError)) {
		f.err = err
	}
	return text, err
}
