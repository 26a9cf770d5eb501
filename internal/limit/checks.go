package limit

import "fmt"

// Checks are the errors about settings that cannot work.
type Checks []error

// Require adds an error unless a setting is valid.
func (c *Checks) Require(valid bool, format string, args ...any) {
	if !valid {
		*c = append(*c, fmt.Errorf(format, args...))
	}
}
