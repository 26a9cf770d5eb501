package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/karmada-toolkit/karmada/pkg/local/federation"
	"github.com/karmada-toolkit/karmada/pkg/local/federation/federationtest"
	"github.com/karmada-toolkit/karmada/pkg/local/settings"
)

func TestSeekLines(t *testing.T) {
	var long strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&long, "line %d\n", i)
	}
	for _, tc := range []struct {
		text string
		n    int
		want string
	}{
		{"", 3, ""},
		{"a\nb\n", 0, ""},
		{"a\nb\n", 1, "b\n"},
		{"a\nb", 1, "b"},
		{"a\nb\n", 2, "a\nb\n"},
		{"\n\n\n", 2, "\n\n"},
		{long.String(), 3, "line 9997\nline 9998\nline 9999\n"},
		{long.String(), 9_000, long.String()[strings.Index(long.String(), "line 1000\n"):]},
		{long.String(), 20_000, long.String()},
	} {
		r := strings.NewReader(tc.text)
		if err := seekLines(r, tc.n); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != tc.want {
			t.Errorf("the last %d lines of %.20q are %.40q, %v", tc.n, tc.text, got, err)
		}
	}
}

// writer calls a function for what is written.
type writer func(string)

func (w writer) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}

func TestLogs_FollowsUntilTheContextEnds(t *testing.T) {
	f := federationtest.Saved(t)
	r := New(federationtest.Deps(), f, Request{}, settings.Request{})
	path := f.Dir().Log("member1")
	if err := os.MkdirAll(f.Dir().Data("logs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var got string
	err := r.Logs(ctx, "member1", federation.LogOptions{Follow: true, Tail: -1}, writer(func(text string) {
		got += text
		switch {
		case got == "one\n":
			log, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err == nil {
				_, err = log.WriteString("two\n")
			}
			if err != nil {
				t.Error(err)
			}
			_ = log.Close()
		case strings.HasSuffix(got, "two\n"):
			stop()
		}
	}))
	if err != nil || got != "one\ntwo\n" {
		t.Errorf("got %q, %v", got, err)
	}
}
