// Traffic is a server and a client for tests of networks between clusters. It needs no files and fits into an image
// FROM scratch.
//
//	traffic serve NAME   answers NAME on port 8080 until it is killed, without a graceful end
//	traffic call URL     requests URL every 50 ms and prints a line for each request
//
// A line is the time of the request, "ok" or "failed", and the answer or the error. Every request has a connection of
// its own and a second to end; requests do not wait for each other.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

const (
	address  = ":8080"
	interval = 50 * time.Millisecond
	limit    = time.Second
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "traffic:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("want \"serve NAME\" or \"call URL\"")
	}
	switch args[0] {
	case "serve":
		return serve(args[1])
	case "call":
		return call(args[1])
	}
	return fmt.Errorf("there is no %q; use serve or call", args[0])
}

func serve(name string) error {
	server := &http.Server{Addr: address, ReadHeaderTimeout: limit, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, name+"\n")
	})}
	return server.ListenAndServe()
}

// call prints lines until the process is killed.
func call(url string) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	lines := make(chan string)
	go func() {
		for now := range time.Tick(interval) {
			go func() { lines <- line(now, client, url) }()
		}
	}()
	for l := range lines {
		fmt.Println(l)
	}
	return nil
}

func line(at time.Time, client *http.Client, url string) string {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	answer, err := get(ctx, client, url)
	result := "ok"
	if err != nil {
		result, answer = "failed", err.Error()
	}
	return fmt.Sprintf("%s %s %s", at.UTC().Format(time.RFC3339Nano), result, strings.ReplaceAll(strings.TrimSpace(answer), "\n", " "))
}

func get(ctx context.Context, client *http.Client, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return string(body), err
}
