package lua

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// exact is the first integer whose neighbours a float cannot distinguish.
const exact = 1 << 53

// maxNestedTables is how deep tables that come back may be nested.
const maxNestedTables = 1000

var (
	errSparse    = errors.New("cannot encode sparse array")
	errMixed     = errors.New("cannot encode mixed or invalid key types")
	errRecursive = errors.New("cannot encode recursively nested tables to JSON")
)

// encoder makes Lua values of plain ones.
type encoder struct {
	l *glua.LState
	// big remembers integers that a number of Lua cannot hold.
	big map[float64]int64
}

func (e *encoder) value(v any) glua.LValue {
	switch x := v.(type) {
	case nil:
		return glua.LNil
	case bool:
		return glua.LBool(x)
	case string:
		return glua.LString(x)
	case int64:
		return e.integer(x)
	case int:
		return e.integer(int64(x))
	case int32:
		return glua.LNumber(x)
	case float64:
		return glua.LNumber(x)
	case []any:
		table := e.l.CreateTable(len(x), 0)
		for _, element := range x {
			table.Append(e.value(element))
		}
		return table
	case map[string]any:
		return e.object(x)
	}
	return glua.LString(fmt.Sprint(v))
}

func (e *encoder) integer(n int64) glua.LValue {
	if n >= exact || n <= -exact {
		if e.big == nil {
			e.big = map[float64]int64{}
		}
		e.big[float64(n)] = n
	}
	return glua.LNumber(n)
}

// object makes a table whose keys are in order, so that scripts see the same
// object the same way every time.
func (e *encoder) object(m map[string]any) glua.LValue {
	var space [32]string
	keys := space[:0]
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	table := e.l.CreateTable(0, len(keys))
	for _, key := range keys {
		if value := e.value(m[key]); value != glua.LNil {
			table.RawSetString(key, value)
		}
	}
	return table
}

// Shape is what an empty table was before.
type Shape int

// The shapes.
const (
	Gone Shape = iota
	EmptyObject
	EmptyList
)

// Shapes are the empty objects and lists of some objects, by path.
type Shapes map[string]Shape

// ShapesOf finds the empty objects and lists of trees. The
// elements of a list share a path.
func ShapesOf(trees ...any) Shapes {
	shapes := Shapes{}
	for _, tree := range trees {
		shapes.add(nil, tree)
	}
	return shapes
}

func (s Shapes) add(path []string, tree any) {
	switch t := tree.(type) {
	case map[string]any:
		if len(t) == 0 {
			s[joinPath(path)] = EmptyObject
		}
		for key, value := range t {
			s.add(append(path, key), value)
		}
	case []any:
		if len(t) == 0 {
			s[joinPath(path)] = EmptyList
		}
		for _, element := range t {
			s.add(path, element)
		}
	}
}

func joinPath(path []string) string { return strings.Join(path, "\x00") }

// decoder makes plain values of Lua ones.
type decoder struct {
	shapes Shapes
	big    map[float64]int64
	seen   map[*glua.LTable]bool
	path   []string
	depth  int
	gone   bool
}

// plain returns the plain value; an empty table is an empty object.
func (d *decoder) plain(v glua.LValue) (any, error) {
	if table, ok := v.(*glua.LTable); ok {
		if key, _ := table.Next(glua.LNil); key == glua.LNil {
			return map[string]any{}, nil
		}
	}
	return d.value(v)
}

func (d *decoder) value(v glua.LValue) (any, error) {
	switch x := v.(type) {
	case *glua.LNilType:
		return nil, nil
	case glua.LBool:
		return bool(x), nil
	case glua.LString:
		return string(x), nil
	case glua.LNumber:
		return d.number(float64(x))
	case *glua.LTable:
		return d.table(x)
	}
	return nil, fmt.Errorf("cannot encode %s to JSON", v.Type())
}

func (d *decoder) number(f float64) (any, error) {
	if n, ok := d.big[f]; ok {
		return n, nil
	}
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return nil, fmt.Errorf("cannot encode %v to JSON", f)
	case f == math.Trunc(f) && f >= -1<<63 && f < 1<<63:
		return int64(f), nil
	}
	return f, nil
}

// table returns a list or an object. For an empty table that was neither before
// it sets gone.
func (d *decoder) table(t *glua.LTable) (any, error) {
	if d.seen[t] {
		return nil, errRecursive
	}
	if d.seen == nil {
		d.seen = map[*glua.LTable]bool{}
	}
	d.seen[t] = true
	if d.depth++; d.depth > maxNestedTables {
		return nil, errRecursive
	}
	defer func() { d.depth-- }()

	key, value := t.Next(glua.LNil)
	switch key.(type) {
	case *glua.LNilType:
		return d.empty()
	case glua.LNumber:
		return d.list(t, key, value)
	case glua.LString:
		return d.object(t, key, value)
	}
	return nil, errMixed
}

func (d *decoder) empty() (any, error) {
	switch d.shapes[joinPath(d.path)] {
	case EmptyObject:
		return map[string]any{}, nil
	case EmptyList:
		return []any{}, nil
	}
	d.gone = true
	return nil, nil
}

func (d *decoder) list(t *glua.LTable, key, value glua.LValue) (any, error) {
	list := make([]any, 0, t.Len())
	for want := glua.LNumber(1); key != glua.LNil; want++ {
		if _, ok := key.(glua.LNumber); !ok {
			return nil, errMixed
		}
		if key != want {
			return nil, errSparse
		}
		element, err := d.value(value)
		if err != nil {
			return nil, err
		}
		if !d.gone {
			list = append(list, element)
		}
		d.gone = false
		key, value = t.Next(key)
	}
	return list, nil
}

func (d *decoder) object(t *glua.LTable, key, value glua.LValue) (any, error) {
	object := make(map[string]any)
	for key != glua.LNil {
		name, ok := key.(glua.LString)
		if !ok {
			return nil, errMixed
		}
		d.path = append(d.path, string(name))
		field, err := d.value(value)
		d.path = d.path[:len(d.path)-1]
		if err != nil {
			return nil, err
		}
		if !d.gone {
			object[string(name)] = field
		}
		d.gone = false
		key, value = t.Next(key)
	}
	return object, nil
}
