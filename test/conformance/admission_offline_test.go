package conformance

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
)

// The command line validates objects without a server as the webhooks do: it
// admits and rejects the same objects, with the same messages.
func TestAdmission_Offline(t *testing.T) {
	cases, err := readAdmission(admissionReader(t))
	if err != nil {
		t.Fatal(err)
	}
	judge := &validation.Judge{Compile: lua.Check}
	admitted, refused := 0, 0
	for _, c := range cases {
		obj := &unstructured.Unstructured{}
		text, err := json.Marshal(c.Object)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &obj.Object); err != nil {
			t.Fatal(err)
		}
		if parts := strings.Split(c.Path, "/"); len(parts) > 6 && parts[4] == "namespaces" {
			obj.SetNamespace(parts[5])
		}
		_, err = judge.New(obj)
		_, reason, byWebhook := strings.Cut(c.Expect.Message, "denied the request: ")
		switch {
		case c.Expect.Code < 300 && err != nil:
			t.Errorf("%s is admitted, but offline: %v", c.Name, err)
		case c.Expect.Code < 300:
			admitted++
		case byWebhook && err == nil:
			t.Errorf("%s is admitted offline, but: %s", c.Name, reason)
		case byWebhook:
			refused++
			// The second line of the reference's error has no information.
			reason = strings.ReplaceAll(reason, "\nJSON pointer error", "")
			if got := err.Error(); got != reason && !strings.Contains(reason, got) && !strings.Contains(got, reason) {
				t.Errorf("%s\noffline: %s\nserver:  %s", c.Name, got, reason)
			}
		}
	}
	t.Logf("%d of %d cases admitted, %d refused by webhooks; the others are refused by schemas", admitted, len(cases), refused)
}
