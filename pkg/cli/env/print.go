package env

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// Output is the format of a command's data: empty for people, json or yaml.
type Output string

var _ pflag.Value = new(Output)

// Set parses a format; it makes Output a flag.
func (o *Output) Set(value string) error {
	switch value {
	case "", "json", "yaml":
		*o = Output(value)
		return nil
	}
	return fmt.Errorf("%q is no output format; use json or yaml", value)
}

// String returns the format.
func (o *Output) String() string { return string(*o) }

// Type names the type of the flag in help texts.
func (o *Output) Type() string { return "string" }

// AddOutputFlag adds --output to a command that prints one document.
func AddOutputFlag(cmd *cobra.Command, o *Output) {
	cmd.Flags().VarP(o, "output", "o", "Output format: json or yaml; default text for people.")
	complete(cmd, "output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
}

// PrintDocument writes a value as one JSON or YAML document.
func (e *Env) PrintDocument(o Output, value any) error {
	body, err := json.MarshalIndent(value, "", "    ")
	if err == nil && o == "yaml" {
		body, err = yaml.JSONToYAML(body)
	} else {
		body = append(body, '\n')
	}
	if err != nil {
		return fmt.Errorf("encoding as %s: %w", o, err)
	}
	_, err = e.TerminalSafe().Out.Write(body)
	return err
}

// PrintItems writes the items of a list as one JSON or YAML document, an object with the field items as Kubernetes' lists are.
func PrintItems[T any](e *Env, o Output, items []T) error {
	return e.PrintDocument(o, map[string][]T{"items": items})
}

// Confirm prompts until the answer is yes or no, and reports whether it is yes. The flag is the one that skips it.
func (e *Env) Confirm(flag string) (bool, error) {
	answers := bufio.NewScanner(e.In)
	for {
		if _, err := fmt.Fprint(e.Out, "Please type (y)es or (n)o and then press enter:"); err != nil {
			return false, err
		}
		if !answers.Scan() || strings.TrimSpace(answers.Text()) == "" {
			return false, errors.Join(fmt.Errorf("no answer was given; use --%s to skip the confirmation", flag), answers.Err())
		}
		switch strings.ToLower(strings.TrimSpace(answers.Text())) {
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
	}
}
