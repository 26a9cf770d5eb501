package contract

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRooms_FilesNameWhatTheyCover checks the lines by which "make check" finds the tests that packages have in test/integration.
func TestRooms_FilesNameWhatTheyCover(t *testing.T) {
	dirs := packages(t)
	covers, tests := regexp.MustCompile(`(?m)^// Covers (.+)\.$`), regexp.MustCompile(`(?m)^func Test\w+\(t \*testing\.T\)`)
	for _, file := range goFiles(t) {
		if !strings.HasPrefix(file.dir(), "test/integration/") || !tests.MatchString(file.source) {
			continue
		}
		found := covers.FindStringSubmatch(file.source)
		if found == nil {
			t.Errorf("%s has no line %q", file.path, "// Covers DIRECTORY, DIRECTORY.")
			continue
		}
		for dir := range strings.SplitSeq(found[1], ", ") {
			if !slices.Contains(dirs, dir) {
				t.Errorf("%s covers %s, which is no package", file.path, dir)
			}
		}
	}
}
