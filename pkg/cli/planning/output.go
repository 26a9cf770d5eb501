package planning

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/kubectl/pkg/util/term"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/insight/plan"
)

// maxNotRead is the number of kinds that are named of those that could not be read.
const maxNotRead = 3

// Print prints effects, and for each cluster what changes in its object, if it is given.
func Print(e *env.Env, effects *plan.Effects, diffs map[*plan.Cluster]string) error {
	var text strings.Builder
	for i := range effects.Objects {
		object(&text, &effects.Objects[i], diffs)
	}
	for _, note := range effects.Notes {
		text.WriteString("Note: " + note + "\n")
	}
	if n := len(effects.NotRead); n > 0 {
		var names []string
		for _, gap := range effects.NotRead[:min(n, maxNotRead)] {
			name, _, _ := strings.Cut(gap, ": ")
			names = append(names, name)
		}
		if n > maxNotRead {
			names = append(names, fmt.Sprintf("%d more", n-maxNotRead))
		}
		text.WriteString("Note: not read, and not planned: " + strings.Join(names, ", ") + "; -o json has the reasons\n")
	}
	if len(effects.Objects)+len(effects.Notes)+len(effects.NotRead) > 0 {
		text.WriteString("\n")
	}
	text.WriteString(Summary(effects) + "\n")
	out := plaintext.Escape(text.String())
	if (term.TTY{Out: e.Out}).IsTerminalOut() {
		out = coloured(out)
	}
	_, err := io.WriteString(e.Out, out)
	return err
}

// coloured returns a text whose lines of diffs are coloured.
func coloured(text string) string {
	return added.ReplaceAllString(removed.ReplaceAllString(text, "\x1b[31m$0\x1b[0m"), "\x1b[32m$0\x1b[0m")
}

var (
	added   = regexp.MustCompile(`(?m)^      \+.*$`)
	removed = regexp.MustCompile(`(?m)^      -.*$`)
)

// Summary returns effects in a line.
func Summary(e *plan.Effects) string {
	if !e.Changes() {
		return "No changes: what the clusters have stays as it is."
	}
	s := e.Summary
	text := fmt.Sprintf("Plan: %s in %s: %d create, %d update, %d delete", counted(s.Objects, "object changes", "objects change"),
		counted(s.Clusters, "cluster", "clusters"), s.Create, s.Update, s.Delete)
	if s.Keep > 0 {
		text += fmt.Sprintf(", %d keep", s.Keep)
	}
	if s.Refuse > 0 {
		text += fmt.Sprintf(", %d refused", s.Refuse)
	}
	if s.Unfit > 0 {
		text += "; " + counted(s.Unfit, "does not fit", "do not fit")
	}
	if s.Unknown > 0 {
		text += fmt.Sprintf("; %d unknown", s.Unknown)
	}
	return text + "."
}

func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// facts returns the replicas of a template, its policy, and what it follows.
func facts(o *plan.Object) string {
	var facts []string
	if o.ReplicasBefore != o.ReplicasAfter && o.ReplicasBefore > 0 {
		facts = append(facts, fmt.Sprintf("replicas %d -> %d", o.ReplicasBefore, o.ReplicasAfter))
	} else if o.ReplicasAfter > 0 {
		facts = append(facts, fmt.Sprintf("replicas %d", o.ReplicasAfter))
	}
	switch {
	case o.PolicyBefore == o.PolicyAfter && o.PolicyAfter != "":
		facts = append(facts, o.PolicyAfter)
	case o.PolicyBefore == "" && o.PolicyAfter != "":
		facts = append(facts, "taken by "+o.PolicyAfter)
	case o.PolicyBefore != "" && o.PolicyAfter == "":
		facts = append(facts, "released by "+o.PolicyBefore)
	case o.PolicyBefore != "":
		facts = append(facts, o.PolicyBefore+" -> "+o.PolicyAfter)
	}
	if len(o.Follows) > 0 {
		facts = append(facts, "follows "+strings.Join(o.Follows, ", "))
	}
	return strings.Join(facts, ", ")
}

// object prints what becomes of a template.
func object(out *strings.Builder, o *plan.Object, diffs map[*plan.Cluster]string) {
	out.WriteString(strings.TrimRight(fmt.Sprintf("%-30s  %s", o.Object.String(), facts(o)), " ") + "\n")
	longest := 0
	for i := range o.Clusters {
		longest = max(longest, len(o.Clusters[i].Name))
	}
	for i := range o.Clusters {
		c := &o.Clusters[i]
		out.WriteString(strings.TrimRight(fmt.Sprintf("  %-*s  %s", longest, c.Name, cluster(o, c)), " ") + "\n")
		out.WriteString(diffs[c])
	}
	if len(o.Touches) > 0 {
		fmt.Fprintf(out, "  touches %s\n", strings.Join(o.Touches, ", "))
	}
	if o.After > 0 {
		fmt.Fprintf(out, "  the last eviction begins after %s\n", duration.HumanDuration(time.Duration(o.After*float64(time.Second))))
	}
	if o.Unfit != "" {
		fmt.Fprintf(out, "  does not fit: %s\n", o.Unfit)
	}
	for _, text := range o.Unknown {
		fmt.Fprintf(out, "  unknown: %s\n", text)
	}
}

// cluster returns what happens in a cluster.
func cluster(o *plan.Object, c *plan.Cluster) string {
	var words []string
	if o.ReplicasBefore+o.ReplicasAfter > 0 {
		words = append(words, fmt.Sprintf("%d -> %d  ", c.Before, c.After))
	}
	switch c.Action {
	case plan.ActionCreate:
		words = append(words, "created")
	case plan.ActionUpdate:
		words = append(words, "changed: "+strings.Join(c.Fields, ", "))
	case plan.ActionDelete:
		words = append(words, "deleted")
	case plan.ActionKeep:
		words = append(words, "kept")
	case plan.ActionRefuse:
		words = append(words, "refused")
	}
	if c.Reason != "" {
		words[len(words)-1] += ": " + c.Reason
	}
	return strings.Join(words, " ")
}
