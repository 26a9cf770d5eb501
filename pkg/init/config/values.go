package config

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// List is a list that a flag has separated by commas. It implements pflag.Value.
type List []string

// String returns the items separated by commas.
func (l *List) String() string { return strings.Join(*l, ",") }

// Set replaces the list; items that are empty are dropped.
func (l *List) Set(text string) error {
	*l = splitList(text)
	return nil
}

// Type returns the type that the help of a flag shows.
func (l *List) Type() string { return "string" }

// Labels are labels that a flag has as "key=value,key=value". They implement pflag.Value.
type Labels map[string]string

// String returns "key=value,key=value", sorted by key.
func (l *Labels) String() string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(*l)) {
		out = append(out, key+"="+(*l)[key])
	}
	return strings.Join(out, ",")
}

// Set replaces the labels. What is no label is an error.
func (l *Labels) Set(text string) error {
	out := Labels{}
	for _, item := range splitList(text) {
		key, value, ok := strings.Cut(item, "=")
		if !ok {
			return fmt.Errorf("the etcdNodeSelector format is incorrect: %q is not key=value", item)
		}
		out[key] = value
	}
	if err := out.validate(); err != nil {
		return err
	}
	*l = out
	return nil
}

// Type returns the type that the help of a flag shows.
func (l *Labels) Type() string { return "string" }

func (l *Labels) validate() error {
	for _, key := range slices.Sorted(maps.Keys(*l)) {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return fmt.Errorf("the etcdNodeSelector format is incorrect: label %q: %s", key, strings.Join(problems, ", "))
		}
		if problems := validation.IsValidLabelValue((*l)[key]); len(problems) > 0 {
			return fmt.Errorf("the etcdNodeSelector format is incorrect: value %q of label %q: %s", (*l)[key], key, strings.Join(problems, ", "))
		}
	}
	return nil
}

// Args are arguments of a program. They implement pflag.Value: a flag has "--name=value,--name".
type Args []Arg

// Arg is an argument; without a value it is "--name".
type Arg struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// String returns the argument as a program takes it.
func (a Arg) String() string {
	if a.Value == "" {
		return "--" + a.Name
	}
	return "--" + a.Name + "=" + a.Value
}

// ArgsOf returns the arguments of a program, each "--name=value" or "--name".
func ArgsOf(list ...string) Args {
	var out Args
	for _, text := range list {
		name, value, _ := strings.Cut(strings.TrimPrefix(text, "--"), "=")
		if value == "" { // "--name=" is not "--name"
			name = strings.TrimPrefix(text, "--")
		}
		out = append(out, Arg{name, value})
	}
	return out
}

// Strings returns the arguments as a program takes them.
func (a Args) Strings() []string {
	var out []string
	for _, arg := range a {
		out = append(out, arg.String())
	}
	return out
}

// String returns the arguments separated by commas, in brackets.
func (a *Args) String() string { return "[" + strings.Join(a.Strings(), ",") + "]" }

// Type returns the type that the help of a flag shows.
func (a *Args) Type() string { return "stringSlice" }

// Set adds the arguments of a list: an element that does not begin with "--" belongs to the one before, since values have
// commas, too.
func (a *Args) Set(text string) error {
	list := a.Strings()
	elements, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, element := range elements {
		switch {
		case strings.TrimSpace(element) != element:
			return fmt.Errorf("argument %q contains leading/trailing whitespace", element)
		case strings.HasPrefix(element, "--"):
			list = append(list, element)
		case len(list) == 0:
			return fmt.Errorf("argument %q is invalid: no preceding --key found", element)
		default:
			list[len(list)-1] += "," + element
		}
	}
	valid := regexp.MustCompile(`^--[a-zA-Z][a-zA-Z0-9_-]*(=.*)?$`)
	for _, arg := range list {
		if !valid.MatchString(arg) {
			return fmt.Errorf("invalid argument: %s", arg)
		}
	}
	*a = ArgsOf(list...)
	return nil
}

// override replaces arguments by those of the same name, and adds the others.
func (a Args) override(by Args) Args {
	return append(slices.DeleteFunc(slices.Clone(a), func(old Arg) bool {
		return slices.ContainsFunc(by, func(b Arg) bool { return strings.TrimSuffix(b.Name, "=") == strings.TrimSuffix(old.Name, "=") })
	}), by...)
}

// splitList splits at commas and drops what is empty.
func splitList(list string) []string {
	var out []string
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}
