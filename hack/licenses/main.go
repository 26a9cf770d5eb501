// Command licenses checks that every module that the programs are built from has a
// license that may be shipped with them, and prints each module with its license.
//
//	go run ./hack/licenses ./cmd/...
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// allowed are the licenses that the programs may be shipped with.
func allowed() []string { return []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"} }

// reviewed are modules with another license that may be used as they are,
// unchanged and with their source available: MPL-2.0 requires no more.
func reviewed(license string) bool { return license == "MPL-2.0" }

// marks are words that only one license has, in the order of the search: the more
// specific first.
func marks() []mark {
	return []mark{
		// It names the licenses of GNU as well.
		{"MPL-2.0", `Mozilla Public License,? (version|v\.?) ?2\.0`},
		{"AGPL-3.0", `GNU AFFERO GENERAL PUBLIC LICENSE`},
		{"LGPL", `GNU (LESSER|LIBRARY) GENERAL PUBLIC LICENSE`},
		{"GPL", `GNU GENERAL PUBLIC LICENSE`},
		{"SSPL-1.0", `Server Side Public License`},
		{"BUSL-1.1", `Business Source License`},
		{"Apache-2.0", `Apache License,? Version 2\.0`},
		{"BSD-3-Clause", `Redistribution and use in source and binary forms.*(Neither the names? of|names? of (its|the) (copyright holder|contributors)|may not be used to endorse)`},
		{"BSD-2-Clause", `Redistribution and use in source and binary forms`},
		{"MIT", `Permission is hereby granted, free of charge, to any person obtaining a copy`},
		{"ISC", `Permission to use, copy, modify, and(/or)? distribute this software for any purpose with or without fee`},
	}
}

type mark struct{ license, words string }

// classify returns the license of a text, or "".
func classify(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	for _, m := range marks() {
		if regexp.MustCompile(`(?i)` + m.words).MatchString(text) {
			return m.license
		}
	}
	return ""
}

// licenseFile matches the names of files with a license, docsLicense those with one
// of documentation, which is not shipped.
var licenseFile = regexp.MustCompile(`(?i)^(li[cs]en[cs]e|copying|unlicense)([-._].*)?$`)

var docsLicense = regexp.MustCompile(`(?i)[-.]docs$`)

// licenseOf returns the license of the module in a directory. Of several files each
// must have a license that may be used; the first that may not is returned.
func licenseOf(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("looking for a license: %w", err)
	}
	var found []string
	for _, e := range entries {
		if e.IsDir() || !licenseFile.MatchString(e.Name()) || docsLicense.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", fmt.Errorf("reading a license: %w", err)
		}
		found = append(found, classify(string(data)))
	}
	if len(found) == 0 {
		return "", nil
	}
	for _, license := range found {
		if !slices.Contains(allowed(), license) {
			return license, nil
		}
	}
	return found[0], nil
}

// module is a module in the output of "go list".
type module struct {
	Path, Version, Dir string
	Main               bool
	Replace            *module
}

// modules returns the modules that packages are built from, each once, sorted.
func modules(packages []string) ([]module, error) {
	args := append([]string{"list", "-deps", "-json=Module"}, packages...)
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the modules: %w", err)
	}
	seen := map[string]module{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct{ Module *module }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("listing the modules: %w", err)
		}
		if m := p.Module; m != nil && !m.Main {
			if m.Replace != nil {
				m.Dir = m.Replace.Dir
			}
			seen[m.Path] = *m
		}
	}
	return slices.SortedFunc(maps.Values(seen), func(a, b module) int { return strings.Compare(a.Path, b.Path) }), nil
}

// check prints the license of each module and returns those that may not be
// shipped.
func check(all []module, out io.Writer) ([]string, error) {
	var bad []string
	count := map[string]int{}
	for _, m := range all {
		license, err := licenseOf(m.Dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Path, err)
		}
		switch {
		case license == "":
			bad = append(bad, m.Path+"@"+m.Version+": no license that is known")
			continue
		case !slices.Contains(allowed(), license) && !reviewed(license):
			bad = append(bad, m.Path+"@"+m.Version+": "+license)
		}
		count[license]++
	}
	for _, license := range slices.Sorted(maps.Keys(count)) {
		_, _ = fmt.Fprintf(out, "%4d  %s\n", count[license], license)
	}
	return bad, nil
}

func main() {
	packages := os.Args[1:]
	if len(packages) == 0 {
		packages = []string{"./cmd/..."}
	}
	all, err := modules(packages)
	if err != nil {
		log.Fatal(err)
	}
	bad, err := check(all, os.Stdout)
	if err != nil {
		log.Fatal(err)
	}
	if len(bad) > 0 {
		log.Fatalf("modules that may not be shipped, or whose license must be reviewed:\n  %s", strings.Join(bad, "\n  "))
	}
	fmt.Printf("%d modules: every license may be shipped\n", len(all))
}
