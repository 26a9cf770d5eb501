package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"time"
)

// bill is the part of a CycloneDX document, version 1.6, that this tool uses.
type bill struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp time.Time  `json:"timestamp"`
	Component component  `json:"component"`
	Tools     toolChoice `json:"tools"`
}

type toolChoice struct {
	Components []component `json:"components"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref,omitempty"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl,omitempty"`
	Licenses   []license  `json:"licenses,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type license struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// billOfMaterials lists the modules that a program was built from, as the Go tool
// recorded them in it.
func billOfMaterials(path, program, version string, at time.Time) ([]byte, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading what %s was built from: %w", path, err)
	}
	self := component{
		Type: "application", Ref: "pkg:golang/" + info.Main.Path + "@" + version, Name: program, Version: version,
		PURL: "pkg:golang/" + info.Main.Path + "@" + version, Licenses: make([]license, 1), Properties: settings(info.Settings),
	}
	self.Licenses[0].License.ID = "Apache-2.0"
	out := bill{
		Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata: metadata{
			Timestamp: at, Component: self,
			Tools: toolChoice{Components: []component{{Type: "application", Name: "hack/release", Version: version}}},
		},
		Components: []component{{
			Type: "library", Ref: "pkg:golang/std@" + info.GoVersion, Name: "std", Version: info.GoVersion,
			PURL: "pkg:golang/std@" + info.GoVersion,
		}},
	}
	for _, m := range info.Deps {
		out.Components = append(out.Components, module(m))
	}
	uses := dependency{Ref: self.Ref}
	for _, c := range out.Components {
		uses.DependsOn = append(uses.DependsOn, c.Ref)
	}
	out.Dependencies = []dependency{uses}
	data, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing what %s was built from: %w", path, err)
	}
	return append(data, '\n'), nil
}

// module describes a module, or what replaces it.
func module(m *debug.Module) component {
	if m.Replace != nil {
		m = m.Replace
	}
	purl := "pkg:golang/" + m.Path + "@" + m.Version
	c := component{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, PURL: purl}
	if m.Sum != "" {
		c.Properties = []property{{"golang:h1", m.Sum}}
	}
	return c
}

// settings are those settings of a build that identify its result.
func settings(all []debug.BuildSetting) []property {
	var out []property
	for _, s := range all {
		switch s.Key {
		case "GOOS", "GOARCH", "CGO_ENABLED", "vcs.revision", "vcs.modified":
			out = append(out, property{"golang:" + s.Key, s.Value})
		}
	}
	return out
}
