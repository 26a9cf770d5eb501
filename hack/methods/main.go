// Command methods reports types of this module that have too many methods. A type with many
// methods consists of parts that have no name yet. Tests and generated code are not counted.
package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// limit is how many methods a type may have.
const limit = 12

func main() {
	types, err := tooLarge(os.DirFS("."), limit)
	if err != nil {
		fmt.Fprintln(os.Stderr, "methods:", err)
		os.Exit(1)
	}
	for _, t := range types {
		fmt.Printf("%s has %d methods; a type has at most %d\n", t.name, t.methods, limit)
	}
	if len(types) > 0 {
		os.Exit(1)
	}
}

// typeSize is the number of methods of a type, which is named by its directory and name.
type typeSize struct {
	name    string
	methods int
}

// tooLarge returns the types under a directory with more methods than the limit, the largest first.
func tooLarge(dir fs.FS, limit int) ([]typeSize, error) {
	methods := map[string]int{}
	err := fs.WalkDir(dir, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		return count(dir, path, methods)
	})
	if err != nil {
		return nil, err
	}
	var out []typeSize
	for name, n := range methods {
		if n > limit {
			out = append(out, typeSize{name, n})
		}
	}
	slices.SortFunc(out, func(a, b typeSize) int {
		return cmp.Or(cmp.Compare(b.methods, a.methods), cmp.Compare(a.name, b.name))
	})
	return out, nil
}

// count adds the methods that a file declares to those of their types.
func count(dir fs.FS, path string, methods map[string]int) error {
	source, err := fs.ReadFile(dir, path)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if ast.IsGenerated(file) {
		return nil
	}
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Recv == nil {
			continue
		}
		if name := receiver(function.Recv.List[0].Type); name != "" {
			methods[filepath.ToSlash(filepath.Dir(path))+"."+name]++
		}
	}
	return nil
}

// receiver returns the name of the type of a receiver, without pointer and type parameters.
func receiver(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.ParenExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
