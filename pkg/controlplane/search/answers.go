package search

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// maxAnswers is the memory of all answers that are being made, in bytes of JSON.
	maxAnswers = 256 << 20
	// bufferSize is how much of an answer is sent at a time, in bytes.
	bufferSize = 64 << 10
	// writeTimeout is how long a client may take to receive what is sent to it.
	writeTimeout = 30 * time.Second
)

// answers bounds the memory of the answers that are being made. No user gets more than half of it, or more than an equal part
// of all who have some.
type answers struct {
	mu   sync.Mutex
	used int64
	of   map[string]int64
}

// lease is what one answer takes.
type lease struct {
	answers *answers
	user    string
	size    int64
}

// grow takes more memory, in bytes. Its error is TooManyRequests, which clients repeat.
func (l *lease) grow(n int64) error {
	a := l.answers
	a.mu.Lock()
	defer a.mu.Unlock()
	users := int64(len(a.of))
	if _, ok := a.of[l.user]; !ok {
		users++
	}
	if own := a.of[l.user]; own+n > maxAnswers/max(2, users) || a.used+n > maxAnswers {
		return apierrors.NewTooManyRequests(fmt.Sprintf("the answers that are being made take %d MiB, %d MiB of them those of user %q: try again", a.used>>20, own>>20, l.user), 1)
	}
	if a.of == nil {
		a.of = map[string]int64{}
	}
	a.of[l.user] += n
	a.used += n
	l.size += n
	return nil
}

// free gives all of it back.
func (l *lease) free() {
	a := l.answers
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used -= l.size
	if a.of[l.user] -= l.size; a.of[l.user] == 0 {
		delete(a.of, l.user)
	}
	l.size = 0
}

// sendList answers with a list whose items are made one after the other, so that only one is in memory. The JSON of empty ends with
// the empty list. It returns an error if nothing was sent; an answer that cannot be completed is aborted.
func sendList(w http.ResponseWriter, contentType string, empty any, items int, item func(i int) ([]byte, error)) error {
	head, err := json.Marshal(empty)
	if err != nil {
		return fmt.Errorf("encoding a list: %w", err)
	}
	var first []byte
	if items > 0 {
		if first, err = item(0); err != nil {
			return err
		}
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(http.StatusOK)
	to := bufio.NewWriterSize(w, bufferSize)
	_, _ = to.Write(head[:len(head)-len("]}")])
	for i := range items {
		data := first
		if i > 0 {
			_ = to.WriteByte(',')
			if data, err = item(i); err != nil {
				panic(http.ErrAbortHandler)
			}
		}
		if _, err := to.Write(data); err != nil {
			return nil //nolint:nilerr // the client is gone
		}
	}
	_, _ = to.WriteString("]}")
	_ = to.Flush()
	return nil
}
