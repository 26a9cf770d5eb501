// Package orphan is how the objects in a cluster that lost their Work are reported.
// The agent of the cluster reports them in a condition of its Cluster, and the API
// server of clusters writes the text that users read: a command that deletes objects
// must not be the agent's to word.
package orphan

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// MaxNames is how many objects are named in a message.
const MaxNames = 5

// Unreadable replaces the message of an agent that is not a Report.
const Unreadable = "the agent reports objects without works, in a form that the control plane does not know; look at the log of the agent"

// Report says which objects have no Work.
type Report struct {
	// Count is how many there are, at least 1.
	Count int
	// Names are the first of them, at most MaxNames, each as "Kind name" or
	// "Kind namespace/name".
	Names []string
	// Token stands for exactly these objects.
	Token string
}

// Message returns what users read: which objects there are and how to have exactly
// these deleted.
func (r Report) Message(cluster string) string {
	return fmt.Sprintf("%d objects in the cluster belong to works that the control plane does not have, and stay: %s. To delete exactly these: %s", r.Count, r.Summary(), r.command(cluster))
}

// Summary returns the names, and how many objects there are beside.
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

// Parse reads a message that Report.Message returned, and reports whether it is one
// for the cluster: made of nothing but a count, names of objects and a token.
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
	// What was left out or read leniently shows when it is written again.
	if len(r.Names) == 0 || len(r.Names) > MaxNames || len(r.Names) > n || r.Message(cluster) != message {
		return Report{}, false
	}
	return r, true
}

// Message returns the message for users of what an agent reported.
func Message(cluster, reported string) string {
	r, ok := Parse(cluster, reported)
	if !ok {
		return Unreadable
	}
	return r.Message(cluster)
}
