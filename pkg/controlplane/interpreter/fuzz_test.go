package interpreter

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpreter/lua"
)

// FuzzQuantities: what scripts add up is a quantity, in whatever order; what they
// read as a number is none below zero.
func FuzzQuantities(f *testing.F) {
	for _, seed := range [][2]string{
		{"100m", "1"}, {"1Gi", "1G"}, {"1e3", "-1"}, {"0", ""}, {"1.5Mi", "0.1"}, {"9223372036854775807", "1"}, {"1e-9", "n"}, {"١", " 1"}, {"1E", "1Ei"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		build.Bounded(t, time.Minute, 64<<20+uint64(65536*(len(a)+len(b))), func() {
			sum, err := resourceAdd([]any{a, nil, b})
			other, otherErr := resourceAdd([]any{b, a})
			if (err == nil) != (otherErr == nil) {
				t.Fatalf("%q and %q: %v, the other way round %v", a, b, err, otherErr)
			}
			if err == nil {
				x, err1 := resource.ParseQuantity(sum.(string))
				y, err2 := resource.ParseQuantity(other.(string))
				if err1 != nil || err2 != nil || x.Cmp(y) != 0 {
					t.Errorf("%q and %q: %v or %v, %v, %v", a, b, sum, other, err1, err2)
				}
			}
			if n, err := getResourceQuantity([]any{a}); err == nil && n.(float64) < 0 {
				t.Errorf("%q is read as %v", a, n)
			}
		})
	})
}

// FuzzRevise: whatever a script makes of an object, it fails or returns an object
// that can be stored, and the caller's object stays.
func FuzzRevise(f *testing.F) {
	for _, seed := range []string{
		`obj.spec.replicas = n`, `obj.spec = nil`, `obj = {kind = "K", n}`, `obj.x = obj`, `obj.x = {[1.5] = 1}`, `obj.x = 0/0`,
		`obj = nil`, `obj.kind = nil`, `obj.spec.template = {}`, `for i = 1, n do obj[i] = i end`, `obj.x = string.rep("x", n)`, `obj.metadata.name = n`,
	} {
		f.Add(seed, int64(3))
	}
	engine := NewLuaEngine(lua.Limits{Memory: 1 << 20})
	f.Fuzz(func(t *testing.T, body string, n int64) {
		build.Bounded(t, time.Minute, 64<<20+uint64(65536*len(body)), func() {
			rules := &scriptRules{revise: engine.Script("function ReviseReplica(obj, n)\n" + body + "\nreturn obj end")}
			obj := parse(t, deploymentYAML)
			revised, err := rules.reviseReplica(obj, n)
			if err == nil {
				if _, err := revised.MarshalJSON(); err != nil {
					t.Errorf("%s: %v", body, err)
				}
			}
			if replicas := number(child(obj.Object, "spec"), "replicas"); replicas != 2 || obj.GetName() != "nginx" {
				t.Errorf("%s changed the caller's object", body)
			}
		})
	})
}
