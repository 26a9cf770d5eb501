package cli

import (
	"context"
	"errors"
	"io"
	"strings"

	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

// codeInterrupted is the exit code of a command that the user interrupted, as shells
// report it for programs that die of the signal.
const codeInterrupted = 128 + 2

// report is the only place where errors are printed. It returns the exit code.
func report(e *env.Env, err error) int {
	if err == nil {
		return 0
	}
	message, code := format(err)
	if failure := env.ConnectionFailure(err); failure != nil {
		message = failure.Error()
	}
	switch {
	case errors.Is(err, env.ErrInterrupted):
		message, code = "", codeInterrupted
	case errors.Is(err, context.Canceled):
		message, code = "interrupted: "+strings.TrimPrefix(message, "error: "), codeInterrupted
	}
	fail(e, message)
	return code
}

// fail prints an error message. One that is about the connection to the control plane is the same for all commands.
func fail(e *env.Env, message string) {
	if failure := e.Unreached(); failure != nil && strings.Contains(message, failure.Error()) {
		message = failure.Error()
		if !strings.HasPrefix(message, "The connection") { // kubectl's text has no prefix
			message = "error: " + message
		}
		say(e, message)
		return
	}
	say(e, e.ErrorPrefix.Add(message))
}

// format returns the message and exit code of kubectl for an error. kubectl passes them to
// a function that ends the process; here it stores them.
func format(err error) (message string, code int) {
	cmdutil.BehaviorOnFatal(func(m string, c int) { message, code = m, c })
	cmdutil.CheckErr(err)
	return message, code
}

func say(e *env.Env, message string) {
	if message == "" {
		return
	}
	if !strings.HasSuffix(message, "\n") {
		message += "\n"
	}
	message = strings.ReplaceAll(message, "See '"+e.Root+" ", "See '"+e.Name+" ")
	_, _ = io.WriteString(e.ErrOut, plaintext.Escape(message)) // an error cannot be reported
}
