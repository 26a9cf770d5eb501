package webhook

import (
	"strings"
	"testing"
	"time"

	"github.com/karmada-toolkit/karmada/internal/build"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
)

// A patch is limited in operations and in depth, as is what it makes.
func TestApplyPatch_Limits(t *testing.T) {
	operation := `{"op":"add","path":"/spec/replicas","value":3}`
	patch := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat(operation+",", n), ",") + "]" }
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	grow := "["
	for i := range 4 {
		grow += `{"op":"add","path":"/spec` + strings.Repeat("/a", 200*i) + `/a","value":` + nested(200) + `},`
	}
	for name, tc := range map[string]struct{ patch, want string }{
		"few operations":            {patch(maxOperations), ""},
		"many operations":           {patch(maxOperations + 1), "4097 operations, more than 4096"},
		"a deep value":              {`[{"op":"add","path":"/spec/a","value":` + nested(600) + `}]`, "nested more than"},
		"a value of some depth":     {`[{"op":"add","path":"/spec/a","value":` + nested(200) + `}]`, ""},
		"values that nest together": {strings.TrimSuffix(grow, ",") + "]", "nested more than"},
	} {
		_, err := applyPatch(workflow(), []byte(tc.patch))
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %.200v, want %q", name, err, tc.want)
		}
	}
}

// FuzzResponse: whatever a webhook answers, the operation fails or has what it
// needs, and a patched object still is one.
func FuzzResponse(f *testing.F) {
	for _, seed := range []string{
		`{"response":{"uid":"u","successful":true,"replicas":3,"replicaRequirements":{"resourceRequest":{"cpu":"100m"}}}}`,
		`{"response":{"uid":"u","successful":true,"patchType":"JSONPatch","patch":"W3sib3AiOiJyZXBsYWNlIiwicGF0aCI6Ii9zcGVjL3JlcGxpY2FzIiwidmFsdWUiOjV9XQ=="}}`,
		`{"response":{"uid":"u","successful":false,"status":{"code":403,"message":"no"}}}`,
		`{"response":{"uid":"u","successful":true,"healthy":true,"rawStatus":{"a":[]},"components":[{"name":"a"}],"dependencies":[{}]}}`,
		`{"response":{"uid":"x"}}`, `{"response":null}`, `{"apiVersion":"v1","kind":"Pod"}`, `{}`, `[]`, `null`, ``,
	} {
		f.Add([]byte(seed))
	}
	operations := []configv1alpha1.InterpreterOperation{
		configv1alpha1.InterpreterOperationInterpretReplica, configv1alpha1.InterpreterOperationInterpretComponent,
		configv1alpha1.InterpreterOperationReviseReplica, configv1alpha1.InterpreterOperationRetain,
		configv1alpha1.InterpreterOperationAggregateStatus, configv1alpha1.InterpreterOperationInterpretDependency,
		configv1alpha1.InterpreterOperationInterpretStatus, configv1alpha1.InterpreterOperationInterpretHealth,
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		build.Bounded(t, time.Minute, 64<<20+uint64(65536*len(text)), func() {
			c, err := parseContext(text)
			if err != nil {
				return
			}
			for _, op := range operations {
				a, err := verify(op, "u", c)
				if err != nil {
					continue
				}
				switch op {
				case configv1alpha1.InterpreterOperationInterpretReplica:
					_ = *a.Replicas
				case configv1alpha1.InterpreterOperationInterpretHealth:
					_ = *a.Healthy
				case configv1alpha1.InterpreterOperationInterpretStatus:
					_ = a.RawStatus.Raw
				}
				obj := workflow()
				if len(a.Patch) == 0 {
					continue
				}
				patched, err := applyPatch(obj, a.Patch)
				if err == nil && patched.GetKind() == "" {
					t.Errorf("the patch %q took the kind away", a.Patch)
				}
				if obj.GetName() != "w" || number(obj, "spec", "replicas") != 2 {
					t.Errorf("the patch %q changed the request", a.Patch)
				}
			}
		})
	})
}
