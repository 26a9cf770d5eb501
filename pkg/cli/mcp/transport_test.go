package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	initialize = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	statusCall = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"status","arguments":{}}}`
)

// answers returns the IDs of lines that are answers, with the codes of errors, sorted.
func answers(t *testing.T, out string) string {
	t.Helper()
	var got []string
	for line := range strings.Lines(out) {
		answer := struct {
			ID     *json.RawMessage
			Result json.RawMessage
			Error  *struct{ Code int }
		}{}
		if err := json.Unmarshal([]byte(line), &answer); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		id := "null"
		if answer.ID != nil {
			id = string(*answer.ID)
		} else if !strings.Contains(line, `"id":null`) {
			t.Errorf("no id: %s", line)
		}
		if answer.Error != nil {
			id += fmt.Sprintf(":%d", answer.Error.Code)
		}
		got = append(got, id)
	}
	slices.Sort(got)
	return strings.Join(got, " ")
}

func TestServe_Lines(t *testing.T) {
	call := func(id int) string { return fmt.Sprintf(statusCall, id) }
	for name, tc := range map[string]struct{ in, want string }{
		"nothing":                         {in: "", want: ""},
		"calls under way at the end":      {in: initialize + call(1) + "\n" + call(2) + "\n", want: `"init" 1 2`},
		"more calls than run at a time":   {in: initialize + call(1) + "\n" + call(2) + "\n" + call(3) + "\n" + call(4) + "\n" + call(5) + "\n" + call(6) + "\n", want: `"init" 1 2 3 4 5 6`},
		"no newline at the end":           {in: initialize + call(1), want: `"init" 1`},
		"the end in the middle":           {in: initialize + call(1) + "\n" + call(2)[:40], want: `"init" 1 null:-32700`},
		"a call after text":               {in: initialize + "hello\n" + call(1) + "\n", want: `"init" 1 null:-32700`},
		"text before the session":         {in: "}{\n" + initialize + call(1) + "\n", want: `"init" 1 null:-32700`},
		"text between calls":              {in: initialize + call(1) + "\n{\"jsonrpc\":\n" + call(2) + "\n", want: `"init" 1 2 null:-32700`},
		"two messages in a line":          {in: initialize + call(1) + call(2) + "\n" + call(3) + "\n", want: `"init" 3 null:-32700`},
		"binary":                          {in: initialize + "\x00\xff\xfe\x01\n\x00\n" + call(1) + "\n", want: `"init" 1 null:-32700 null:-32700`},
		"empty lines, and those of DOS":   {in: "\n\r\n \n" + strings.ReplaceAll(initialize, "\n", "\r\n") + "\n\n" + call(1) + "\r\n\n", want: `"init" 1`},
		"a batch":                         {in: initialize + "[" + call(1) + "," + call(2) + "]\n[]\n" + call(3) + "\n", want: `"init" 3 null:-32600 null:-32600`},
		"no message":                      {in: initialize + "null\n1\n\"x\"\n{}\n{\"jsonrpc\":\"1.0\",\"id\":9,\"method\":\"x\"}\n{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"x\"}\n" + call(1) + "\n", want: `"init" 1` + strings.Repeat(" null:-32600", 6)},
		"a long line":                     {in: initialize + strings.Repeat("x", 3*maxMessage+5) + "\n" + call(1) + "\n", want: `"init" 1 null:-32700`},
		"a long line at the end":          {in: initialize + call(1) + "\n" + strings.Repeat(" ", maxMessage+1), want: `"init" 1 null:-32700`},
		"deep nesting":                    {in: initialize + strings.Repeat("[", maxMessage-1) + "\n" + call(1) + "\n", want: `"init" 1 null:-32700`},
		"an answer that nobody asked":     {in: initialize + `{"jsonrpc":"2.0","id":7,"result":{}}` + "\n" + call(1) + "\n", want: `"init" 1`},
		"an unknown method":               {in: initialize + `{"jsonrpc":"2.0","id":7,"method":"x"}` + "\n" + call(1) + "\n", want: `"init" 1 7:-32601`},
		"an ID of a call that is running": {in: initialize + call(1) + "\n" + call(1) + "\n" + call(2) + "\n", want: `"init" 1 2`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := &bytes.Buffer{}
			if err := serveLines(t, strings.NewReader(tc.in), out); err != nil {
				t.Error(err)
			}
			if got := answers(t, out.String()); got != tc.want {
				t.Errorf("got %s, want %s\n%.2000s", got, tc.want, out)
			}
		})
	}
}

// TestServe_BrokenOutput has a client that closes its end while a call runs.
func TestServe_BrokenOutput(t *testing.T) {
	reader, writer := io.Pipe()
	_ = reader.CloseWithError(errors.New("closed by the client"))
	for _, in := range []string{initialize + fmt.Sprintf(statusCall, 1) + "\n", "x\n" + initialize} {
		if err := serveLines(t, strings.NewReader(in), writer); err == nil || !strings.Contains(err.Error(), "closed by the client") {
			t.Errorf("got %v", err)
		}
	}
}

// serveLines serves a client whose calls take a while.
func serveLines(t *testing.T, in io.Reader, out io.Writer) error {
	t.Helper()
	s := &server{name: "karmadactl", now: time.Now, slots: make(chan struct{}, maxCalls), run: func(ctx context.Context, _ []string, _ io.Reader, out, _ io.Writer) error {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			t.Error("a call was canceled")
		}
		_, err := io.WriteString(out, "all right\n")
		return err
	}}
	ended := make(chan error, 1)
	go func() { ended <- s.serve(t.Context(), &transport{in: in, out: out}) }()
	select {
	case err := <-ended:
		return err
	case <-time.After(20 * time.Second):
		t.Fatal("the server did not end")
		return nil
	}
}
