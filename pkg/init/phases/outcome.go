package phases

import (
	"fmt"
	"sync"

	ssa "github.com/karmada-toolkit/karmada/internal/apply"
)

// Outcome is what the phases of a run did.
type Outcome struct {
	mu           sync.Mutex
	changes      ssa.ChangeSet
	filesChanged bool
	token        string
	notes        []string
}

// Changes returns what was done to the objects of both clusters, in no order, and whether local files were written.
func (o *Outcome) Changes() (changes ssa.ChangeSet, files bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.changes, o.filesChanged
}

// Token returns the bootstrap token, empty unless one was requested.
func (o *Outcome) Token() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.token
}

// Notes returns the notes for the user.
func (o *Outcome) Notes() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.notes
}

// Note adds a note for the user.
func (o *Outcome) Note(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.notes = append(o.notes, fmt.Sprintf(format, args...))
}

func (o *Outcome) add(changes ssa.ChangeSet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changes = append(o.changes, changes...)
}

func (o *Outcome) wroteFiles(changed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.filesChanged = o.filesChanged || changed
}

func (o *Outcome) setToken(token string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.token = token
}
