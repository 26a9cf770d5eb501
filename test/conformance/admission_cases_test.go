package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"regexp"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// admissionCase is an object that is created, and the expected answer.
type admissionCase struct {
	Name   string          `json:"name"`
	Path   string          `json:"path"`
	Object json.RawMessage `json:"object"`
	Expect admissionAnswer `json:"expect"`
}

// admissionAnswer is the object as admitted, or the reason of its rejection.
type admissionAnswer struct {
	Code    int            `json:"code"`
	Reason  string         `json:"reason"`
	Fields  []string       `json:"fields"`
	Message string         `json:"message"`
	Object  map[string]any `json:"object"`
}

// readAdmission reads cases, one a line.
func readAdmission(r io.Reader) ([]admissionCase, error) {
	var out []admissionCase
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var c admissionCase
		if err := utiljson.Unmarshal(lines.Bytes(), &c); err != nil {
			return nil, fmt.Errorf("decoding case %d: %w", len(out)+1, err)
		}
		out = append(out, c)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading cases: %w", err)
	}
	return out, nil
}

// diffAnswers returns the difference between want and got, or "". It does not compare
// messages, which are human-readable.
func diffAnswers(want, got admissionAnswer) string {
	if want.Code != got.Code {
		return fmt.Sprintf("want %d %s %s\n got %d %s %s", want.Code, want.Reason, want.Message, got.Code, got.Reason, got.Message)
	}
	if want.Code != 201 {
		if want.Reason != got.Reason {
			return fmt.Sprintf("want reason %q, got %q", want.Reason, got.Reason)
		}
		return ""
	}
	if reflect.DeepEqual(want.Object, got.Object) {
		return ""
	}
	return cmp.Diff(want.Object, got.Object)
}

// cleanObject removes the fields of an object that differ on every call.
func cleanObject(obj map[string]any) (map[string]any, error) {
	if metadata, ok := obj["metadata"].(map[string]any); ok {
		for _, key := range []string{"uid", "creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink"} {
			delete(metadata, key)
		}
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encoding the admitted object: %w", err)
	}
	id := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)
	out := map[string]any{}
	if err := utiljson.Unmarshal(id.ReplaceAll(data, []byte("<id>")), &out); err != nil {
		return nil, fmt.Errorf("decoding the admitted object: %w", err)
	}
	return out, nil
}
