package lua

import (
	"errors"
	"fmt"
	"strings"

	glua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// The names by which rewritten scripts reach the functions that count memory. No
// script can spell them.
const (
	nameConcat = "(concat)"
	nameTable  = "(table)"
	nameSet    = "(set)"
)

// maxBytes is the length of a script, in bytes.
const maxBytes = 256 << 10

// maxDepth is how deep expressions and blocks may be nested.
const maxDepth = 400

// chunkName is what error messages call a script.
const chunkName = "<string>"

var errTooDeep = errors.New("the script is nested too deeply")

// compile parses a script and makes every instruction that can take much memory
// at once a call of a function that counts it.
func compile(script string) (proto *glua.FunctionProto, err error) {
	defer func() {
		if r := recover(); r != nil {
			proto, err = nil, fmt.Errorf("%s: %v", chunkName, r)
		}
	}()
	if len(script) > maxBytes {
		return nil, fmt.Errorf("the script has %d bytes, more than %d", len(script), maxBytes)
	}
	chunk, err := parse.Parse(strings.NewReader(script), chunkName)
	if err != nil {
		return nil, err
	}
	w := &rewriter{}
	w.block(chunk, 0)
	if w.tooDeep {
		return nil, errTooDeep
	}
	prologue := &ast.LocalAssignStmt{
		Names: []string{nameConcat, nameTable, nameSet}, Exprs: []ast.Expr{&ast.Comma3Expr{}},
	}
	return glua.Compile(append([]ast.Stmt{prologue}, chunk...), chunkName)
}

type rewriter struct{ tooDeep bool }

// enter reports whether to go on at a depth.
func (w *rewriter) enter(depth int) bool {
	w.tooDeep = w.tooDeep || depth > maxDepth
	return !w.tooDeep
}

func (w *rewriter) block(stmts []ast.Stmt, depth int) {
	if !w.enter(depth) {
		return
	}
	for i, stmt := range stmts {
		stmts[i] = w.stmt(stmt, depth+1)
	}
}

func (w *rewriter) exprs(exprs []ast.Expr, depth int) {
	for i, e := range exprs {
		exprs[i] = w.expr(e, depth)
	}
}

func (w *rewriter) stmt(stmt ast.Stmt, depth int) ast.Stmt {
	switch s := stmt.(type) {
	case *ast.AssignStmt:
		w.exprs(s.Lhs, depth)
		w.exprs(s.Rhs, depth)
		return assign(s)
	case *ast.LocalAssignStmt:
		w.exprs(s.Exprs, depth)
	case *ast.FuncCallStmt:
		s.Expr = w.expr(s.Expr, depth)
	case *ast.FuncDefStmt:
		w.expr(s.Func, depth)
	case *ast.ReturnStmt:
		w.exprs(s.Exprs, depth)
	default:
		w.compound(stmt, depth)
	}
	return stmt
}

func (w *rewriter) compound(stmt ast.Stmt, depth int) {
	switch s := stmt.(type) {
	case *ast.DoBlockStmt:
		w.block(s.Stmts, depth)
	case *ast.WhileStmt:
		s.Condition = w.expr(s.Condition, depth)
		w.block(s.Stmts, depth)
	case *ast.RepeatStmt:
		s.Condition = w.expr(s.Condition, depth)
		w.block(s.Stmts, depth)
	case *ast.IfStmt:
		s.Condition = w.expr(s.Condition, depth)
		w.block(s.Then, depth)
		w.block(s.Else, depth)
	case *ast.NumberForStmt:
		s.Init, s.Limit = w.expr(s.Init, depth), w.expr(s.Limit, depth)
		if s.Step != nil {
			s.Step = w.expr(s.Step, depth)
		}
		w.block(s.Stmts, depth)
	case *ast.GenericForStmt:
		w.exprs(s.Exprs, depth)
		w.block(s.Stmts, depth)
	}
}

func (w *rewriter) expr(expr ast.Expr, depth int) ast.Expr {
	if !w.enter(depth) {
		return expr
	}
	depth++
	switch e := expr.(type) {
	case *ast.AttrGetExpr:
		e.Object, e.Key = w.expr(e.Object, depth), w.expr(e.Key, depth)
	case *ast.TableExpr:
		return w.table(e, depth)
	case *ast.FuncCallExpr:
		if e.Func != nil {
			e.Func = w.expr(e.Func, depth)
		}
		if e.Receiver != nil {
			e.Receiver = w.expr(e.Receiver, depth)
		}
		w.exprs(e.Args, depth)
	case *ast.StringConcatOpExpr:
		return w.concat(e, depth)
	case *ast.FunctionExpr:
		w.block(e.Stmts, depth)
	default:
		w.operator(expr, depth)
	}
	return expr
}

func (w *rewriter) operator(expr ast.Expr, depth int) {
	switch e := expr.(type) {
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = w.expr(e.Lhs, depth), w.expr(e.Rhs, depth)
	case *ast.RelationalOpExpr:
		e.Lhs, e.Rhs = w.expr(e.Lhs, depth), w.expr(e.Rhs, depth)
	case *ast.ArithmeticOpExpr:
		e.Lhs, e.Rhs = w.expr(e.Lhs, depth), w.expr(e.Rhs, depth)
	case *ast.UnaryMinusOpExpr:
		e.Expr = w.expr(e.Expr, depth)
	case *ast.UnaryNotOpExpr:
		e.Expr = w.expr(e.Expr, depth)
	case *ast.UnaryLenOpExpr:
		e.Expr = w.expr(e.Expr, depth)
	}
}

// table makes {...} a call that counts the new table.
func (w *rewriter) table(e *ast.TableExpr, depth int) ast.Expr {
	for _, field := range e.Fields {
		if field.Key != nil {
			field.Key = w.expr(field.Key, depth)
		}
		field.Value = w.expr(field.Value, depth)
	}
	return call(e, nameTable, e)
}

// concat makes a .. b .. c one call that counts the new string.
func (w *rewriter) concat(e *ast.StringConcatOpExpr, depth int) ast.Expr {
	var operands []ast.Expr
	var rest ast.Expr = e
	for {
		c, ok := rest.(*ast.StringConcatOpExpr)
		if !ok {
			break
		}
		operands = append(operands, single(w.expr(c.Lhs, depth)))
		rest = c.Rhs
	}
	return call(e, nameConcat, append(operands, single(w.expr(rest, depth)))...)
}

// single makes an expression one value where it would be several.
func single(e ast.Expr) ast.Expr {
	switch x := e.(type) {
	case *ast.FuncCallExpr:
		x.AdjustRet = true
	case *ast.Comma3Expr:
		x.AdjustRet = true
	}
	return e
}

// call returns the call of a hidden function in the place of another expression.
func call(at ast.PositionHolder, name string, args ...ast.Expr) *ast.FuncCallExpr {
	fn := &ast.IdentExpr{Value: name}
	c := &ast.FuncCallExpr{Func: fn, Args: args, AdjustRet: true}
	for _, e := range []ast.PositionHolder{fn, c} {
		e.SetLine(at.Line())
		e.SetLastLine(at.LastLine())
	}
	return c
}

// assign makes assignments to computed keys calls that count what a table grows.
// Fixed names cannot make a table grow by much.
func assign(s *ast.AssignStmt) ast.Stmt {
	computed := false
	for _, lhs := range s.Lhs {
		if attr, ok := lhs.(*ast.AttrGetExpr); ok {
			_, fixed := attr.Key.(*ast.StringExpr)
			computed = computed || !fixed
		}
	}
	if !computed {
		return s
	}
	if len(s.Lhs) == 1 && len(s.Rhs) == 1 {
		attr := s.Lhs[0].(*ast.AttrGetExpr)
		return callStmt(s, attr.Object, attr.Key, single(s.Rhs[0]))
	}
	return assignMany(s)
}

// assignMany evaluates everything first, as an assignment to several places does,
// and then sets one place after the other.
func assignMany(s *ast.AssignStmt) ast.Stmt {
	temporaries := &ast.LocalAssignStmt{}
	temporary := func(kind string, i int) *ast.IdentExpr {
		return &ast.IdentExpr{Value: fmt.Sprintf("(%s %d)", kind, i)}
	}
	declare := func(id *ast.IdentExpr, value ast.Expr) {
		temporaries.Names = append(temporaries.Names, id.Value)
		temporaries.Exprs = append(temporaries.Exprs, value)
	}
	for i, lhs := range s.Lhs {
		if attr, ok := lhs.(*ast.AttrGetExpr); ok {
			declare(temporary("object", i), single(attr.Object))
			declare(temporary("key", i), single(attr.Key))
		}
	}
	for i := range s.Lhs {
		temporaries.Names = append(temporaries.Names, temporary("value", i).Value)
	}
	temporaries.Exprs = append(temporaries.Exprs, s.Rhs...)
	position(s, temporaries)
	stmts := []ast.Stmt{temporaries}
	for i, lhs := range s.Lhs {
		if _, ok := lhs.(*ast.AttrGetExpr); ok {
			stmts = append(stmts, callStmt(s, temporary("object", i), temporary("key", i), temporary("value", i)))
			continue
		}
		plain := &ast.AssignStmt{Lhs: []ast.Expr{lhs}, Rhs: []ast.Expr{temporary("value", i)}}
		position(s, plain)
		stmts = append(stmts, plain)
	}
	do := &ast.DoBlockStmt{Stmts: stmts}
	position(s, do)
	return do
}

func callStmt(at ast.PositionHolder, args ...ast.Expr) ast.Stmt {
	stmt := &ast.FuncCallStmt{Expr: call(at, nameSet, args...)}
	position(at, stmt)
	return stmt
}

func position(from, to ast.PositionHolder) {
	to.SetLine(from.Line())
	to.SetLastLine(from.LastLine())
}
