package events

import (
	"fmt"

	"github.com/spf13/pflag"
)

// Mode selects which successes are recorded as events. The zero value is
// Transitions. Failures are recorded in every mode.
type Mode string

// The values of Mode.
const (
	// Transitions records a success once per change, on the template.
	Transitions Mode = "transitions"
	// Contract also records every other success that Karmada records, on Works,
	// bindings and templates. It takes many more writes.
	Contract Mode = "contract"
)

// FlagName is the name of the flag that sets a Mode.
const FlagName = "events"

var _ pflag.Value = new(Mode)

// All reports whether every success is recorded.
func (m *Mode) All() bool { return *m == Contract }

// AddFlag adds the flag --events.
func (m *Mode) AddFlag(fs *pflag.FlagSet) {
	if *m == "" {
		*m = Transitions
	}
	fs.Var(m, FlagName, `Successes that are recorded as events: "transitions" records one per change, on the template; "contract" records all that Karmada does, also on Works and bindings.`)
}

// String implements pflag.Value.
func (m *Mode) String() string { return string(*m) }

// Type implements pflag.Value.
func (m *Mode) Type() string { return "mode" }

// Set implements pflag.Value. It fails for anything but the values of Mode.
func (m *Mode) Set(value string) error {
	switch mode := Mode(value); mode {
	case Transitions, Contract:
		*m = mode
		return nil
	}
	return fmt.Errorf("unknown value %q, must be %s or %s", value, Transitions, Contract)
}
