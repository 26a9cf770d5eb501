package status

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/insight/status"
)

// indent is the width of labels.
const indent = 18

// print prints a report in lines of at most so many columns. Problems have one line each, and one for the command.
func print(out io.Writer, r *status.Report, columns int) error {
	var text strings.Builder
	text.WriteString(cut(r.Answer, columns) + "\n\n")
	paragraph(&text, "  control plane", controlPlane(&r.ControlPlane))
	paragraph(&text, "    leaders", leaders(&r.ControlPlane))
	clusters(&text, r.Clusters)
	work(&text, &r.Work)
	for _, gap := range r.Gaps {
		paragraph(&text, "  not read", cut(gap, columns-indent))
	}
	if len(r.Problems) > 0 {
		text.WriteString("\n")
	}
	for i, p := range r.Problems {
		text.WriteString(cut(fmt.Sprintf("%2d  %s", i+1, p.Text), columns) + "\n      " + p.Next + "\n")
	}
	if rest := r.ProblemCount - len(r.Problems); rest > 0 {
		fmt.Fprintf(&text, "    and %d more\n", rest)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

func controlPlane(c *status.ControlPlane) string {
	ready := "ready or not is unknown"
	switch {
	case c.Ready == nil:
	case *c.Ready:
		ready = "ready"
	default:
		ready = "not ready: " + strings.Join(c.FailedChecks, ", ")
	}
	return fmt.Sprintf("%s, %s, etcd %s", known(c.Version), ready, known(c.Etcd))
}

func leaders(c *status.ControlPlane) string {
	var texts []string
	for _, role := range c.Roles {
		text := strings.TrimPrefix(role.Name, "karmada-")
		if role.InTime {
			text += " on " + role.Leader
		} else {
			text += " none"
		}
		texts = append(texts, text)
	}
	switch {
	case len(texts) == 0 && c.RolesUnknown:
		return "not known"
	case len(texts) == 0:
		return "no role has a Lease"
	}
	return strings.Join(texts, ", ")
}

func clusters(out *strings.Builder, c *status.Clusters) {
	if c == nil {
		paragraph(out, "  clusters", "not known")
		return
	}
	texts := []string{fmt.Sprintf("%d of %d Ready", c.Ready, c.Total), fmt.Sprintf("%d Push", c.Push), fmt.Sprintf("%d Pull", c.Pull)}
	texts = some(texts, "%d cordoned", c.Cordoned)
	texts = some(texts, "%d with other taints", c.Tainted)
	texts = some(texts, "%d being removed", c.Removed)
	paragraph(out, "  clusters", strings.Join(texts, ", "))
	paragraph(out, "    free", fmt.Sprintf("cpu %s, memory %s, pods %s", c.Free.CPU, c.Free.Memory, c.Free.Pods))
}

func work(out *strings.Builder, w *status.Work) {
	var reasons []string
	total := 0
	for _, reason := range slices.Sorted(maps.Keys(w.NotScheduled)) {
		total += w.NotScheduled[reason]
		reasons = append(reasons, fmt.Sprintf("%d %s", w.NotScheduled[reason], reason))
	}
	scheduled := fmt.Sprintf("%d not scheduled", total)
	if total > 0 {
		scheduled += " (" + strings.Join(reasons, ", ") + ")"
	}
	paragraph(out, "  work", fmt.Sprintf("bindings: %d; %s, %d not fully applied; Unhealthy objects: %d", w.Bindings, scheduled, w.NotApplied, w.Unhealthy))
	if w.Evictions > 0 || w.EvictionsStopped {
		text := fmt.Sprintf("%d under way", w.Evictions)
		if w.EvictionsStopped {
			text += "; stopped, because many clusters failed at once"
		}
		paragraph(out, "    evictions", text)
	}
	if w.Quotas > 0 {
		paragraph(out, "    quotas", fmt.Sprintf("%d: %d full, %d exceeded", w.Quotas, w.QuotasFull, w.QuotasExceeded))
	}
	if w.Registries > 0 {
		paragraph(out, "    registries", fmt.Sprintf("%d: %d not Ready", w.Registries, w.RegistriesNotReady))
	}
}

// some adds a number that is not 0.
func some(texts []string, format string, n int) []string {
	if n == 0 {
		return texts
	}
	return append(texts, fmt.Sprintf(format, n))
}

func known(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

// cut shortens a text to a number of columns.
func cut(text string, columns int) string {
	if utf8.RuneCountInString(text) <= columns {
		return text
	}
	return string([]rune(text)[:columns-3]) + "..."
}

// paragraph writes a text after a label.
func paragraph(out *strings.Builder, label, text string) {
	env.Paragraph(out, fmt.Sprintf("%-*s", indent, label), text)
}
