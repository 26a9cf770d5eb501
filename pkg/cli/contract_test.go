package cli

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/karmada-toolkit/karmada/internal/version"
)

// contract is what scripts rely on: the flags of every command.
type contract map[string]struct {
	Usage string `json:"usage"`
	Flags []flagOf
	Subs  []string `json:"subcommands"`
}

type flagOf struct {
	Name    string `json:"name"`
	Short   string `json:"short"`
	Default string `json:"default"`
}

// additions are flags that the contract does not have.
var additions = map[string][]string{
	"karmadactl token create":   {"reusable", "output"},                                                // a token is good for one cluster otherwise
	"karmadactl get":            {"cached", "member-timeout", "selector", "field-selector", "context"}, // the last three are kubectl's names
	"karmadactl version":        {"output"},
	"karmadactl describe":       {"show-apis"}, // of a cluster
	"karmadactl addons list":    {"output"},
	"karmadactl token list":     {"output"},
	"karmadactl attach":         {"detach-keys"},                        // of the newer kubectl
	"karmadactl interpret":      {"list"},                               // what comes with the program
	"karmadactl unjoin":         {"abandon"},                            // of a dead cluster
	"karmadactl promote":        {"selector", "timeout"},                // several objects at once
	"karmadactl register":       {"cluster-api-endpoint", "token-file"}, // kind clusters say 127.0.0.1; out of the process list
	"karmadactl logs":           {"operation-scope"},
	"karmadactl join":           {"cluster-api-endpoint", "timeout"}, // as agents have it
	"karmadactl cordon":         {"timeout"},                         // of a control plane that starts
	"karmadactl uncordon":       {"timeout"},
	"karmadactl taint":          {"timeout"},
	"karmadactl addons enable":  {"all-clusters", "export"}, // estimators of every member; files instead of an installation
	"karmadactl addons disable": {"all-clusters"},
	"karmadactl top node":       {"output", "member-timeout"},
	"karmadactl top pod":        {"output", "member-timeout"},
	"karmadactl apply":          {"plan", "yes"}, // what it would do in every cluster
	"karmadactl deinit":         {"purge-data"},  // else the next init brings it back
	// Parts of an installation, manifests instead of it, and other keys.
	"karmadactl init": {"only", "skip-phases", "dry-run", "print-config", "export", "compact", "karmada-all-in-one-image", "karmada-all-in-one-replicas", "karmada-all-in-one-priority-class", "karmada-all-in-one-extra-args", "key-algorithm", "load-images"},
}

// shorthands are those that the contract does not have, as FLAG/SHORTHAND.
var shorthands = map[string]string{
	"karmadactl explain": "cluster/C", "karmadactl attach": "cluster/C", "karmadactl exec": "cluster/C",
	"karmadactl api-resources": "cluster/C", "karmadactl api-versions": "cluster/C",
}

// missing are the commands of the contract that do not exist yet; docs/differences.md lists them.
func missing() []string { return nil }

func TestCommands_AreThoseOfTheContract(t *testing.T) {
	want := readContract(t)
	if len(want) != 57 {
		t.Errorf("the contract has %d commands, want 57", len(want))
	}
	root := NewCommand(testEnv(t).Env)
	differences, err := os.ReadFile("../../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	for path := range want {
		_, rest, err := root.Find(strings.Fields(path)[1:])
		exists := err == nil && len(rest) == 0
		if listed := slices.Contains(missing(), path); exists == listed {
			t.Errorf("%s: exists %t, listed as missing %t", path, exists, listed)
		}
	}
	for _, path := range missing() {
		if command := "`" + strings.TrimPrefix(path, "karmadactl ") + "`"; !strings.Contains(string(differences), command) {
			t.Errorf("docs/differences.md does not list %s", command)
		}
	}
}

func readContract(t *testing.T) contract {
	t.Helper()
	body, err := os.ReadFile("testdata/contract.json")
	if err != nil {
		t.Fatal(err)
	}
	var want contract
	if err := json.Unmarshal(body, &want); err != nil {
		t.Fatal(err)
	}
	return want
}

func TestFlags_AreThoseOfTheContract(t *testing.T) {
	root := NewCommand(testEnv(t).Env)
	for path, c := range readContract(t) {
		if slices.Contains(missing(), path) {
			continue // TestCommands_AreThoseOfTheContract counts them
		}
		t.Run(path, func(t *testing.T) {
			cmd, rest, err := root.Find(strings.Fields(path)[1:])
			if err != nil || len(rest) > 0 || cmd.CommandPath() != path && path != "karmadactl" {
				t.Fatalf("no such command: %v %v", err, rest)
			}
			if path == "karmadactl" {
				return
			}
			if diff := cmp.Diff(sorted(ofRelease(c.Flags)), ownFlags(cmd, additions[path], shorthands[path])); diff != "" {
				t.Errorf("flags (-contract +ours):\n%s", diff)
			}
			if diff := cmp.Diff(c.Usage, usage(cmd)); diff != "" && c.Usage != "" {
				t.Errorf("usage (-contract +ours):\n%s", diff)
			}
			for _, sub := range c.Subs {
				if slices.Contains(missing(), path+" "+sub) {
					continue
				}
				if !slices.ContainsFunc(cmd.Commands(), func(s *cobra.Command) bool { return s.Name() == sub }) {
					t.Errorf("no subcommand %s", sub)
				}
			}
		})
	}
}

// usage is the line as help prints it.
func usage(cmd *cobra.Command) string {
	line := cmd.UseLine()
	if cmd.HasFlags() && !strings.Contains(line, "[options]") {
		line += " [options]"
	}
	return line
}

// ownFlags are the flags that the command itself has.
func ownFlags(cmd *cobra.Command, except []string, shorthand string) []flagOf {
	flags := []flagOf{}
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden || slices.Contains(except, f.Name) {
			return
		}
		own := flagOf{f.Name, f.Shorthand, f.DefValue}
		if f.Name+"/"+f.Shorthand == shorthand {
			own.Short = ""
		}
		flags = append(flags, own)
	})
	return sorted(flags)
}

func sorted(flags []flagOf) []flagOf {
	slices.SortFunc(flags, func(a, b flagOf) int { return strings.Compare(a.Name, b.Name) })
	return flags
}

// ofRelease puts the release of this build into the names of images and downloads.
func ofRelease(flags []flagOf) []flagOf {
	for i := range flags {
		flags[i].Default = strings.ReplaceAll(flags[i].Default, "v1.19.0-rc.0", version.Get().Release())
	}
	return flags
}
