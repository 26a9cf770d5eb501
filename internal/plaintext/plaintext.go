// Package plaintext makes text of other clusters safe to store in one line of a
// status, an event or a log.
package plaintext

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ellipsis ends text that was shortened.
const ellipsis = "..."

// Line returns s without control and formatting characters and invalid UTF-8, white
// space other than a space replaced by one, and at most limit bytes long. Text that
// is shortened ends with an ellipsis. A limit of less than 3 counts as 3.
func Line(s string, limit int) string {
	limit = max(limit, len(ellipsis))
	if len(s) > 4*limit+utf8.UTFMax {
		s = s[:4*limit+utf8.UTFMax] // what is dropped below is at most replaced, not searched without end
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t' || r == '\u2028' || r == '\u2029':
			return ' '
		case r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, s)
	if len(s) <= limit {
		return s
	}
	cut := limit - len(ellipsis)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + ellipsis
}

// WithoutURLs returns a text without the requests that errors of net/http and net/url
// begin with, such as `Get "https://10.0.0.1:6443/api/v1/pods": `. What failed stays.
func WithoutURLs(s string) string { return request.ReplaceAllString(s, "") }

// request is the text of a url.Error before its cause.
var request = regexp.MustCompile(`\b[A-Za-z]+ "(?:[^"\\]|\\.)*://(?:[^"\\]|\\.)*": `)

// Escape returns s with control characters, marks of text direction and invalid
// UTF-8 in the notation of Go (\x1b, \u202e), so that a terminal prints them instead
// of interpreting them. Line feeds and tabs stay: errors and tables have several lines.
func Escape(s string) string {
	if strings.IndexFunc(s, isUnsafe) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		_, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !isUnsafe(r) || r == utf8.RuneError:
			b.WriteRune(r)
		case r == '\r':
			b.WriteString(`\r`)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// EscapeLine returns s as Escape does, in one line: line feeds and tabs become spaces.
func EscapeLine(s string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(Escape(s))
}

// isUnsafe reports whether a terminal may interpret a character instead of printing it.
func isUnsafe(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case utf8.RuneError, '\u2028', '\u2029':
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// writer escapes what it passes on.
type writer struct {
	to io.Writer
	// rest is the incomplete last character of what was written.
	rest []byte
}

// NewWriter returns a writer that passes text on to another one as Escape returns it.
// Characters that are split between two writes are kept together.
func NewWriter(to io.Writer) io.Writer { return &writer{to: to} }

// Write implements io.Writer.
func (w *writer) Write(p []byte) (int, error) {
	text := append(w.rest, p...)
	end := len(text)
	for i := max(0, end-utf8.UTFMax+1); i < end; i++ {
		if utf8.RuneStart(text[i]) && !utf8.FullRune(text[i:]) {
			end = i
			break
		}
	}
	w.rest = append([]byte(nil), text[end:]...)
	if _, err := io.WriteString(w.to, Escape(string(text[:end]))); err != nil {
		return 0, err
	}
	return len(p), nil
}
