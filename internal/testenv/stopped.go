package testenv

import "strings"

// Stopped returns the error with which a manager of controllers ended, or nil if a controller did not end within the
// grace period. The priority queue of controller-runtime v0.24 may never hand out an item that becomes ready while it is
// shut down, and then keeps a lock that the workers need.
func Stopped(err error) error {
	if err != nil && strings.Contains(err.Error(), "grace period") {
		return nil
	}
	return err
}
