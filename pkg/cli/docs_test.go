package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestDocs_CommandLinesParse looks at every command line in the code blocks of the documents: the command exists, has the flags,
// and accepts that number of arguments. test/e2e/docs_process_test.go runs those that need no other machine.
func TestDocs_CommandLinesParse(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("../../samples/*/README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, file := range append(append(files, more...), "../../README.md", "../../AGENTS.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range documentedLines(string(text)) {
			lines++
			if err := parses(t, line); err != nil {
				t.Errorf("%s: %s: %v", file, line, err)
			}
		}
	}
	if lines < 50 {
		t.Errorf("only %d command lines were found", lines)
	}
}

// programLine is a command line of the program, after a prompt or not.
var programLine = regexp.MustCompile(`^(?:\$ )?(?:bin/)?(?:karmadactl|kubectl karmada) (.*)$`)

// documentedLines returns the arguments in the code blocks of a document, without what a shell does with them.
func documentedLines(text string) []string {
	var out []string
	block := false
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			block = !block
			continue
		}
		if found := programLine.FindStringSubmatch(line); block && found != nil {
			out = append(out, found[1])
		}
	}
	return out
}

// parses parses a command line as the program does, up to what a shell takes.
func parses(t *testing.T, line string) error {
	t.Helper()
	args := shellWords(line)
	root := NewCommand(testEnv(t).Env)
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if cmd.DisableFlagParsing {
		return nil
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if cmd == root {
		return nil
	}
	if check := cmd.Args; check != nil {
		return check(cmd, cmd.Flags().Args())
	}
	return cobra.ArbitraryArgs(cmd, nil)
}

// shellWords splits a line at spaces outside of quotes, up to a comment, a pipe, a redirection or another command.
func shellWords(line string) []string {
	var out []string
	var word strings.Builder
	quote, started := rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, started = r, true
		case r == ' ':
			if started {
				out = append(out, word.String())
			}
			word.Reset()
			started = false
		case !started && r == '#', r == '|', r == '>', r == ';', r == '&':
			if started {
				out = append(out, word.String())
			}
			return out
		default:
			word.WriteRune(r)
			started = true
		}
	}
	if started {
		out = append(out, word.String())
	}
	return out
}
