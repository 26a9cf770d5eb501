package webhook

import (
	"testing"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
)

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
}
