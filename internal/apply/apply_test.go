package apply

import "testing"

func TestIncludes(t *testing.T) {
	type object = map[string]any
	live := object{
		"metadata": object{"name": "a", "labels": object{"mine": "1", "yours": "2"}, "uid": "x"},
		"spec":     object{"ports": []any{object{"port": int64(1), "protocol": "TCP"}}, "type": "ExternalName"},
	}
	for _, tc := range []struct {
		name string
		want object
		is   bool
	}{
		{"what is asked for is there, with defaults and others' labels", object{"metadata": object{"labels": object{"mine": "1"}}, "spec": object{"ports": []any{object{"port": int64(1)}}}}, true},
		{"empty asks for nothing", object{"status": object{}, "rules": []any{}}, true},
		{"another value", object{"spec": object{"type": "ClusterIP"}}, false},
		{"a missing key", object{"metadata": object{"annotations": object{"a": "b"}}}, false},
		{"a shorter list", object{"spec": object{"ports": []any{}}}, false},
		{"a longer list", object{"spec": object{"ports": []any{object{"port": int64(1)}, object{"port": int64(2)}}}}, false},
		{"another type", object{"spec": "x"}, false},
	} {
		if got := includes(live, tc.want); got != tc.is {
			t.Errorf("%s: %t", tc.name, got)
		}
	}
}
