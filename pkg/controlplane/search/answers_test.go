package search

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/build"
)

// One user gets half of the memory, two have equal parts, and what an answer took is there for others when it ends.
func TestAnswers_AreFair(t *testing.T) {
	a := &answers{}
	one, two, three := &lease{answers: a, user: "one"}, &lease{answers: a, user: "two"}, &lease{answers: a, user: "three"}
	if err := one.grow(maxAnswers / 2); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := one.grow(1); !apierrors.IsTooManyRequests(err) {
			t.Fatalf("more than half: %v", err)
		}
	}
	if seconds, ok := apierrors.SuggestsClientDelay(one.grow(1)); !ok || seconds != 1 {
		t.Errorf("repeated after %d, %t", seconds, ok)
	}
	if err := errors.Join(two.grow(maxAnswers/4), three.grow(maxAnswers/4)); err != nil {
		t.Fatal(err)
	}
	if err := three.grow(maxAnswers / 6); !apierrors.IsTooManyRequests(err) {
		t.Errorf("more than there is: %v", err)
	}
	one.free()
	if err := three.grow(maxAnswers / 6); err != nil {
		t.Error(err)
	}
	two.free()
	three.free()
	if a.used != 0 || len(a.of) != 0 {
		t.Errorf("%d bytes are not given back: %v", a.used, a.of)
	}
}

// discard counts what is written.
type discard struct {
	*httptest.ResponseRecorder
	n int
}

func (d *discard) Write(p []byte) (int, error) {
	d.n += len(p)
	return len(p), nil
}

// A list of 81 MB has one item in memory at a time; each form of it is JSON.
func TestSendList(t *testing.T) {
	big := []byte(`{"data":"` + strings.Repeat("x", 900_000) + `"}`)
	build.Bounded(t, time.Minute, 32<<20, func() {
		w := &discard{ResponseRecorder: httptest.NewRecorder()}
		if err := sendList(w, "application/json", list{Items: []json.RawMessage{}}, 90, func(int) ([]byte, error) { return big, nil }); err != nil || w.n < 90*len(big) {
			t.Errorf("%d bytes, %v", w.n, err)
		}
	})
	row := func(i int) ([]byte, error) { return json.Marshal(metav1.TableRow{Cells: []any{i}}) }
	for n := range 3 {
		w := httptest.NewRecorder()
		if err := sendList(w, "application/json", (&tables{headed: true}).table(metav1.ListMeta{ResourceVersion: "1"}, []metav1.TableRow{}), n, row); err != nil {
			t.Fatal(err)
		}
		var out metav1.Table
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || len(out.Rows) != n || out.ResourceVersion != "1" || out.Kind != "Table" {
			t.Errorf("%d rows: %v, %s", n, err, w.Body)
		}
	}
	w := httptest.NewRecorder()
	if err := sendList(w, "application/json", list{Items: []json.RawMessage{}}, 1, func(int) ([]byte, error) { return nil, fmt.Errorf("no object") }); err == nil || w.Body.Len() != 0 {
		t.Errorf("the first item fails: %v, %s", err, w.Body)
	}
}
