package limit

import (
	"errors"
	"testing"
)

func TestChecks(t *testing.T) {
	cause := errors.New("not a number")
	var errs Checks
	errs.Require(true, "--valid: %w", cause)
	errs.Require(false, "--port is %d", -1)
	errs.Require(false, "--rate: %w", cause)
	err := errors.Join(errs...)
	if want := "--port is -1\n--rate: not a number"; err == nil || err.Error() != want || !errors.Is(err, cause) {
		t.Errorf("got %v, want %s", err, want)
	}
}
