package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// Reason is why a pod is not ready.
type Reason struct {
	Text string
	// Crashed reports whether a container ended by itself. Its log explains it.
	Crashed bool

	pod *corev1.Pod
	// previous chooses the log of the container before. The log of a running pod explains a state that lasts, the
	// events explain a pending one.
	previous, running, pending bool
}

// PodReady reports whether a pod has the condition Ready.
func PodReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// PodReason returns why a pod is not ready, and whether waiting will not help.
func PodReason(p *corev1.Pod) (r Reason, stuck bool) {
	r.pod = p
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			r.Text = "pod " + p.Name + " cannot be scheduled: " + c.Message
			return r, false
		}
	}
	for i := range p.Status.ContainerStatuses {
		s := &p.Status.ContainerStatuses[i]
		switch {
		case s.State.Waiting != nil:
			return waitingReason(p, s)
		case s.State.Terminated != nil:
			r.Text = fmt.Sprintf("pod %s ended with exit code %d", p.Name, s.State.Terminated.ExitCode)
			r.Crashed = true
			return r, false
		case s.State.Running != nil && s.RestartCount > 0:
			r.Text = fmt.Sprintf("pod %s runs, but is not ready; it was restarted %d times", p.Name, s.RestartCount)
			r.Crashed, r.previous = true, true
			return r, false
		case s.State.Running != nil:
			r.Text = "pod " + p.Name + " runs, but is not ready yet"
			r.running = true
			return r, false
		}
	}
	r.Text, r.pending = "pod "+p.Name+" is "+strings.ToLower(string(p.Status.Phase)), true
	return r, false
}

// waitingReason is why a container does not run.
func waitingReason(p *corev1.Pod, s *corev1.ContainerStatus) (r Reason, stuck bool) {
	w := s.State.Waiting
	r.pod = p
	switch w.Reason {
	case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError":
		r.Text = fmt.Sprintf("pod %s cannot get image %s: %s: %s", p.Name, s.Image, w.Reason, w.Message)
		r.pending = w.Reason == "ImagePullBackOff"
		return r, true
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		r.Text = fmt.Sprintf("pod %s cannot start its container: %s: %s", p.Name, w.Reason, w.Message)
		return r, true
	case "CrashLoopBackOff":
		r.Text = fmt.Sprintf("pod %s crashed %d times", p.Name, s.RestartCount)
		if t := s.LastTerminationState.Terminated; t != nil {
			r.Text += fmt.Sprintf(", last with exit code %d", t.ExitCode)
			if t.Message != "" {
				r.Text += ": " + FirstLine(t.Message)
			}
		}
		r.Crashed, r.previous = true, true
		// etcd depends on no other workload; the others may crash while it is not ready.
		return r, p.Labels["app"] == components.Etcd && s.RestartCount > 1
	}
	r.Text, r.pending = "pod "+p.Name+" is being started: "+w.Reason, true
	return r, false
}

// explain adds to a reason the log or the events of the pod; the log of a running pod only when the state
// lasts long.
func (t *Tracker) explain(ctx context.Context, r Reason, long bool) string {
	switch {
	case r.pod == nil:
		return r.Text
	case r.Crashed, r.running && long:
		if line := t.lastLine(ctx, r.pod, r.previous); line != "" {
			return r.Text + "; its log says: " + line
		}
	case r.pending:
		if event := t.lastWarning(ctx, r.pod); event != "" {
			return r.Text + "; " + event
		}
	}
	return r.Text
}

// tailLines is how many lines of a log are read.
const tailLines = 300

// lastLine returns the last line of a pod's log that reports an error, or else the last line that is not empty.
func (t *Tracker) lastLine(ctx context.Context, p *corev1.Pod, previous bool) string {
	raw, err := t.api.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{TailLines: new(int64(tailLines)), Previous: previous}).DoRaw(ctx)
	if err != nil {
		return ""
	}
	return errorLine(string(raw))
}

// errorLine returns the last line of a log that reports an error, or else the last line that is not empty.
func errorLine(log string) string {
	pattern := regexp.MustCompile(`^[EF]\d{4} |"level":"(error|fatal|panic)"|^(?i:error|fatal|panic)|unknown flag|flag provided but not defined`)
	last, lastError := "", ""
	for line := range strings.SplitSeq(log, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		last = line
		if pattern.MatchString(line) {
			lastError = line
		}
	}
	if lastError != "" {
		last = lastError
	}
	return shorten(last)
}

// shorten leaves out the time and place that a log line begins with, and limits its length.
func shorten(line string) string {
	var entry struct{ Msg, Error string }
	if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg != "" {
		line = strings.TrimSuffix(entry.Msg+": "+entry.Error, ": ")
	}
	line = regexp.MustCompile(`^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+ \S+] `).ReplaceAllString(line, "")
	if runes := []rune(line); len(runes) > 300 {
		line = string(runes[:300]) + "…"
	}
	return line
}

// lastWarning returns the newest warning about a pod.
func (t *Tracker) lastWarning(ctx context.Context, p *corev1.Pod) string {
	list, err := t.api.CoreV1().Events(p.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.Set{"involvedObject.uid": string(p.UID), "type": corev1.EventTypeWarning}.String(),
	})
	if err != nil || len(list.Items) == 0 {
		return ""
	}
	newest := slices.MaxFunc(list.Items, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	return newest.Reason + ": " + FirstLine(newest.Message)
}

// FirstLine returns the first line of a text.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// permanent reports whether an event or a log shows an error that does not pass by waiting.
func permanent(text string) bool {
	signs := []string{"read-only file system", "permission denied", "hostPath type check failed", "is not a directory", "unknown flag: ", "flag provided but not defined: "}
	return slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(text, sign) })
}
