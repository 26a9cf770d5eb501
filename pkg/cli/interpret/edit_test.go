package interpret

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/karmada-toolkit/karmada/internal/build"
)

// edit edits a file by sed, or by a shell script after "sh:", and returns what
// the user sees, what the editor was given last, and the file.
func edit(t *testing.T, file, with string, args ...string) (o outcome, seen, saved string) {
	t.Helper()
	dir := t.TempDir()
	script := filepath.Join(dir, "editor")
	command := "sed -i -e '" + with + "' \"$1\""
	if shell, ok := strings.CutPrefix(with, "sh:"); ok {
		command = shell
	}
	body := "#!/bin/sh\ncp \"$1\" " + dir + "/seen\n" + command + "\n"
	if err := os.WriteFile(script, []byte(body), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBE_EDITOR", script)
	t.Setenv("TMPDIR", dir)
	target := filepath.Join(dir, "target"+filepath.Ext(file))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(target, text, 0o640); err != nil {
		t.Fatal(err)
	}
	o = run(t, "", append([]string{"-f", target, "--edit"}, args...)...)
	o.errOut = strings.ReplaceAll(o.errOut, dir, "/tmp")
	last, _ := os.ReadFile(filepath.Join(dir, "seen"))
	after, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "karmadactl-edit-*.lua"))
	if o.err == nil && len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
	return o, string(last), string(after)
}

func TestEdit_ShowsOneFileOfLua(t *testing.T) {
	o, seen, _ := edit(t, "testdata/customization.yaml", "sh:true")
	if o.err != nil || o.errOut != "Edit cancelled, no changes made.\n" {
		t.Error(o.text())
	}
	build.AssertGolden(t, "document", seen)
	_, seen, _ = edit(t, "testdata/customization.yaml", "sh:true", "--show-doc")
	build.AssertGolden(t, "document-doc", seen)
}

func TestEdit_SavesToTheFile(t *testing.T) {
	before, err := os.ReadFile("testdata/customization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, docs := range []string{"", "--show-doc"} {
		args := strings.Fields(docs)
		o, _, saved := edit(t, "testdata/customization.yaml", "s/spec.paused/spec.stopped/g", args...)
		if o.err != nil || o.out != "resourceinterpretercustomization.config.karmada.io/declarative-configuration-example edited\n" {
			t.Error(o.text())
		}
		// Comments stay, and so does all that was not edited.
		if !strings.Contains(saved, "-- the pause is the member's") || !strings.Contains(saved, "observedObj.spec.stopped") || strings.Contains(saved, "|") && strings.Contains(saved, docPrefix) {
			t.Error(saved)
		}
		if len(strings.Split(saved, "\n")) != len(strings.Split(string(before), "\n")) {
			t.Error(saved)
		}
	}
}

func TestEdit_AnEmptyRuleIsRemoved(t *testing.T) {
	o, _, saved := edit(t, "testdata/customization.yaml", `/^---@rule: Retain/,/^end/{/^---/!d}`)
	if o.err != nil || strings.Contains(saved, "retention") || !strings.Contains(saved, "replicaResource") {
		t.Errorf("%s\n%s", o.text(), saved)
	}
}

func TestEdit_MakesANewOne(t *testing.T) {
	o, _, saved := edit(t, "testdata/empty.yaml", `s/^---@name:.*/---@name: new/;s/^---@apiVersion:.*/---@apiVersion: example.io\/v1/;s/^---@kind:.*/---@kind: Foo/;/^---@rule: InterpretHealth/a function InterpretHealth() return true end`)
	if o.err != nil {
		t.Error(o.text())
	}
	want := `apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata:
  name: new
spec:
  customizations:
    healthInterpretation:
      luaScript: |
        function InterpretHealth() return true end
  target:
    apiVersion: example.io/v1
    kind: Foo
`
	if saved != want {
		t.Errorf("saved:\n%s", saved)
	}
}

func TestEdit_JSONStaysJSON(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "c.json")
	text := `{"apiVersion":"config.karmada.io/v1alpha1","kind":"ResourceInterpreterCustomization","metadata":{"name":"j","labels":{"a":"b"}},"spec":{"target":{"apiVersion":"v1","kind":"Pod"},"customizations":{}}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o, _, saved := edit(t, file, "s/^---@kind:.*/---@kind: Node/")
	if o.err != nil || !strings.HasPrefix(saved, "{\n") || !strings.Contains(saved, `"kind": "Node"`) || !strings.Contains(saved, `"a": "b"`) {
		t.Errorf("%s\n%s", o.text(), saved)
	}
}

// The editor is opened again with what is wrong, until nothing changes.
func TestEdit_ComesBackWithWhatIsWrong(t *testing.T) {
	before, err := os.ReadFile("testdata/customization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ with, want string }{
		"a script that is no Lua": {"s/^function Retain/functio Retain/", "-- error: rule Retain: <string> line:2"},
		"a rule that is unknown":  {"s/^---@rule: Retain/---@rule: Keep/", "-- error: operation Keep is not supported. Use one of: Retain, "},
		"a rule twice":            {"s/^---@rule: InterpretHealth/---@rule: Retain/", "-- error: rule Retain is there twice"},
		"no kind":                 {"/^---@kind/d", `-- error: the line "---@kind:" is missing or empty`},
	} {
		t.Run(name, func(t *testing.T) {
			o, seen, saved := edit(t, "testdata/customization.yaml", tt.with)
			if o.err == nil || !strings.Contains(o.errOut, "Edit cancelled, no valid changes were saved.") || !strings.Contains(o.errOut, "A copy of your changes has been stored to") {
				t.Error(o.text())
			}
			if !strings.Contains(seen, tt.want) || strings.Count(seen, "-- error:") != 1 {
				t.Errorf("the file that was opened last:\n%s", seen)
			}
			if saved != string(before) {
				t.Errorf("saved:\n%s", saved)
			}
		})
	}
}

func TestEdit_PrintsWhatCannotBeSaved(t *testing.T) {
	text, err := os.ReadFile("testdata/customization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "editor")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nsed -i s/spec.paused/spec.stopped/g \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBE_EDITOR", script)
	o := run(t, string(text), "-f", "-", "--edit")
	if o.err != nil || !strings.Contains(o.out, "observedObj.spec.stopped") || !strings.Contains(o.out, "name: declarative-configuration-example") {
		t.Error(o.text())
	}
}
