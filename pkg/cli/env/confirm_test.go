package env

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestConfirm(t *testing.T) {
	for name, tc := range map[string]struct {
		in, err string
		yes     bool
		asked   int
	}{
		"yes":                   {in: "y\n", yes: true, asked: 1},
		"Yes":                   {in: "YES\n", yes: true, asked: 1},
		"no":                    {in: "No\n", asked: 1},
		"asked again":           {in: "what\nhm\ny\n", yes: true, asked: 3},
		"an empty line":         {in: "\n", err: "no answer was given; use --force", asked: 1},
		"the end of the input":  {in: "", err: "no answer was given; use --force", asked: 1},
		"an answer without end": {in: "n", asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			yes, err := (&Env{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(tc.in), Out: &out}}).Confirm("force")
			if yes != tc.yes || tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("got %t, %v", yes, err)
			}
			if n := strings.Count(out.String(), "Please type (y)es or (n)o and then press enter:"); n != tc.asked {
				t.Errorf("asked %d times", n)
			}
		})
	}
}
