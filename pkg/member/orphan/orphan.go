// Package orphan formats and parses the report about the objects in a cluster whose Work
// does not exist. The agent of the cluster writes it to a condition of its Cluster. The
// API server of clusters replaces it by the message for users, since that has a command
// that deletes objects, which an agent must not choose.
package orphan

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// MaxNames is the limit of the names of objects in a message.
const MaxNames = 5

// Unreadable replaces the message of an agent that is not a Report.
const Unreadable = "the agent reports objects without works, in a form that the control plane does not know; see the log of the agent"

// Report lists the objects without a Work.
type Report struct {
	// Count is the number of objects, at least 1.
	Count int
	// Names are the first of them, at most MaxNames, each as "Kind name" or
	// "Kind namespace/name".
	Names []string
	// Token identifies the objects.
	Token string
}

// Message returns the message for users: the objects and the command that deletes them.
func (r Report) Message(cluster string) string {
	return fmt.Sprintf("%d objects in the cluster belong to works that the control plane does not have, and stay: %s. To delete exactly these: %s", r.Count, r.Summary(), r.command(cluster))
}

// Summary returns the names and the number of the other objects.
func (r Report) Summary() string {
	names := strings.Join(r.Names, ", ")
	if more := r.Count - len(r.Names); more > 0 {
		names += fmt.Sprintf(", and %d more", more)
	}
	return names
}

func (r Report) command(cluster string) string {
	return fmt.Sprintf("kubectl annotate cluster %s %s=%s --overwrite", cluster, clusterv1alpha1.DeleteOrphansAnnotation, r.Token)
}

// Parse parses a message of Report.Message. It reports whether the message is one for the
// cluster and has no other text than a count, names of objects and a token.
func Parse(cluster, message string) (Report, bool) {
	count, rest, ok1 := strings.Cut(message, " objects in the cluster belong to works that the control plane does not have, and stay: ")
	names, command, ok2 := strings.Cut(rest, ". To delete exactly these: ")
	_, token, ok3 := strings.Cut(strings.TrimSuffix(command, " --overwrite"), "=")
	n, err := strconv.Atoi(count)
	if !ok1 || !ok2 || !ok3 || err != nil || n < 1 || !regexp.MustCompile(`^[0-9a-f]{8,64}$`).MatchString(token) {
		return Report{}, false
	}
	r := Report{Count: n, Names: strings.Split(names, ", "), Token: token}
	if last := len(r.Names) - 1; strings.HasPrefix(r.Names[last], "and ") {
		r.Names = r.Names[:last]
	}
	object := regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62} ([a-z0-9][a-z0-9-]{0,62}/)?[A-Za-z0-9][A-Za-z0-9.:_-]{0,252}$`)
	for _, name := range r.Names {
		if !object.MatchString(name) {
			return Report{}, false
		}
	}
	// Text that was skipped makes the message of the report another one.
	if len(r.Names) == 0 || len(r.Names) > MaxNames || len(r.Names) > n || r.Message(cluster) != message {
		return Report{}, false
	}
	return r, true
}

// Message returns the message for users of the report of an agent.
func Message(cluster, reported string) string {
	r, ok := Parse(cluster, reported)
	if !ok {
		return Unreadable
	}
	return r.Message(cluster)
}
