package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// transport is the SDK's transport of lines, which ends the session at a line that is no message, and cancels the calls that run at
// the end of input: it answers such lines, and hides the end of input until all calls are answered.
type transport struct {
	sdk.Connection
	in  io.Reader
	out io.Writer
	// calls are the IDs of calls without an answer, and running is their number.
	calls   sync.Map
	running sync.WaitGroup
	writing sync.Mutex
}

// Connect implements sdk.Transport.
func (t *transport) Connect(ctx context.Context) (_ sdk.Connection, err error) {
	messages, to := io.Pipe()
	t.Connection, err = (&sdk.IOTransport{Reader: messages, Writer: output{t}, MaxLineLength: -1}).Connect(ctx)
	go t.forward(to) // a read of stdin cannot be interrupted
	return t, err
}

// forward writes the messages of the input to the SDK's transport.
func (t *transport) forward(to *io.PipeWriter) {
	lines := bufio.NewReaderSize(t.in, maxMessage)
	for {
		line, err := lines.ReadSlice('\n')
		tooLong := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = lines.ReadSlice('\n')
		}
		answer := output{t}
		if line = bytes.TrimSpace(line); tooLong || len(line) > 0 && !json.Valid(line) {
			err = errors.Join(err, answer.fail(jsonrpc.CodeParseError, fmt.Sprintf("the line is not JSON of at most %d bytes", maxMessage)))
		} else if message, invalid := jsonrpc.DecodeMessage(line); invalid == nil {
			if request, ok := message.(*jsonrpc.Request); ok && request.IsCall() {
				if _, used := t.calls.LoadOrStore(request.ID, true); !used {
					t.running.Add(1)
				}
			}
			_, broken := fmt.Fprintf(to, "%s\n", line)
			err = errors.Join(err, broken)
		} else if len(line) > 0 {
			err = errors.Join(err, answer.fail(jsonrpc.CodeInvalidRequest, "the line is not one message of JSON-RPC 2.0; batches are not supported"))
		}
		if err != nil {
			t.running.Wait()
			_ = to.CloseWithError(err) // never fails
			return
		}
	}
}

// Write implements sdk.Connection.
func (t *transport) Write(ctx context.Context, message jsonrpc.Message) error {
	err := t.Connection.Write(ctx, message)
	if response, ok := message.(*jsonrpc.Response); ok {
		if _, running := t.calls.LoadAndDelete(response.ID); running {
			t.running.Done()
		}
	}
	return err
}

// output is stdout, which stays open.
type output struct{ *transport }

// Write writes a line.
func (o output) Write(line []byte) (int, error) {
	o.writing.Lock()
	defer o.writing.Unlock()
	return o.out.Write(line)
}

// Close does nothing.
func (output) Close() error { return nil }

// fail writes an error whose ID is null, which the SDK does not encode.
func (o output) fail(code int, message string) error {
	_, err := fmt.Fprintf(o, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%q}}`+"\n", code, message)
	return err
}
