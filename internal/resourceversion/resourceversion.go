// Package resourceversion compares resource versions of one resource.
package resourceversion

import "k8s.io/apimachinery/pkg/util/resourceversion"

// Newer reports whether resource version a is later than b. Versions that cannot be compared are taken for newer when
// they differ.
func Newer(a, b string) bool {
	if order, err := resourceversion.CompareResourceVersion(a, b); err == nil {
		return order > 0
	}
	return a != b
}

// Older reports whether resource version a is older than b. Versions that cannot be compared are not.
func Older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
