package env

import (
	"fmt"
	"strings"
)

// ErrorPrefix names the member cluster of a command in its error messages: the server
// that such a message mentions may be the member or the control plane on the way to it.
type ErrorPrefix struct{ cluster string }

// SetCluster sets the member cluster that the command works on from now on.
func (p *ErrorPrefix) SetCluster(name string) { p.cluster = name }

// Add adds the prefix to an error message. Usage errors and the exit code of a remote
// process stay as they are.
func (p *ErrorPrefix) Add(message string) string {
	if p.cluster == "" || message == "" || strings.HasPrefix(message, "command terminated") || strings.Contains(message, "\nSee '") {
		return message
	}
	return fmt.Sprintf("cluster(%s): %s", p.cluster, message)
}
