// Burner is a server that uses the processor while it answers. It needs no files and fits into an image FROM scratch.
package main

import (
	"fmt"
	"net/http"
	"os"
	"time"
)

const (
	address = ":8080"
	// work is the time that the answer to a request takes the processor.
	work = 20 * time.Millisecond
	// readTimeout bounds the headers of a request.
	readTimeout = 5 * time.Second
)

func main() {
	server := &http.Server{Addr: address, ReadHeaderTimeout: readTimeout, Handler: http.HandlerFunc(burn)}
	if err := server.ListenAndServe(); err != nil {
		fmt.Fprintln(os.Stderr, "burner:", err)
		os.Exit(1)
	}
}

// burn answers how often it counted to a million.
func burn(w http.ResponseWriter, r *http.Request) {
	rounds := 0
	for end := time.Now().Add(work); time.Now().Before(end) && r.Context().Err() == nil; rounds++ {
		for range 1_000_000 {
		}
	}
	_, _ = fmt.Fprintln(w, rounds)
}
