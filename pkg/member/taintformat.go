package member

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// FormatTaints returns taints in the notation of the command line, separated by commas.
func FormatTaints(taints []corev1.Taint) string {
	out := make([]string, 0, len(taints))
	for _, t := range taints {
		text := t.Key
		if t.Value != "" {
			text += "=" + t.Value
		}
		out = append(out, text+":"+string(t.Effect))
	}
	return strings.Join(out, ",")
}
