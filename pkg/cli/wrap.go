package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// helpWidth is the number of columns of help texts. Commands in examples and usages are not wrapped.
const helpWidth = 80

// wrapHelp has all commands print their help in lines of at most helpWidth columns.
func wrapHelp(root *cobra.Command) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		out := cmd.OutOrStdout()
		var text strings.Builder
		cmd.SetOut(&text)
		help(cmd, args)
		cmd.SetOut(out)
		_, _ = io.WriteString(out, wrapText(text.String())) // as cobra does
	})
}

// wrapText wraps the sentences of a help text: lines of a section that has commands, and rows of tables, stay as they are.
func wrapText(text string) string {
	var out strings.Builder
	commands := false
	for line := range strings.Lines(text) {
		content := strings.TrimRight(line, "\n")
		if content != "" && !strings.HasPrefix(content, " ") && !strings.HasPrefix(content, "\t") {
			commands = content == "Examples:" || content == "Usage:"
		}
		body := strings.TrimLeft(content, " \t")
		if commands || columns(content) <= helpWidth || strings.HasPrefix(body, "-") || strings.Contains(body, "   ") {
			out.WriteString(line)
			continue
		}
		indent := content[:len(content)-len(body)]
		wrapLine(&out, indent, body)
	}
	return out.String()
}

// wrapLine writes a line as several with the same indentation.
func wrapLine(out *strings.Builder, indent, body string) {
	width := 0
	for word := range strings.FieldsSeq(body) {
		switch {
		case width == 0:
			out.WriteString(indent)
			width = columns(indent)
		case width+1+columns(word) > helpWidth:
			out.WriteString("\n" + indent)
			width = columns(indent)
		default:
			out.WriteByte(' ')
			width++
		}
		out.WriteString(word)
		width += columns(word)
	}
	out.WriteByte('\n')
}

// columns returns how wide a text is on a terminal.
func columns(s string) int {
	n := 0
	for _, r := range s {
		if r == '\t' {
			n += 8 - n%8
			continue
		}
		n++
	}
	return n
}
