//go:build helm

package render

import (
	"strings"
	"testing"
)

// A chart that was packaged from a commit has no version of images, and asks for one.
func TestImages_OfACommit(t *testing.T) {
	for values, want := range map[string]string{
		`{karmadaImageVersion: ""}`: `build them with "make image"`, `{karmadaImageVersion: v1.2.3-5-g0ab12cd}`: "",
	} {
		if _, err := tryRender("try", values, true); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", values, err)
		}
	}
}
