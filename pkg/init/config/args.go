package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// parseExtraArgs restores what a list flag split at commas: an element that does
// not begin with "--" belongs to the one before.
func parseExtraArgs(list []string) ([]string, error) {
	valid := regexp.MustCompile(`^--[a-zA-Z][a-zA-Z0-9_-]*(=.*)?$`)
	var out []string
	for _, arg := range list {
		switch {
		case strings.TrimSpace(arg) != arg:
			return nil, fmt.Errorf("argument %q contains leading/trailing whitespace", arg)
		case strings.HasPrefix(arg, "--"):
			out = append(out, arg)
		case len(out) == 0:
			return nil, fmt.Errorf("argument %q is invalid: no preceding --key found", arg)
		default:
			out[len(out)-1] += "," + arg
		}
	}
	for _, arg := range out {
		if !valid.MatchString(arg) {
			return nil, fmt.Errorf("invalid argument: %s", arg)
		}
	}
	return out, nil
}

// overrideArgs replaces arguments by those of the same name.
func overrideArgs(args, by []string) []string {
	name := func(arg string) string { n, _, _ := strings.Cut(arg, "="); return n }
	var out []string
	for _, arg := range args {
		if !slices.ContainsFunc(by, func(b string) bool { return name(b) == name(arg) }) {
			out = append(out, arg)
		}
	}
	return append(out, by...)
}
