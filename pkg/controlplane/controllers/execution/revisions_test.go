package execution

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/execution"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
)

// customize replaces the interpreter of a bench by one whose rules for ConfigMaps can
// be set.
func (b *bench) customize() (set func(rules configv1alpha1.CustomizationRules)) {
	layer := interpreter.NewDeclarative(interpreter.NewLuaEngine(lua.DefaultLimits()))
	in := interpreter.New(interpreter.WithLayer(layer))
	b.c.deps.Interpreter, b.runner.rules = in, in
	in.Notifier().Subscribe(b.runner.rulesChanged)
	return func(rules configv1alpha1.CustomizationRules) {
		customization := &configv1alpha1.ResourceInterpreterCustomization{}
		customization.Spec.Target = configv1alpha1.CustomizationTarget{APIVersion: "v1", Kind: "ConfigMap"}
		customization.Spec.Customizations = rules
		changed := layer.Load([]*configv1alpha1.ResourceInterpreterCustomization{customization})
		in.Notifier().Publish(func(gvk schema.GroupVersionKind) bool { return len(changed) == 1 && gvk == changed[0] })
	}
}

func health(script string) configv1alpha1.CustomizationRules {
	return configv1alpha1.CustomizationRules{HealthInterpretation: &configv1alpha1.HealthInterpretation{LuaScript: script}}
}

// queued returns how many Works wait, and takes them.
func (b *bench) queued() int {
	n := 0
	for b.runner.queue.Len() > 0 {
		name, _, _ := b.runner.queue.GetWithPriority()
		b.runner.queue.Done(name)
		n++
	}
	return n
}

func TestRevisions_NewHealthRulesAreAppliedToExistingObjects(t *testing.T) {
	b := newBench(t, configMap)
	set := b.customize()
	b.mustSync()
	b.observed(configMapPath)
	b.queued()
	if h := b.work().Status.ManifestStatuses[0].Health; h != workv1alpha1.ResourceHealthy {
		t.Fatalf("it is %s", h)
	}
	set(health(`function InterpretHealth(o) return o.data.k ~= "v" end`))
	if b.queued() != 1 {
		t.Fatal("the Work was not enqueued")
	}
	b.member.Writes()
	b.mustSync()
	b.Clock.Step(time.Minute)
	b.mustSync()
	if h := b.work().Status.ManifestStatuses[0].Health; h != workv1alpha1.ResourceUnhealthy {
		t.Errorf("it is %s", h)
	}
	if writes := b.member.Writes(); len(writes) > 0 {
		t.Errorf("the member was written to: %v", writes)
	}
	b.queued() // the first event of the object, which came after a delay
	set(health(`function InterpretHealth(o) return o.data.k ~= "v" end`))
	if b.queued() != 0 {
		t.Error("nothing changed")
	}
}

func TestRevisions_NewRetentionRulesAreAppliedToExistingObjects(t *testing.T) {
	b := newBench(t, configMap)
	set := b.customize()
	set(configv1alpha1.CustomizationRules{Retention: &configv1alpha1.LocalValueRetention{LuaScript: `
function Retain(desired, observed)
  desired.data.mine = observed.data.mine
  return desired
end`}})
	b.mustSync()
	obj := b.member.Get(configMapPath)
	obj.Object["data"].(map[string]any)["mine"] = "x"
	b.member.Put(configMapPath, obj)
	b.observed(configMapPath)
	b.member.Writes()
	b.mustSync()
	if writes := b.member.Writes(); len(writes) > 0 {
		t.Fatalf("what is retained was written: %v", writes)
	}
	set(configv1alpha1.CustomizationRules{})
	b.mustSync()
	data, _ := b.member.Get(configMapPath).Object["data"].(map[string]any)
	if data["mine"] != nil {
		t.Errorf("what is not retained any longer stays: %v", data)
	}
}

// A script that never ends is stopped: the Work says so, once, and the objects of
// other kinds are not held up.
func TestInterpret_ScriptThatTimesOutIsReported(t *testing.T) {
	b := newBench(t, configMap)
	set := b.customize()
	set(health(`function InterpretHealth(o) while true do end end`))
	b.mustSync()
	b.Clock.Step(time.Minute)
	b.mustSync()
	work := b.work()
	c := meta.FindStatusCondition(work.Status.Conditions, execution.ConditionInterpreted)
	if c == nil || c.Status != "False" || c.Reason != "InterpretHealthFailed" || !strings.Contains(c.Message, "deadline exceeded") {
		t.Errorf("the condition is %+v", c)
	}
	if applied(work) != appliedOK || work.Status.ManifestStatuses[0].Health != workv1alpha1.ResourceUnknown {
		t.Errorf("the status is %+v", work.Status)
	}
	failures := 0
	for _, e := range b.Events() {
		if strings.HasPrefix(e, "Warning InterpretHealthFailed Interpret health of object(ConfigMap/default/a) failed, err: ") {
			failures++
		}
	}
	if failures != 1 {
		t.Errorf("%d events", failures)
	}
	set(health(`function InterpretHealth(o) return true end`))
	b.mustSync()
	b.Clock.Step(time.Minute)
	b.mustSync()
	work = b.work()
	if c := meta.FindStatusCondition(work.Status.Conditions, execution.ConditionInterpreted); c != nil || work.Status.ManifestStatuses[0].Health != workv1alpha1.ResourceHealthy {
		t.Errorf("after it was fixed: %+v", work.Status)
	}
}
