package events

import (
	"testing"

	"k8s.io/client-go/tools/record"
)

func TestPlain_EscapesTextOfMembers(t *testing.T) {
	const want = `Warning Failed member said: \x1b[2Jgone  Normal Synced fine`
	const hostile = "\x1b[2Jgone\n Normal Synced fine"
	fake := record.NewFakeRecorder(4)
	plain := Plain(fake)
	plain.Event(pod("1"), "Warning", "Failed", "member said: "+hostile)
	plain.Eventf(pod("1"), "Warning", "Failed", "member said: %s", hostile)
	plain.AnnotatedEventf(pod("1"), nil, "Warning", "Failed", "member said: %s", hostile)
	New(fake).Warning(pod("1"), "Failed", "member said: "+hostile)
	for range 4 {
		if got := <-fake.Events; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
