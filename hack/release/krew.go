package main

import (
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// krewPlatform is how krew installs the plugin on a platform.
type krewPlatform struct {
	Selector krewSelector `json:"selector"`
	URI      string       `json:"uri"`
	SHA256   string       `json:"sha256"`
	Bin      string       `json:"bin"`
	Files    []krewFile   `json:"files"`
}

type krewSelector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

// krewFile is where a file of the archive is installed.
type krewFile struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// krew fills version and platforms into the manifest.
func (r release) krew(platforms []platform, sums map[string]string) ([]byte, error) {
	data, err := os.ReadFile(r.manifest)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest for krew: %w", err)
	}
	var manifest map[string]any
	if err := yaml.Unmarshal(data, &manifest); err != nil {
		return nil, fmt.Errorf("reading the manifest for krew: %w", err)
	}
	spec, ok := manifest["spec"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("reading the manifest for krew: %s has no spec", r.manifest)
	}
	var filled []krewPlatform
	for _, p := range platforms {
		sum, ok := sums[p.archive(plugin)]
		if !ok {
			return nil, fmt.Errorf("filling the manifest for krew: %s: %w", p.archive(plugin), errNoChecksum)
		}
		filled = append(filled, krewPlatform{
			Selector: krewSelector{MatchLabels: map[string]string{"os": p.os, "arch": p.arch}},
			URI:      strings.TrimSuffix(r.url, "/") + "/" + p.archive(plugin),
			SHA256:   sum,
			Bin:      p.executable(plugin),
			Files:    []krewFile{{p.executable(plugin), "."}, {"LICENSE", "."}},
		})
	}
	spec["version"], spec["platforms"] = r.version, filled
	out, err := yaml.Marshal(manifest)
	if err != nil {
		return nil, fmt.Errorf("writing the manifest for krew: %w", err)
	}
	return out, nil
}
