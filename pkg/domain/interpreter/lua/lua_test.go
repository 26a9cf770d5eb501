package lua

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karmada-toolkit/karmada/internal/build"
)

func engine() *Engine { return limited(time.Minute) }

func limited(limit time.Duration) *Engine {
	return NewEngine(Limits{Time: limit, Memory: 32 << 20}, time.Now, map[string]Module{"kube": {
		"echo": func(args []any) (any, error) { return args, nil },
		"fail": func([]any) (any, error) { return nil, errors.New("broken") },
		"boom": func([]any) (any, error) { panic("boom") },
	}})
}

// run calls F of a script and returns its result.
func run(e *Engine, source string, args ...any) (result any, err error) {
	err = e.Script(source).Call("F", args, 1, func(results []Value) error {
		result, err = (&decoder{big: results[0].big}).plain(results[0].value)
		return err
	})
	return result, err
}

func TestRun(t *testing.T) {
	for _, tc := range []struct {
		name, source string
		args         []any
		want         any
	}{
		{"numbers come back as integers", `function F(a) return a + 1 end`, []any{int64(2)}, int64(3)},
		{"fractions stay", `function F() return 1 / 4 end`, nil, 0.25},
		{"big integers are kept", `function F(a) return {n = a.n} end`, []any{map[string]any{"n": int64(9007199254740993)}}, map[string]any{"n": int64(9007199254740993)}},
		{"lists and objects", `function F(a) a.l[#a.l + 1] = "z" return a end`, []any{map[string]any{"l": []any{"x", true}, "m": map[string]any{"k": 1.5}}},
			map[string]any{"l": []any{"x", true, "z"}, "m": map[string]any{"k": 1.5}}},
		{"empty tables that were nothing are left out", `function F() return {a = {}, b = {{}, 1}, c = {d = {}}} end`, nil,
			map[string]any{"b": []any{int64(1)}, "c": map[string]any{}}},
		{"nothing is nil", `function F() end`, nil, nil},
		{"objects are seen in order", `function F(a) local s = "" for k in pairs(a) do s = s .. k end return s end`,
			[]any{map[string]any{"c": int64(1), "a": int64(1), "d": int64(1), "b": int64(1)}}, "abcd"},
		{"concatenation", `function F(a) return a .. 1 .. "x" .. (function() return "y", "z" end)() end`, []any{"v"}, "v1xy"},
		{"assignment to several places", `function F() local t, i = {1, 2}, 1 i, t[i], t[2] = 2, t[2], t[1] return {t[1], t[2], i} end`, nil,
			[]any{int64(2), int64(1), int64(2)}},
		{"assignment from a call", `function F() local t = {} t[1], t[2] = (function() return 7, 8 end)() return t end`, nil, []any{int64(7), int64(8)}},
		{"a computed key", `function F(k) local t = {} t[k .. "x"] = 1 t["fixed"] = 2 return t end`, []any{"k"}, map[string]any{"kx": int64(1), "fixed": int64(2)}},
		{"methods of strings", `function F(s) return s:upper() .. ("%d"):format(3) end`, []any{"a"}, "A3"},
		{"gmatch", `function F(s) local t = {} for k, v in string.gmatch(s, "(%w+)=(%w+)") do t[k] = v end return t end`, []any{"a=1, b=2"}, map[string]any{"a": "1", "b": "2"}},
		{"find with captures", `function F(s) local a, b, c = string.find(s, "(%d+)h") return {a, b, c} end`, []any{"12h30m"}, []any{int64(1), int64(3), "12"}},
		{"plain find", `function F(s) return {string.find(s, ".", 1, true)} end`, []any{"a.b"}, []any{int64(2), int64(2)}},
		{"table functions", `function F() local t = {3, 1} table.insert(t, 2) table.insert(t, 1, 0) table.sort(t) table.remove(t, 1) return table.concat(t, ",") end`, nil, "1,2,3"},
		{"modules", `local kube = require("kube") function F() return kube.echo(1, "a", nil, {x = 2}) end`, nil, []any{int64(1), "a", map[string]any{"x": int64(2)}}},
		{"protected calls", `function F() local ok, err = pcall(function() error("oops") end) return {ok, tostring(err)} end`, nil, []any{false, "<string>:1: oops"}},
		{"the time of day", `function F() return type(os.time()) .. type(os.date("!%F")) end`, nil, "numberstring"},
		{"unset libraries", `function F() return {io == nil, debug == nil, coroutine == nil, os.exit == nil, os.getenv == nil, channel == nil} end`, nil,
			[]any{true, true, true, true, true, true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := run(engine(), tc.source, tc.args...)
			if err != nil {
				t.Fatal(err)
			}
			// A nil in a list of arguments ends up as nothing.
			if list, ok := got.([]any); ok && len(list) == 4 && list[2] == nil {
				got = append(list[:2:2], list[3])
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRun_Errors(t *testing.T) {
	for _, tc := range []struct{ name, source, want string }{
		{"syntax", `function F( return end`, "<string> line:1"},
		{"no function", `function G() end`, "not found function F"},
		{"no function but a value", `F = 1`, "F is not a function: number"},
		{"raised", `function F() error("oops") end`, "<string>:1: oops"},
		{"nil index", `function F() return a.b end`, "attempt to index a non-table object(nil) with key 'b'"},
		{"nil concatenated", `function F() return "a" .. nil end`, "cannot perform concat operation between string and nil"},
		{"forbidden function", `function F() return setmetatable({}, {}) end`, "call function setmetatable is not supported in karmada customized resourceinterpreter."},
		{"forbidden string function", `function F() return ("a"):rep(3) end`, "The Lua function string.rep is not supported by Karmada."},
		{"loadlib", `function F() return package.loadlib("a", "b") end`, "loadlib is not supported"},
		{"unknown module", `require("os2")`, "module os2 not found"},
		{"failing module", `function F() return require("kube").fail() end`, "kube.fail: broken"},
		{"panicking module", `function F() return require("kube").boom() end`, "boom"},
		{"sparse list", `function F() return {[1] = 1, [3] = 1} end`, "cannot encode sparse array"},
		{"mixed keys", `function F() return {1, a = 1} end`, "cannot encode mixed or invalid key types"},
		{"boolean keys", `function F() return {[true] = 1} end`, "cannot encode mixed or invalid key types"},
		{"shared table", `function F() local s = {1} return {a = s, b = s} end`, "cannot encode recursively nested tables to JSON"},
		{"function in the result", `function F() return {a = F} end`, "cannot encode function to JSON"},
		{"malformed pattern", `function F() return string.find("a", "[a") end`, "malformed pattern"},
		{"endless recursion", `function F() return 1 + F() end`, "stack overflow"},
		{"format width", `function F() return string.format("%999d", 1) end`, "invalid option to 'format'"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := run(engine(), tc.source)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if errors.Is(err, ErrLimit) {
				t.Errorf("got a limit: %v", err)
			}
		})
	}
}

func TestRun_Limits(t *testing.T) {
	for _, tc := range []struct{ name, source string }{
		{"loop", `function F() while true do end end`},
		{"loop at load", `while true do end`},
		{"protected loop", `function F() while true do pcall(function() while true do end end) end end`},
		{"loop in an error handler", `function F() xpcall(error, function() while true do end end) while true do end end`},
		{"doubling string", `function F() local s = "x" while true do s = s .. s end end`},
		{"growing list", `function F() local t = {} while true do t[#t + 1] = "x" end end`},
		{"inserting", `function F() local t = {} while true do table.insert(t, 1, "x") end end`},
		{"sparse list", `function F() local t = {} t[60000000] = 1 return t[1] end`},
		{"inserting far away", `function F() local t = {} table.insert(t, 60000000, 1) return t[1] end`},
		{"many tables", `function F() local t = {} for i = 1, 1e9 do t[i] = {a = i} end end`},
		{"many keys", `function F() local t = {} for i = 1, 1e9 do t["k" .. i] = i end end`},
		{"joined", `function F() local s, t = ("x"):upper(), {} for i = 1, 20 do s = s .. s end for i = 1, 100 do t[i] = s end return table.concat(t) end`},
		{"backtracking", `function F() local s = "aaaaaaaaaaaaaaaa" s = s .. s .. s .. s .. s .. s .. s .. s s = s .. s .. s .. s return s:find(".-.-.-.-.-.-.-.-.-b") end`},
		{"long dates", `function F() local s, t = ("x"):upper(), {} for i = 1, 15 do s = s .. s end for i = 1, 1e6 do t[i] = os.date(s) end end`},
		{"characters", `function F() local b, t = {}, {} for i = 1, 50000 do b[i] = 65 end for i = 1, 1e6 do t[i] = string.char(unpack(b)) end end`},
		{"arguments", `function F() return select("#", unpack({}, 1, 1e7)) end`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := limited(2 * time.Second)
			_, err := run(e, tc.source)
			if err == nil {
				t.Fatal("the script was not stopped")
			}
			if tc.name != "arguments" && !errors.Is(err, ErrLimit) {
				t.Errorf("got %v", err)
			}
			if got, err := run(e, `function F() return 1 end`); err != nil || got != int64(1) {
				t.Errorf("the next call: %v, %v", got, err)
			}
		})
	}
}

func TestRun_NothingLeaks(t *testing.T) {
	e := engine()
	dirty := `
leak = 1
string.format = nil
string.leak = 1
table.insert = function() end
math.leak = 1
_G.leak2 = 1
tostring = nil
local kube = require("kube")
kube.echo = nil
function F() count = (count or 0) + 1 return count end`
	for range 3 {
		if got, err := run(e, dirty); err != nil || got != int64(1) {
			t.Fatalf("got %v, %v", got, err)
		}
		clean := `local kube = require("kube")
function F() return {leak == nil, leak2 == nil, string.leak == nil, math.leak == nil, string.format("%d", 1), type(tostring), type(kube.echo), count == nil, #{1, table.insert ~= nil}} end`
		got, err := run(e, clean)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]any{true, true, true, true, "1", "function", "function", true, int64(2)}, got); diff != "" {
			t.Fatal(diff)
		}
	}
	if len(e.idle) != 1 {
		t.Errorf("%d machines are idle, want the one that all calls used", len(e.idle))
	}
}

func TestShapes(t *testing.T) {
	before := map[string]any{"a": map[string]any{}, "b": []any{}, "c": []any{map[string]any{"d": map[string]any{}}}, "x.y": map[string]any{}}
	var got map[string]any
	err := engine().Script(`function F(a) a.n = {} a.c[2] = {d = {}, e = 1} return a end`).Call("F", []any{before}, 1, func(results []Value) (err error) {
		got, err = results[0].Object(ShapesOf(before))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"a": map[string]any{}, "b": []any{}, "x.y": map[string]any{},
		"c": []any{map[string]any{"d": map[string]any{}}, map[string]any{"d": map[string]any{}, "e": int64(1)}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCompile_DeepNesting(t *testing.T) {
	source := "function F() return " + strings.Repeat("(", 100000) + "1" + strings.Repeat(")", 100000) + " end"
	_, _ = run(engine(), source)
	source = "function F() return " + strings.Repeat("-", 1) + strings.Repeat(" -", 100000) + " 1 end"
	if _, err := run(engine(), source); err == nil {
		t.Error("want an error")
	}
}

// FuzzCompile compiles a script in proportion to its length.
func FuzzCompile(f *testing.F) {
	for _, source := range []string{
		"function F() return 1 end", strings.Repeat("(", 50_000), "return " + strings.Repeat("-", 999) + "1", strings.Repeat("if x then ", 30_000), "x=" + strings.Repeat("{", 100_000),
		"return a" + strings.Repeat(".b", 100_000), "return 1" + strings.Repeat("..1", 80_000), "return 1" + strings.Repeat("^1", 100_000), strings.Repeat("--[", 80_000), "f" + strings.Repeat("()", 100_000),
		strings.Repeat("x", 4_000_000),
	} {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		build.Bounded(t, time.Minute, 64<<20+uint64(4096*min(len(source), maxBytes)), func() { _ = Check(source) })
	})
}

func FuzzConversion(f *testing.F) {
	f.Add("a", int64(1), 1.5, true)
	f.Add("", int64(-9007199254740995), 1e300, false)
	e := engine()
	script := e.Script(`function F(a) return a end`)
	f.Fuzz(func(t *testing.T, s string, n int64, x float64, b bool) {
		if x != x || x > 1e308 || x < -1e308 {
			return
		}
		in := map[string]any{"k" + s: s, "n": n, "b": b, "l": []any{s, n, map[string]any{}}, "o": map[string]any{s: []any{}}}
		if x != float64(int64(x)) {
			in["x"] = x
		}
		var err error
		build.Bounded(t, time.Minute, 256<<20+uint64(65536*len(s)), func() {
			err = script.Call("F", []any{in}, 1, func(results []Value) error {
				got, err := results[0].Object(ShapesOf(in))
				if err != nil {
					return err
				}
				if diff := cmp.Diff(in, got); diff != "" {
					t.Error(diff)
				}
				return nil
			})
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func FuzzPattern(f *testing.F) {
	for _, seed := range [][2]string{{"hello", "l+"}, {"a=b", "(%w+)=(%w*)"}, {"(x(y))", "%b()"}, {"THE (quick) fox", "%f[%a]%a+"}, {"aa", "(a)%1"}, {"x", "[^%]]"}, {"", "^$"}, {"[[", "[[]"}, {"a", "()a()"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, src, pattern string) {
		build.Bounded(t, time.Minute, 64<<20+uint64(65536*(len(src)+len(pattern))), func() {
			steps := 0
			var m *matcher
			m = newMatcher(src, pattern, func(n int) {
				if steps += n; steps > 200_000 {
					m.fail(errTooComplex)
				}
			})
			from, to, ok := m.find(0)
			if ok && (from < 0 || to < from || to > len(src)) {
				t.Errorf("%d..%d of %d", from, to, len(src))
			}
		})
	})
}

// A script that never ends takes the processor three times, then once in a while.
func TestCall_AScriptThatIsStoppedAgainAndAgainIsPaused(t *testing.T) {
	now := time.Unix(0, 0)
	e := NewEngine(Limits{Memory: 1 << 20}, time.Now, nil)
	e.now = func() time.Time { return now }
	loop := e.Script(`function F(x) while x do end end`)
	call := func(x bool) error {
		return loop.Call("F", []any{x}, 1, func([]Value) error { return nil })
	}
	ran := func() uint64 { return e.PoolStats().Dropped }
	for range 10 {
		if err := call(true); !errors.Is(err, ErrLimit) {
			t.Fatal(err)
		}
	}
	if ran() != strikesAllowed {
		t.Errorf("it ran %d times", ran())
	}
	if err := call(false); !errors.Is(err, ErrLimit) {
		t.Errorf("it may not run, but: %v", err)
	}
	if err := e.Script(`function F() end`).Call("F", nil, 1, func([]Value) error { return nil }); err != nil {
		t.Errorf("another script: %v", err)
	}
	if err := loop.For("m2").Call("F", []any{false}, 1, func([]Value) error { return nil }); err != nil {
		t.Errorf("on behalf of another cluster: %v", err)
	}
	for _, pause := range []time.Duration{firstPause, 2 * firstPause, 4 * firstPause} {
		before := ran()
		now = now.Add(pause)
		for range 5 {
			_ = call(true)
		}
		if ran() != before+1 {
			t.Errorf("after %s it ran %d times", pause, ran()-before)
		}
	}
	now = now.Add(longestPause)
	if err := call(false); err != nil {
		t.Errorf("it is let off when it keeps its limits: %v", err)
	}
	if err := call(true); !errors.Is(err, ErrLimit) || loop.barred(e.now) != nil {
		t.Errorf("all is forgiven: %v", err)
	}
}
