package installer

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

// reason is why a pod is not ready.
type reason struct {
	pod  *corev1.Pod
	text string
	// crashed says that its log may tell more, previous that it is the one of the
	// container before, running that it may tell more if this lasts.
	crashed, previous, running bool
	// pending says that its events may tell more.
	pending bool
}

// reason returns why the newest pod of a workload that is not ready is not, and
// whether waiting will not help.
func (v *view) reason(workload string) (r reason, hopeless bool) {
	pods := slices.Clone(v.pods[workload])
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	for i := range pods {
		p := &pods[i]
		if p.DeletionTimestamp != nil || podReady(p) {
			continue
		}
		return podReason(p)
	}
	if len(pods) == 0 {
		return reason{text: v.noPods(workload)}, false
	}
	return reason{text: "it is becoming available"}, false
}

// noPods says why a workload has none.
func (v *view) noPods(workload string) string {
	if d := v.deployments[workload]; d != nil {
		for _, c := range d.Status.Conditions {
			if c.Status == corev1.ConditionTrue && c.Type == "ReplicaFailure" {
				return c.Message
			}
		}
	}
	return "no pod was made yet"
}

func podReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// podReason reads a pod's status.
func podReason(p *corev1.Pod) (r reason, hopeless bool) {
	r.pod = p
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			r.text = "pod " + p.Name + " cannot be scheduled: " + c.Message
			return r, false
		}
	}
	for i := range p.Status.ContainerStatuses {
		s := &p.Status.ContainerStatuses[i]
		switch {
		case s.State.Waiting != nil:
			return waitingReason(p, s)
		case s.State.Terminated != nil:
			r.text = fmt.Sprintf("pod %s ended with exit code %d", p.Name, s.State.Terminated.ExitCode)
			r.crashed = true
			return r, false
		case s.State.Running != nil && s.RestartCount > 0:
			r.text = fmt.Sprintf("pod %s runs, but is not ready; it was restarted %d times", p.Name, s.RestartCount)
			r.crashed, r.previous = true, true
			return r, false
		case s.State.Running != nil:
			r.text = "pod " + p.Name + " runs, but is not ready yet"
			r.running = true
			return r, false
		}
	}
	r.text, r.pending = "pod "+p.Name+" is "+strings.ToLower(string(p.Status.Phase)), true
	return r, false
}

// waitingReason is why a container does not run.
func waitingReason(p *corev1.Pod, s *corev1.ContainerStatus) (r reason, hopeless bool) {
	w := s.State.Waiting
	r.pod = p
	switch w.Reason {
	case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError":
		r.text = fmt.Sprintf("pod %s cannot get image %s: %s: %s", p.Name, s.Image, w.Reason, w.Message)
		r.pending = w.Reason == "ImagePullBackOff"
		return r, true
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		r.text = fmt.Sprintf("pod %s cannot start its container: %s: %s", p.Name, w.Reason, w.Message)
		return r, true
	case "CrashLoopBackOff":
		r.text = fmt.Sprintf("pod %s crashed %d times", p.Name, s.RestartCount)
		if t := s.LastTerminationState.Terminated; t != nil {
			r.text += fmt.Sprintf(", last with exit code %d", t.ExitCode)
			if t.Message != "" {
				r.text += ": " + firstLine(t.Message)
			}
		}
		r.crashed, r.previous = true, true
		// etcd needs nobody; the others may wait for it in their way.
		return r, p.Labels["app"] == components.Etcd && s.RestartCount > 1
	}
	r.text, r.pending = "pod "+p.Name+" is being started: "+w.Reason, true
	return r, false
}

// explain adds to a reason what the log or the events of the pod say; what a pod
// that runs says only when it takes long.
func (b *board) explain(ctx context.Context, r reason, long bool) string {
	switch {
	case r.pod == nil:
		return r.text
	case r.crashed, r.running && long:
		if line := b.lastLine(ctx, r.pod, r.previous); line != "" {
			return r.text + "; its log says: " + line
		}
	case r.pending:
		if event := b.lastWarning(ctx, r.pod); event != "" {
			return r.text + "; " + event
		}
	}
	return r.text
}

// tail is how many lines of a log are looked at.
const tail = 300

// lastLine returns the last line of a pod's log that tells of an error, or else the
// last one that says something.
func (b *board) lastLine(ctx context.Context, p *corev1.Pod, previous bool) string {
	raw, err := b.api.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{TailLines: new(int64(tail)), Previous: previous}).DoRaw(ctx)
	if err != nil {
		return ""
	}
	return telling(string(raw))
}

// telling picks the line of a log that tells most.
func telling(log string) string {
	errorLine := regexp.MustCompile(`^[EF]\d{4} |"level":"(error|fatal|panic)"|^(?i:error|fatal|panic)|unknown flag|flag provided but not defined`)
	last, lastError := "", ""
	for line := range strings.SplitSeq(log, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		last = line
		if errorLine.MatchString(line) {
			lastError = line
		}
	}
	if lastError != "" {
		last = lastError
	}
	return shorten(last)
}

// shorten leaves out the time and place that a log line begins with, and what is too
// much for one line.
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
func (b *board) lastWarning(ctx context.Context, p *corev1.Pod) string {
	list, err := b.api.CoreV1().Events(p.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.Set{"involvedObject.uid": string(p.UID), "type": corev1.EventTypeWarning}.String(),
	})
	if err != nil || len(list.Items) == 0 {
		return ""
	}
	newest := slices.MaxFunc(list.Items, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	return newest.Reason + ": " + firstLine(newest.Message)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// permanent says whether what an event or a log says does not pass by waiting.
func permanent(text string) bool {
	for _, sign := range []string{"read-only file system", "permission denied", "hostPath type check failed", "is not a directory", "unknown flag: ", "flag provided but not defined: "} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}
