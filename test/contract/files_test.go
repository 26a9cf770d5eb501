package contract

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// outputs are the directories that make writes to, besides _output.
var outputs = []string{"bin", "dist"}

// goFile is a Go file of the main module.
type goFile struct {
	path   string // from the root of the module, with slashes
	source string
}

func (f goFile) dir() string { return path.Dir(f.path) }
func (f goFile) test() bool  { return strings.HasSuffix(f.path, "_test.go") }
func (f goFile) lines() int  { return strings.Count(f.source, "\n") }

// under reports whether a directory or one below it has the file.
func (f goFile) under(dir string) bool { return strings.HasPrefix(f.path, dir+"/") }

// header returns what stands above the package clause.
func (f goFile) header() string {
	header, _, _ := strings.Cut("\n"+f.source, "\npackage ")
	return header
}

func (f goFile) generated() bool { return strings.Contains(f.header(), "\n// Code generated ") }

// goFiles returns the Go files of the main module in the order of their paths.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	files, err := readGoFiles(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// readGoFiles returns the Go files of the module at the root of a file system. As the go command does, it ignores other
// modules, test data, and directories whose name starts with "." or "_".
func readGoFiles(module fs.FS) ([]goFile, error) {
	var files []goFile
	err := fs.WalkDir(module, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case entry.IsDir() && ignored(module, name):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		source, err := fs.ReadFile(module, name)
		files = append(files, goFile{path: name, source: string(source)})
		return err
	})
	return files, err
}

// ignored reports whether a directory below the root has no files of the module.
func ignored(module fs.FS, dir string) bool {
	name := path.Base(dir)
	if slices.Contains(outputs, dir) || name == "testdata" || name[0] == '.' || name[0] == '_' {
		return true
	}
	_, err := fs.Stat(module, path.Join(dir, "go.mod"))
	return err == nil
}
