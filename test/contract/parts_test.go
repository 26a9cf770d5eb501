package contract

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"
)

// field is a field of a struct.
type field struct {
	position string // file:line
	holds    string // its type as it is written
	element  string // the type without the pointers, slices and maps around it, if it is of the same package
}

func (f field) pointer() bool { return strings.HasPrefix(f.holds, "*") }

// TestParts_HoldNoPointerToTheWhole parses the packages, other than those of API types.
func TestParts_HoldNoPointerToTheWhole(t *testing.T) {
	packages := map[string][]goFile{}
	for _, file := range goFiles(t) {
		checked := file.under("cmd") || file.under("internal") || file.under("pkg") && !file.under("pkg/apis")
		if checked && !file.test() && !file.generated() {
			packages[file.dir()] = append(packages[file.dir()], file)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		structs, err := parseStructs(packages[dir])
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range pointersToWholes(structs) {
			t.Error(problem + ". Pass it the functions or fields that it needs.")
		}
	}
}

// pointersToWholes returns the fields that hold a struct which holds theirs. A pointer beside a slice or map is that of the
// part; of two pointers both are returned. A struct that holds itself is a tree or a list.
func pointersToWholes(structs map[string][]field) []string {
	var out []string
	for _, part := range slices.Sorted(maps.Keys(structs)) {
		for _, f := range structs[part] {
			isPart := func(other field) bool { return other.element == part && (f.pointer() || !other.pointer()) }
			if f.element != part && f.element != f.holds && slices.ContainsFunc(structs[f.element], isPart) {
				out = append(out, fmt.Sprintf("%s: %s holds %s, of which it is a part", f.position, part, f.holds))
			}
		}
	}
	return out
}

// parseStructs returns the fields of the structs that the files of a package declare.
func parseStructs(files []goFile) (map[string][]field, error) {
	positions := token.NewFileSet()
	out := map[string][]field{}
	for _, file := range files {
		tree, err := parser.ParseFile(positions, file.path, file.source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for name, structure := range structsOf(tree) {
			for _, f := range structure.Fields.List {
				at := positions.Position(f.Pos())
				out[name] = append(out[name], field{fmt.Sprintf("%s:%d", at.Filename, at.Line), types.ExprString(f.Type), element(f.Type)})
			}
		}
	}
	return out, nil
}

// structsOf returns the structs of a file, without those that functions declare.
func structsOf(file *ast.File) map[string]*ast.StructType {
	out := map[string]*ast.StructType{}
	for _, declaration := range file.Decls {
		if group, ok := declaration.(*ast.GenDecl); ok {
			for _, spec := range group.Specs {
				if named, ok := spec.(*ast.TypeSpec); ok {
					if structure, ok := named.Type.(*ast.StructType); ok {
						out[named.Name.Name] = structure
					}
				}
			}
		}
	}
	return out
}

// element returns the name of a type of the package, without the pointers, slices and maps around it and without its
// arguments. It is empty for other types.
func element(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return element(e.X)
	case *ast.ArrayType:
		return element(e.Elt)
	case *ast.MapType:
		return element(e.Value)
	case *ast.IndexExpr:
		return element(e.X)
	case *ast.IndexListExpr:
		return element(e.X)
	}
	return ""
}

func TestPointersToWholes_OfFields(t *testing.T) {
	const found = "a.go:2: part holds *whole, of which it is a part"
	for name, test := range map[string]struct {
		source, want string
	}{
		"a part by value":             {"type part struct { name string\n w *whole }\ntype whole struct { p part }", found},
		"a part in a map":             {"type part struct { name string\n w *whole }\ntype whole struct { p map[string]*part }", found},
		"a part in a slice":           {"type (\npart struct { w *whole }\nwhole struct { p [][]part })", found},
		"an embedded part":            {"type part struct { name string\n *whole }\ntype whole struct { part }", found},
		"a generic part":              {"type part[T any] struct { name T\n w *whole }\ntype whole struct { p *part[int] }", found + "\na.go:3: whole holds *part[int], of which it is a part"},
		"a map of wholes":             {"type part struct { name string\n w map[string]*whole }\ntype whole struct { p part }", strings.Replace(found, "*", "map[string]*", 1)},
		"a struct that holds itself":  {"type node struct { parent *node; children []*node }", ""},
		"a function of the whole":     {"type part struct { do func(*whole) }\ntype whole struct { p part }", ""},
		"a struct of another package": {"type part struct { w *other.whole }\ntype whole struct { p part }", ""},
		"a pointer to a third struct": {"type part struct { s *shared }\ntype whole struct { p part; s *shared }\ntype shared struct {}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			structs, err := parseStructs([]goFile{{path: "a.go", source: "package a; " + test.source}})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(pointersToWholes(structs), "\n"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
