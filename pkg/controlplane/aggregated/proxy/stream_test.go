package proxy

import (
	"bufio"
	"fmt"
	"net/http"
	"testing"
)

func TestForward_StreamsAtOnce(t *testing.T) {
	f := newFederation(t, http.NotFoundHandler())
	goOn := make(chan string)
	gone := make(chan struct{})
	f.add(t, "m1", func(w http.ResponseWriter, req *http.Request) {
		defer close(gone)
		for {
			select {
			case line := <-goOn:
				_, _ = fmt.Fprintln(w, line)
				_ = http.NewResponseController(w).Flush()
			case <-req.Context().Done():
				return
			}
		}
	})
	go func() { goOn <- "first" }() // the answer begins with the first line
	answer, err := http.Get(f.URL + base + "m1/proxy/api/v1/pods?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(answer.Body)
	for _, want := range []string{"first", "second", "third"} {
		if want != "first" {
			goOn <- want
		}
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %q, %v", lines.Text(), lines.Err())
		}
	}
	_ = answer.Body.Close()
	<-gone // the member sees that the client has gone
}

func TestForward_ABrokenAnswerIsNotWhole(t *testing.T) {
	f := newFederation(t, http.NotFoundHandler())
	f.add(t, "m1", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	answer, err := http.Get(f.URL + base + "m1/proxy/api/v1/pods")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
	}
	if lines.Err() == nil {
		t.Error("the answer looks whole")
	}
}
