package conformance

import (
	"bufio"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

//go:embed testdata/*.jsonl.gz
var embeddedLines embed.FS

// openLines opens NAME.jsonl of the directory in $CONFORMANCE_DATA, or the cases
// that come with the repository.
func openLines(name string) (io.ReadCloser, error) {
	if dir := os.Getenv("CONFORMANCE_DATA"); dir != "" {
		return os.Open(filepath.Join(dir, name+".jsonl"))
	}
	f, err := embeddedLines.Open("testdata/" + name + ".jsonl.gz")
	if err != nil {
		return nil, err
	}
	return gzip.NewReader(f)
}

// replayLines runs every line of a file of cases and reports how many passed.
func replayLines(t *testing.T, name string, run func(t *testing.T, line []byte) (string, error)) {
	t.Helper()
	f, err := openLines(name)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%s.jsonl is not in $CONFORMANCE_DATA", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	passed := 0
	var failed []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		label, err := run(t, lines.Bytes())
		if err == nil {
			passed++
			continue
		}
		failed = append(failed, label)
		t.Errorf("%s: %v", label, err)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(os.Stdout, "%s: %d passed, %d failed %s\n", name, passed, len(failed), strings.Join(failed, " "))
}
