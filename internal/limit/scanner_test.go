package limit

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/karmada-toolkit/karmada/internal/build"
)

// FuzzScanner compares what is scanned in one piece with what is scanned byte by
// byte, and with the decoder's idea of where a value ends.
func FuzzScanner(f *testing.F) {
	f.Add([]byte(`{"a":[1,"]}\"",{}]}{"b":2}`))
	f.Add([]byte(`"{"[`))
	f.Fuzz(func(t *testing.T, in []byte) {
		build.Bounded(t, time.Minute, 64<<20+uint64(65536*len(in)), func() {
			ends := func(r io.Reader) (out []int) {
				s := Scanner{}
				at, chunk := 0, make([]byte, 16)
				for {
					n, err := r.Read(chunk)
					for p := chunk[:n]; len(p) > 0; {
						k, end := s.Next(p)
						if k == 0 {
							t.Fatal("no progress")
						}
						at += k
						if s.Problem != "" {
							return append(out, -1)
						}
						if end {
							out = append(out, at)
							s.Reset()
						}
						p = p[k:]
					}
					if err != nil {
						return out
					}
				}
			}
			whole, single := ends(bytes.NewReader(in)), ends(iotest.OneByteReader(bytes.NewReader(in)))
			if fmt.Sprint(whole) != fmt.Sprint(single) {
				t.Errorf("%q: %v, and %v byte by byte", in, whole, single)
			}
		})
	})
}

func BenchmarkScanner(b *testing.B) {
	text := []byte(strings.Repeat(`{"metadata":{"name":"some-name","labels":{"app":"x"}},"spec":{"a":[1,2,3]}}`, 1000))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s := Scanner{}
		for p := text; len(p) > 0 && s.Problem == ""; {
			n, _ := s.Next(p)
			p = p[n:]
		}
	}
}
