package env

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/mitchellh/go-wordwrap"
	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/term"
)

const (
	// Columns is the width of a screen of text.
	Columns = 80
	// readingInterval is the time between two readings of --watch.
	readingInterval = 2 * time.Second
)

// Reading are the flags of a command that reads a state of the federation, and prints it once or whenever it changes.
type Reading struct {
	// Output is the format of a document; empty for text.
	Output Output
	Watch  bool
	// Deadline bounds the wait for answers.
	Deadline time.Duration
}

// AddFlags adds the flags. deadline is the help of that flag.
func (r *Reading) AddFlags(cmd *cobra.Command, deadline string) {
	AddOutputFlag(cmd, &r.Output)
	cmd.Flags().BoolVarP(&r.Watch, "watch", "w", false, "Print again whenever the answer changes, until interrupted.")
	cmd.Flags().DurationVar(&r.Deadline, "deadline", 2*time.Second, deadline)
}

// Run reads once, or again and again with --watch. once returns the state, without what changes all the time, and a function that
// prints it, which is called if the state is another one than before.
func (r *Reading) Run(ctx context.Context, once func() (state string, print func() error, err error)) error {
	for before, first := "", true; ; first = false {
		state, print, err := once()
		if err != nil {
			return err
		}
		if first || state != before {
			before = state
			if err := print(); err != nil {
				return err
			}
		}
		if !r.Watch {
			return nil
		}
		select {
		case <-ctx.Done():
			return ErrInterrupted
		case <-time.After(readingInterval):
		}
	}
}

// Width returns the columns of a terminal, at least Columns, and Columns of what is none.
func Width(out io.Writer) int {
	if size := (term.TTY{Out: out}).GetSize(); size != nil {
		return max(Columns, int(size.Width))
	}
	return Columns
}

// Paragraph writes a text after a label, in lines of at most Columns. Further lines begin below its first one.
func Paragraph(out *strings.Builder, label, text string) {
	wrapped := wordwrap.WrapString(text, uint(max(20, Columns-len(label))))
	out.WriteString(strings.TrimRight(label+strings.ReplaceAll(wrapped, "\n", "\n"+strings.Repeat(" ", len(label))), " ") + "\n")
}
