package manifest

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestDifferences(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b string
		want []string
	}{
		"equal":    {`spec: {a: 1, b: null}`, `spec: {a: 1.0}, status: {c: d}`, nil},
		"fields":   {`spec: {a: 1, b: {c: [1], d: e}}`, `spec: {b: {c: [2], d: e}, f: g}`, []string{"spec.a", "spec.b.c", "spec.f"}},
		"kinds":    {`spec: {a: {b: c}}`, `spec: {a: [b]}`, []string{"spec.a"}},
		"metadata": {`metadata: {uid: a, labels: {x: y}}`, `metadata: {uid: b, labels: {x: z}, annotations: {k: v}}`, []string{"metadata.labels.x", "metadata.annotations.k"}},
		"too many": {`spec: {a: 1, b: 1, c: 1, d: 1}, data: {a: b}`, `spec: {a: 2, b: 2, c: 2, d: 2}`, []string{"data", "spec"}},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := object(t, "{apiVersion: v1, kind: X, "+tc.a+"}"), object(t, "{apiVersion: v1, kind: X, "+tc.b+"}")
			var got []string
			for _, path := range Differences(a, b, 3) {
				got = append(got, path.String())
				Take(a, b, path)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if !Equal(a, b) {
				t.Errorf("they differ after all fields were taken: %v, %v", a.Object, b.Object)
			}
		})
	}
}

// Any two objects are equal once the differences were taken, and equal ones have none.
func TestDifferences_LeadToEqualObjects(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var value func(depth int) any
	value = func(depth int) any {
		switch n := random.IntN(6); {
		case n < 3 && depth > 0:
			m := map[string]any{}
			for range random.IntN(4) {
				m[strconv.Itoa(random.IntN(5))] = value(depth - 1)
			}
			return m
		case n == 3 && depth > 0:
			return []any{value(depth - 1)}
		case n == 4:
			return nil
		}
		return int64(random.IntN(3))
	}
	for i := range 2000 {
		objects := [2]*unstructured.Unstructured{}
		for j := range objects {
			objects[j] = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "X", "spec": value(4), "data": value(2)}}
		}
		a, b := objects[0], objects[1]
		differences := Differences(a, b, 1+random.IntN(5))
		if Equal(a, b) != (len(differences) == 0) {
			t.Fatalf("%d: %v and %v differ in %v", i, a.Object, b.Object, differences)
		}
		slices.Reverse(differences)
		for _, path := range differences {
			Take(a, b, path)
		}
		if !Equal(a, b) {
			t.Fatalf("%d: %v is not %v after %v", i, a.Object, b.Object, differences)
		}
	}
}
