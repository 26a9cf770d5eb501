package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	mit   = "Permission is hereby granted, free of charge,\nto any person obtaining a copy of this software"
	bsd2  = "Redistribution and use in source and binary forms, with or without\nmodification, are permitted"
	agpl  = "                    GNU AFFERO GENERAL PUBLIC LICENSE\n                       Version 3, 19 November 2007"
	mpl   = "Mozilla Public License Version 2.0\n means the GNU Affero General Public License, Version 3.0"
	other = "All rights reserved."
)

func TestClassify(t *testing.T) {
	for want, text := range map[string]string{
		"MIT": mit, "BSD-2-Clause": bsd2, "BSD-3-Clause": bsd2 + " Neither the name of the copyright holder", "AGPL-3.0": agpl, "MPL-2.0": mpl, "": other,
		"Apache-2.0": "Apache License\n   Version 2.0, January 2004", "GPL": "GNU GENERAL PUBLIC LICENSE", "BUSL-1.1": "Business Source License 1.1",
	} {
		if got := classify(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestCheck_NamesWhatMayNotBeShipped(t *testing.T) {
	made := func(files map[string]string) string {
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	var out bytes.Buffer
	bad, err := check([]module{
		{Path: "a", Version: "v1", Dir: made(map[string]string{"LICENSE": mit})},
		{Path: "b", Version: "v1", Dir: made(map[string]string{"LICENSE": mit, "LICENSE.agpl": agpl})},
		{Path: "c", Version: "v1", Dir: made(map[string]string{"README": mit})},
		{Path: "d", Version: "v1", Dir: made(map[string]string{"COPYING": other})},
		{Path: "e", Version: "v1", Dir: made(map[string]string{"COPYING.md": mpl, "LICENSE.docs": other, "license.go": other})},
	}, &out)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"b@v1: AGPL-3.0", "c@v1: no license that is known", "d@v1: no license that is known"}
	if diff := cmp.Diff(want, bad); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(out.String(), "   1  MIT\n") {
		t.Errorf("printed:\n%s", out.String())
	}
}
