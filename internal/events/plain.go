package events

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
)

// plain is a recorder whose messages are one line without control characters.
type plain struct{ record.EventRecorder }

// Plain returns a recorder for messages with text of member clusters: control
// characters are escaped, so that a terminal shows them, and line feeds become spaces.
func Plain(recorder record.EventRecorder) record.EventRecorder { return plain{recorder} }

// Event implements record.EventRecorder.
func (p plain) Event(object runtime.Object, eventtype, reason, message string) {
	p.EventRecorder.Event(object, eventtype, reason, plaintext.EscapeLine(message))
}

// Eventf implements record.EventRecorder.
func (p plain) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any) {
	p.Event(object, eventtype, reason, fmt.Sprintf(messageFmt, args...))
}

// AnnotatedEventf implements record.EventRecorder.
func (p plain) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any) {
	p.EventRecorder.AnnotatedEventf(object, annotations, eventtype, reason, "%s", plaintext.EscapeLine(fmt.Sprintf(messageFmt, args...)))
}
