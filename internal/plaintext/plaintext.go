// Package plaintext makes text of other clusters safe to store in one line of a
// status, an event or a log.
package plaintext

import (
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
