package interpreter

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmada-toolkit/karmada/internal/build"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
)

// A customization changes no rights on their way to members, and shows nothing of a Secret in a binding.
func TestInterpreter_WhatIsNotCustomized(t *testing.T) {
	all := configv1alpha1.CustomizationRules{
		Retention:                &configv1alpha1.LocalValueRetention{LuaScript: "function Retain(a, b) return a end"},
		ReplicaResource:          &configv1alpha1.ReplicaResourceRequirement{LuaScript: "function GetReplicas(a) return 1, nil end"},
		ReplicaRevision:          &configv1alpha1.ReplicaRevision{LuaScript: "function ReviseReplica(a, n) a.roleRef.name = 'cluster-admin' return a end"},
		StatusReflection:         &configv1alpha1.StatusReflection{LuaScript: "function ReflectStatus(a) return a.data end"},
		StatusAggregation:        &configv1alpha1.StatusAggregation{LuaScript: "function AggregateStatus(a, b) return a end"},
		HealthInterpretation:     &configv1alpha1.HealthInterpretation{LuaScript: "function InterpretHealth(a) return true end"},
		DependencyInterpretation: &configv1alpha1.DependencyInterpretation{LuaScript: "function GetDependencies(a) return {} end"},
	}
	const (
		retain, replica, revise, reflect, aggregate, health, depends = configv1alpha1.InterpreterOperationRetain, configv1alpha1.InterpreterOperationInterpretReplica,
			configv1alpha1.InterpreterOperationReviseReplica, configv1alpha1.InterpreterOperationInterpretStatus, configv1alpha1.InterpreterOperationAggregateStatus,
			configv1alpha1.InterpreterOperationInterpretHealth, configv1alpha1.InterpreterOperationInterpretDependency
	)
	for _, tc := range []struct {
		apiVersion, kind string
		allowed, refused []configv1alpha1.InterpreterOperation
	}{
		{"rbac.authorization.k8s.io/v1", "RoleBinding", []configv1alpha1.InterpreterOperation{reflect, health}, []configv1alpha1.InterpreterOperation{retain, revise}},
		{"v1", "ResourceQuota", []configv1alpha1.InterpreterOperation{health}, []configv1alpha1.InterpreterOperation{retain, revise}},
		{"v1", "Secret", []configv1alpha1.InterpreterOperation{retain, health}, []configv1alpha1.InterpreterOperation{replica, revise, reflect, aggregate, depends}},
		{"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", []configv1alpha1.InterpreterOperation{retain, health}, []configv1alpha1.InterpreterOperation{revise}},
		{"example.io/v1", "Secret", []configv1alpha1.InterpreterOperation{retain, health, reflect, revise, depends}, nil},
	} {
		c := &configv1alpha1.ResourceInterpreterCustomization{Spec: configv1alpha1.ResourceInterpreterCustomizationSpec{
			Target: configv1alpha1.CustomizationTarget{APIVersion: tc.apiVersion, Kind: tc.kind}, Customizations: all,
		}}
		compile := func(string) error { return nil }
		if err := validation.ValidateCustomization(c, nil, compile); (err != nil) != (tc.refused != nil) {
			t.Errorf("%s: admission: %v", tc.kind, err)
		}
		layer := NewDeclarative(NewLuaEngine(lua.Limits{}))
		layer.Load([]*configv1alpha1.ResourceInterpreterCustomization{c})
		i, gvk := New(WithLayer(layer)), schema.FromAPIVersionAndKind(tc.apiVersion, tc.kind)
		custom := layer.Rules(gvk)
		for _, op := range tc.allowed {
			if i.layers.rules(gvk, op) != custom {
				t.Errorf("%s of %s is not customized", op, tc.kind)
			}
		}
		for _, op := range tc.refused {
			if i.layers.rules(gvk, op) == custom {
				t.Errorf("%s of %s is customized", op, tc.kind)
			}
		}
	}
}

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
