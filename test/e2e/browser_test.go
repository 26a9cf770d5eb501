//go:build !kind

package e2e

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	cdpnetwork "github.com/chromedp/cdproto/network"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// axe is axe-core, which finds violations of accessibility rules in a page.
//
//go:embed testdata/axe.min.js
var axe string

// browser is a page of headless Chromium.
type browser struct {
	ctx context.Context //nolint:containedctx // chromedp keeps the browser in it

	mu sync.Mutex
	// requests are the addresses that were requested, and failures the exceptions and the errors that the browser logged.
	requests, failures []string
}

// chromium returns the program. Without one the test is skipped, but fails in CI.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const text = "there is no Chromium in PATH: install the package chromium"
	if os.Getenv("CI") != "" {
		t.Fatal(text)
	}
	t.Skip(text)
	return ""
}

// newBrowser starts Chromium. It runs until the test ends.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)), chromedp.UserDataDir(t.TempDir()), chromedp.DisableGPU, chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	b := &browser{}
	b.ctx, stop = chromedp.NewContext(allocator)
	t.Cleanup(func() {
		defer stop()
		if err := chromedp.Cancel(b.ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("ending Chromium: %v", err)
		}
	})
	if err := chromedp.Do(b.ctx); err != nil {
		t.Fatalf("starting Chromium: %v", err)
	}
	if err := chromedp.Listen(b.ctx, b.record); err != nil {
		t.Fatal(err)
	}
	b.emulate(t, 1200, "light")
	return b
}

// record keeps what an event of the browser reports.
func (b *browser) record(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *cdpnetwork.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError {
			b.failures = append(b.failures, e.Entry.Text+" "+e.Entry.URL)
		}
	case *cdpruntime.EventExceptionThrown:
		b.failures = append(b.failures, fmt.Sprintf("%+v", e.ExceptionDetails))
	case *cdpruntime.EventConsoleAPICalled:
		if e.Type == cdpruntime.ConsoleAPICalledTypeError {
			b.failures = append(b.failures, fmt.Sprintf("%+v", e.Args))
		}
	}
}

// failed returns the failures since the last call.
func (b *browser) failed() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.failures
	b.failures = nil
	return out
}

// foreign returns the requests to other hosts than 127.0.0.1, and the number of all requests.
func (b *browser) foreign() (foreign []string, all int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, request := range b.requests {
		if address, err := url.Parse(request); err != nil || address.Hostname() != "127.0.0.1" {
			foreign = append(foreign, request)
		}
	}
	return foreign, len(b.requests)
}

// do runs actions.
func (b *browser) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// open opens an address.
func (b *browser) open(t *testing.T, address string) {
	t.Helper()
	b.do(t, chromedp.Navigate(address))
}

// press types into the element that has the focus. A key that the page handles types nothing, as with a keyboard.
func (b *browser) press(t *testing.T, keys string) {
	t.Helper()
	for _, key := range keys {
		for _, event := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
			params := input.DispatchKeyEventParams{Type: event, Key: string(key)}
			if event == input.DispatchKeyEventTypeKeyDown {
				params.Text = string(key)
			}
			b.do(t, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
				_, err := cdp.Call(ctx, target, input.DispatchKeyEvent, params)
				return err
			}))
		}
	}
}

// emulate sets the width of the page in pixels and the preferred color scheme. Without motion no color is between two others.
func (b *browser) emulate(t *testing.T, width int64, scheme string) {
	t.Helper()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}
	b.do(t, chromedp.EmulateViewport(width, 800), chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
		return err
	}))
}

// evaluated returns the value of an expression.
func evaluated[T any](b *browser, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// sees waits until an expression is true.
func (b *browser) sees(t *testing.T, expression string) {
	t.Helper()
	within(t, time.Minute, func() error {
		is, err := evaluated[bool](b, expression)
		if err == nil && !is {
			text, _ := evaluated[string](b, "location.href + '\\n' + document.body.innerText")
			err = fmt.Errorf("not so: %s\n%s", expression, text)
		}
		return err
	})
}

// shows waits until the text of an element contains others.
func (b *browser) shows(t *testing.T, selector string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		b.sees(t, fmt.Sprintf("(document.querySelector(%s)?.innerText ?? '').includes(%s)", quoted(selector), quoted(text)))
	}
}

// quoted returns a string of JavaScript.
func quoted(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// accessible fails for each violation of an accessibility rule in the page that is open.
func (b *browser) accessible(t *testing.T, what string) {
	t.Helper()
	const run = `(async () => {
		const result = await axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"], preload: false});
		return result.violations.map(v => v.id + ": " + v.help + ": " + v.nodes.map(n => n.html.slice(0, 200) + " " + (n.any[0]?.message ?? "")).join("; "));
	})()`
	found, err := evaluated[[]string](b, run)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) > 0 {
		t.Errorf("%s: %s", what, strings.Join(found, "\n"))
	}
}

// fits fails if the page that is open is scrolled horizontally.
func (b *browser) fits(t *testing.T, what string) {
	t.Helper()
	const wide = `document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body *")].
		filter(e => e.getBoundingClientRect().right > innerWidth && !e.closest(".scroll")).map(e => e.outerHTML.slice(0, 200)).slice(-3).concat("")`
	found, err := evaluated[[]string](b, wide)
	if err != nil || len(found) > 0 {
		t.Errorf("%s: %v; wider than the page: %s", what, err, strings.Join(found, "\n"))
	}
}
