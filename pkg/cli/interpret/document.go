package interpret

import (
	"errors"
	"fmt"
	"strings"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
)

// A document is a customization as one file of Lua: a header that is for the
// user, the fields, and a section for each rule. Lines of documentation begin
// with docPrefix; all else in a section is the script, comments too.
const (
	fieldName       = "---@name:"
	fieldAPIVersion = "---@apiVersion:"
	fieldKind       = "---@kind:"
	fieldRule       = "---@rule:"
	docPrefix       = "---|"

	documentHeader = `-- Please edit the customization below. What stands before the name is ignored.
-- Every rule is the script after its ---@rule line; a rule without one is removed.
-- An unchanged file cancels the edit; if it cannot be saved, it is opened again
-- with the reason here.
`
)

// document returns the file. problem is what was wrong with it before.
func document(c *configv1alpha1.ResourceInterpreterCustomization, docs bool, problem error) string {
	var b strings.Builder
	writeHeader(&b, problem)
	for _, field := range []struct{ key, value string }{
		{fieldName, c.Name}, {fieldAPIVersion, c.Spec.Target.APIVersion}, {fieldKind, c.Spec.Target.Kind},
	} {
		fmt.Fprintf(&b, "%s %s\n", field.key, field.value)
	}
	for _, r := range rules() {
		fmt.Fprintf(&b, "\n%s %s\n", fieldRule, r.operation)
		if docs {
			for line := range strings.SplitSeq(strings.TrimSpace(r.doc), "\n") {
				b.WriteString(strings.TrimRight(docPrefix+" "+line, " ") + "\n")
			}
		}
		if script := r.get(&c.Spec.Customizations); script != "" {
			b.WriteString(strings.TrimRight(script, "\n") + "\n")
		}
	}
	return b.String()
}

func writeHeader(b *strings.Builder, problem error) {
	b.WriteString(documentHeader)
	if problem != nil {
		b.WriteString("--\n")
		for line := range strings.SplitSeq(problem.Error(), "\n") {
			fmt.Fprintf(b, "-- error: %s\n", line)
		}
	}
	b.WriteString("--\n")
}

// withProblem replaces the header of a file.
func withProblem(text string, problem error) string {
	var b strings.Builder
	writeHeader(&b, problem)
	if i := strings.Index("\n"+text, "\n"+fieldName); i >= 0 {
		text = text[i:]
	}
	return b.String() + text
}

// parseDocument returns the customization with what the file says. Scripts that
// the user did not touch stay as they are, to the last newline.
func parseDocument(text string, before *configv1alpha1.ResourceInterpreterCustomization) (*configv1alpha1.ResourceInterpreterCustomization, error) {
	after := before.DeepCopy()
	after.Name, after.Spec.Target = "", configv1alpha1.CustomizationTarget{}
	scripts := map[configv1alpha1.InterpreterOperation][]string{}
	var section *rule
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch {
		case field+":" == fieldRule:
			r, err := findRule(value)
			if err != nil {
				return nil, err
			}
			if scripts[r.operation] != nil {
				return nil, fmt.Errorf("rule %s is there twice", r.operation)
			}
			section, scripts[r.operation] = &r, []string{}
		case section != nil && strings.HasPrefix(line, docPrefix):
		case section != nil:
			scripts[section.operation] = append(scripts[section.operation], line)
		case field+":" == fieldName:
			after.Name = value
		case field+":" == fieldAPIVersion:
			after.Spec.Target.APIVersion = value
		case field+":" == fieldKind:
			after.Spec.Target.Kind = value
		}
	}
	if err := checkFields(after); err != nil {
		return nil, err
	}
	return after, setScripts(after, scripts)
}

func checkFields(c *configv1alpha1.ResourceInterpreterCustomization) error {
	for _, field := range []struct{ key, value string }{
		{fieldName, c.Name}, {fieldAPIVersion, c.Spec.Target.APIVersion}, {fieldKind, c.Spec.Target.Kind},
	} {
		if field.value == "" {
			return fmt.Errorf("the line %q is missing or empty", field.key)
		}
	}
	return nil
}

// setScripts sets the rules of a customization to what stands in the sections; a
// rule without a section is removed as well.
func setScripts(c *configv1alpha1.ResourceInterpreterCustomization, sections map[configv1alpha1.InterpreterOperation][]string) error {
	var errs []error
	for _, r := range rules() {
		before := r.get(&c.Spec.Customizations)
		script := strings.Trim(strings.Join(sections[r.operation], "\n"), "\n")
		if strings.TrimSpace(script) == "" {
			r.set(&c.Spec.Customizations, "")
			continue
		}
		if script == strings.Trim(before, "\n") {
			continue
		}
		if err := lua.Check(script); err != nil {
			errs = append(errs, fmt.Errorf("rule %s: %s", r.operation, strings.TrimSpace(err.Error())))
		}
		r.set(&c.Spec.Customizations, script+"\n")
	}
	return errors.Join(errs...)
}
