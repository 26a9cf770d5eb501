package interpret

import (
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/cli-runtime/pkg/resource"
)

// attempts is how often the request for a URL is sent that does not respond.
const attempts = 3

// eachFile opens every file that a name stands for: a path, a directory, a
// pattern or a URL.
func eachFile(name string, recursive bool, use func(io.Reader) error) error {
	if isURL(name) {
		return download(name, use)
	}
	matches := []string{name}
	if _, err := os.Stat(name); os.IsNotExist(err) {
		found, err := filepath.Glob(name)
		if err != nil {
			return fmt.Errorf("the pattern %q is not valid: %w", name, err)
		}
		if len(found) == 0 {
			return fmt.Errorf("the path %q does not exist", name)
		}
		matches = found
	}
	for _, match := range matches {
		if err := walk(match, recursive, use); err != nil {
			return err
		}
	}
	return nil
}

func walk(root string, recursive bool, use func(io.Reader) error) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && !recursive:
			return filepath.SkipDir
		case d.IsDir():
			return nil
		case path != root && !slices.Contains(resource.FileExtensions, strings.ToLower(filepath.Ext(path))):
			return nil
		}
		f, err := os.Open(path) //nolint:gosec // the user's own files, read with the user's rights
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		if err := use(f); err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		return nil
	})
}

func download(url string, use func(io.Reader) error) error {
	client := http.Client{Timeout: 30 * time.Second}
	var failure error
	for range attempts {
		response, err := client.Get(url)
		if err != nil {
			failure = err
			continue
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode == http.StatusOK {
			return use(response.Body)
		}
		failure = fmt.Errorf("unable to read URL %q, server reported %s, status code=%d", url, response.Status, response.StatusCode)
		if response.StatusCode < http.StatusInternalServerError {
			break
		}
	}
	return failure
}
