package member

import "github.com/karmada-toolkit/karmada/internal/plaintext"

// maxText is the limit of a text from a member, in bytes.
const maxText = 1024

// Text returns text from a member, such as an error, in a form fit for events and
// conditions.
func Text(s string) string { return plaintext.Line(s, maxText) }
