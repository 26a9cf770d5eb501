package access

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// TestSingle_Incarnations has a member report ever older versions: it is opened again at once, and then once in an interval.
func TestSingle_Incarnations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := NewSingle("m1", &rest.Config{Host: "https://127.0.0.1:1"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		open := func() *Member {
			t.Helper()
			m, err := s.Member(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		first := open()
		if i := first.Incarnation(); i != (Incarnation{Number: 1}) || open() != first {
			t.Errorf("the first is %+v", i)
		}
		for _, to := range []string{"9", "8", "7"} {
			first.WentBack("10", to)
		}
		<-first.Context().Done()
		second := open()
		if i := second.Incarnation(); i != (Incarnation{2, "10", "9"}) {
			t.Errorf("the second is %+v", i)
		}
		first.WentBack("10", "6") // of before
		began := time.Now()
		second.WentBack("9", "5")
		second.WentBack("9", "4")
		synctest.Wait()
		if second.Context().Err() != nil || open() != second {
			t.Error("it is opened again within the interval")
		}
		<-second.Context().Done()
		if i := open().Incarnation(); i != (Incarnation{3, "9", "5"}) || time.Since(began) != incarnationInterval {
			t.Errorf("after %v it is %+v", time.Since(began), i)
		}
		open().close()
	})
}
