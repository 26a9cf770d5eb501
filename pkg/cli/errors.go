package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
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
		warn(e)
		return 0
	}
	message, code := format(err)
	message = withHint(e, message)
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
	lines := reworded(message, func(line string) string {
		failure := connection(e, line)
		switch {
		case failure == nil:
			return ""
		case strings.HasPrefix(failure.Error(), "The connection"): // kubectl's text has no prefix
			return failure.Error()
		}
		return "error: " + failure.Error()
	})
	if joined := strings.Join(lines, "\n"); joined != strings.TrimSuffix(message, "\n") {
		say(e, joined)
		return
	}
	say(e, e.ErrorPrefix.Add(message))
	if message != "" {
		warn(e)
	}
}

// reworded returns the lines of a message, with those that reword has another text for replaced. What kubectl adds to such a
// line is left out, and the same text is not repeated.
func reworded(message string, reword func(line string) string) []string {
	var lines []string
	about := false // the line before was replaced
	for line := range strings.SplitSeq(strings.TrimSuffix(message, "\n"), "\n") {
		text := reword(line)
		if text == "" {
			if !about || line != "ensure CRDs are installed first" {
				lines = append(lines, line)
			}
			about = false
			continue
		}
		for len(lines) > 0 && introduces(lines[len(lines)-1]) {
			lines = lines[:len(lines)-1]
		}
		if len(lines) == 0 || lines[len(lines)-1] != text {
			lines = append(lines, text)
		}
		about = true
	}
	return lines
}

// introduces reports whether a line of kubectl's apply names an object whose request failed, the error of which follows.
func introduces(line string) bool {
	return strings.HasSuffix(line, "error when retrieving current configuration of:") || strings.HasPrefix(line, `Name: "`)
}

// elsewhere are commands of kubectl that this program does not have, with what to use instead.
var elsewhere = [...][2]string{
	{"cp", `use "kubectl cp" with the kubeconfig of the member cluster that has the pod`},
	{"port-forward", `use "kubectl port-forward" with the kubeconfig of the member cluster that has the pod`},
	{"config", `use "kubectl config" with the kubeconfig of the control plane`},
	{"drain", `"kubectl drain" with the kubeconfig of a member cluster drains a node; "{{.Name}} taint clusters NAME KEY=VALUE:NoExecute" moves workloads to other clusters`},
	{"diff", `use "kubectl diff" with the kubeconfig of the control plane`},
}

// withHint adds to the error about a command of kubectl what to use instead.
func withHint(e *env.Env, message string) string {
	for _, pair := range elsewhere {
		if strings.HasPrefix(message, fmt.Sprintf("error: unknown command %q for", pair[0])) {
			first, _, _ := strings.Cut(message, "\n")
			return first + "\n" + e.Text(pair[1])
		}
	}
	if strings.Contains(message, `no matches for kind "ResourceRegistry" in version`) {
		return "error: the control plane has no role search, which serves ResourceRegistries: " + env.InstallSearch(e.Name)
	}
	return message
}

// warn says that the server is no control plane, where a command goes on with any server.
func warn(e *env.Env) {
	if failure := e.NoControlPlane(); failure != nil {
		say(e, "Warning: "+failure.Error())
	}
}

// connection returns the failure of the connection to the control plane that a line is about, or nil.
func connection(e *env.Env, line string) *env.ConnectionError {
	if failure := e.Unreached(); failure != nil && strings.Contains(line, failure.Error()) {
		return failure
	}
	if failure := e.NoControlPlane(); failure != nil && (unknownType(line) || strings.Contains(line, failure.Error())) {
		return failure
	}
	if failure := e.Unserved(); failure != nil && (strings.Contains(line, failure.Error()) || aboutClusters(line)) {
		return failure
	}
	if failure := e.Unadmitted(); failure != nil && webhookFailed.MatchString(line) {
		return failure
	}
	return nil
}

// webhookFailed matches the error of an API server that cannot call a webhook of the control plane. Others are the user's.
var webhookFailed = regexp.MustCompile(`failed calling webhook "[a-z0-9-]+(\.[a-z0-9-]+)*\.karmada\.io"`)

// unknownType reports whether a line says that a server does not have a type of the control plane.
func unknownType(line string) bool {
	return strings.Contains(line, "could not find the requested resource") || strings.Contains(line, "doesn't have a resource type") ||
		strings.Contains(line, "karmada.io") && strings.Contains(line, "no matches for")
}

// aboutClusters reports whether a line is the error of a request for clusters that the API server cannot pass on.
func aboutClusters(line string) bool {
	return strings.Contains(line, "unable to handle the request") || strings.Contains(line, `doesn't have a resource type "cluster`) ||
		strings.Contains(line, env.ClusterGroup) && !strings.Contains(line, "(NotFound)")
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
