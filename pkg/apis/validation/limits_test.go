package validation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/karmada-toolkit/karmada/internal/build"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

func TestCheckStatePath(t *testing.T) {
	for _, path := range []string{
		"", "{}", "plain text", "{.a}", "{ .a.b }", "{$.a}", "{@.a}", "prefix-{.a}-{.b[0]}{.c[-1].d}", "{.a['b']}", `{.a['b\.c']}`, `{.a\.b/c}`, "}",
	} {
		if err := CheckStatePath(path); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
	for path, want := range map[string]string{
		"{" + strings.Repeat("@", 1_900_000) + "}": "has 1900002 bytes, more than 1024",
		"{@@.a}":                 "is neither a field",
		"{.a":                    "unclosed action",
		"{.a[":                   "unterminated array",
		"{.*}":                   "a wildcard",
		`{.\*}`:                  "a wildcard",
		"{.a[*]}":                "[*] is no index",
		"{..a}":                  "recursive descent",
		"{.a..b}":                "recursive descent",
		"{.a[0,1]}":              "[0,1] is no index",
		"{.a['b','c']}":          "not a plain one",
		"{.a['*']}":              "not a plain one",
		"{.a['b..c']}":           "not a plain one",
		"{.a['b.c']}":            "not a plain one",
		"{.a['b}{..']}":          "not a plain one",
		"{.a[0:2]}":              "is no index",
		"{.a[:]}":                "is no index",
		"{.a[]}":                 "is no index",
		"{.a[9999999999]}":       "is no index",
		`{.a[?(@.b=="c")]}`:      "is no index",
		"{range .a[*]}{.b}{end}": "is neither a field",
		`{"text"}`:               "is neither a field",
		"{.a}{.b[0]['c']}{..c}":  "recursive descent",
		"{. a}":                  "the name of a field is missing",
		"{.a\n.b}":               "is neither a field",
	} {
		if err := CheckStatePath(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.64q: got %v, want %q", path, err, want)
		} else if len(err.Error()) > 512 {
			t.Errorf("%.64q: the error has %d bytes", path, len(err.Error()))
		}
	}
}

func TestCheckSelectors(t *testing.T) {
	many := make([]string, 40_000)
	for name, affinity := range map[string]*policyv1alpha1.ClusterAffinity{
		"a long value":      {LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": strings.Repeat("x", MaxSelectorBytes)}}},
		"many empty values": {LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In", Values: append(many, many...)}}}},
		"many requirements": {LabelSelector: &metav1.LabelSelector{MatchExpressions: make([]metav1.LabelSelectorRequirement, MaxSelectorTerms+1)}},
		"many fields":       {FieldSelector: &policyv1alpha1.FieldSelector{MatchExpressions: make([]corev1.NodeSelectorRequirement, MaxSelectorTerms+1)}},
		"long fields":       {FieldSelector: &policyv1alpha1.FieldSelector{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: "In", Values: append(many, many...)}}}},
	} {
		if CheckAffinity(affinity) == nil {
			t.Errorf("%s: there is no error", name)
		}
	}
	for _, affinity := range []*policyv1alpha1.ClusterAffinity{nil, {}, {
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}, MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In", Values: []string{"b"}}}},
		FieldSelector: &policyv1alpha1.FieldSelector{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: "In", Values: []string{"b"}}}},
	}} {
		if err := CheckAffinity(affinity); err != nil {
			t.Error(err)
		}
	}
}

// A stored policy beyond the limits can still be updated, such as by the removal of a finalizer, but not with another spec.
func TestValidatePropagationPolicyUpdate_KeepsWhatIsStored(t *testing.T) {
	old := &policyv1alpha1.PropagationPolicy{}
	old.Spec.PropagateDeps = true
	old.Spec.Failover = &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{StatePreservation: &policyv1alpha1.StatePreservation{
		Rules: []policyv1alpha1.StatePreservationRule{{AliasLabelName: "a", JSONPath: "{.list[*].name}"}},
	}}}
	if errs := ValidatePropagationPolicy(old); len(errs) != 1 || errs[0].Field != "spec.failover.cluster.statePreservation.rules[0].jsonPath" {
		t.Errorf("got %v", errs)
	}
	changed := old.DeepCopy()
	changed.Finalizers = []string{"x"}
	if errs := ValidatePropagationPolicyUpdate(changed, old); len(errs) > 0 {
		t.Error(errs)
	}
	changed.Spec.Failover.Cluster.StatePreservation.Rules[0].AliasLabelName = "b"
	if errs := ValidatePropagationPolicyUpdate(changed, old); len(errs) != 1 {
		t.Error(errs)
	}
	changed.Spec.Failover.Cluster.StatePreservation.Rules = make([]policyv1alpha1.StatePreservationRule, MaxStateRules+1)
	for i := range changed.Spec.Failover.Cluster.StatePreservation.Rules {
		changed.Spec.Failover.Cluster.StatePreservation.Rules[i].AliasLabelName = "a"
	}
	if errs := ValidatePropagationPolicyUpdate(changed, old); len(errs) != 1 || !strings.Contains(errs[0].Error(), "must have at most 64") {
		t.Error(errs)
	}
}

// FuzzParseCronSchedule parses a schedule and looks for its next time in proportion to its length.
func FuzzParseCronSchedule(f *testing.F) {
	for _, text := range []string{"*/1,*/1,*/1 * * * *", "@every 1s", "CRON_TZ=Europe/Berlin 0 0 30 2 *", "TZ=", "0-59/1 0-23/1 1-31/1 1-12/1 0-6/1", strings.Repeat("0,", 1_000_000) + "0 * * * *"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		build.Bounded(t, 30*time.Second, 16<<20, func() {
			if schedule, err := ParseCronSchedule(text); err == nil {
				Fires(schedule, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
			}
		})
	})
}

// A policy has at most MaxResourceSelectors selectors; a stored one beyond that can be updated in all but its spec.
func TestPolicies_NumberOfResourceSelectors(t *testing.T) {
	selectors := func(n int) []policyv1alpha1.ResourceSelector {
		out := make([]policyv1alpha1.ResourceSelector, n)
		for i := range out {
			out[i] = policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "a"}
		}
		return out
	}
	for n, allowed := range map[int]bool{MaxResourceSelectors: true, MaxResourceSelectors + 1: false} {
		p := &policyv1alpha1.PropagationPolicy{Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: selectors(n)}}
		p.Namespace = "ns"
		o := &policyv1alpha1.OverridePolicy{Spec: policyv1alpha1.OverrideSpec{ResourceSelectors: selectors(n)}}
		o.Namespace = "ns"
		for _, errs := range []field.ErrorList{ValidatePropagationPolicy(p), ValidateOverridePolicy(o)} {
			if allowed != (len(errs) == 0) || !allowed && (len(errs) != 1 || errs[0].Field != "spec.resourceSelectors") {
				t.Errorf("%d: %.200v", n, errs)
			}
		}
		if errs := append(ValidatePropagationPolicyUpdate(p, p.DeepCopy()), ValidateOverridePolicyUpdate(o, o.DeepCopy())...); len(errs) != 0 {
			t.Errorf("%d, stored: %.200v", n, errs)
		}
	}
}

// Warnings about kinds that no API serves take requests for each.
func TestWarner_LimitsLookups(t *testing.T) {
	p := &policyv1alpha1.OverridePolicy{}
	for i := range MaxResourceSelectors {
		p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: fmt.Sprintf("Kind%d", i/2)})
	}
	lookups := 0
	got := Warner{Served: func(string, string) bool { lookups++; return false }}.OverridePolicy(p)
	if lookups != maxLookups || len(got) != 2*maxLookups {
		t.Errorf("%d lookups, %d warnings", lookups, len(got))
	}
}

func TestValidateOverridePolicy_Limits(t *testing.T) {
	long := strings.Repeat("x", MaxOverrideBytes+1)
	for want, overriders := range map[string]policyv1alpha1.Overriders{
		"imageOverrider":                   {ImageOverrider: make([]policyv1alpha1.ImageOverrider, MaxOverriders+1)},
		"commandOverrider":                 {CommandOverrider: make([]policyv1alpha1.CommandArgsOverrider, MaxOverriders+1)},
		"imageOverrider[0].value":          {ImageOverrider: []policyv1alpha1.ImageOverrider{{Value: long}}},
		"imageOverrider[0].predicate.path": {ImageOverrider: []policyv1alpha1.ImageOverrider{{Predicate: &policyv1alpha1.ImagePredicate{Path: "/" + long}}}},
		"plaintext[0].path":                {Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: "/" + long}}},
		"fieldOverrider[0].fieldPath":      {FieldOverrider: []policyv1alpha1.FieldOverrider{{FieldPath: "/" + long, JSON: []policyv1alpha1.JSONPatchOperation{{SubPath: "/a", Operator: "remove"}}}}},
		"fieldOverrider[0]":                {FieldOverrider: []policyv1alpha1.FieldOverrider{{FieldPath: "/a", JSON: make([]policyv1alpha1.JSONPatchOperation, MaxOverriders+1)}}},
	} {
		old := &policyv1alpha1.OverridePolicy{}
		old.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{Overriders: overriders}}
		errs := ValidateOverridePolicy(old)
		if len(errs) != 1 || errs[0].Field != "spec.overrideRules[0].overriders."+want || len(errs[0].Error()) > 1024 {
			t.Errorf("%s: got %.1000v", want, errs)
		}
		changed := old.DeepCopy()
		changed.Finalizers = []string{"x"}
		if errs := ValidateOverridePolicyUpdate(changed, old); len(errs) > 0 {
			t.Errorf("%s: got %.1000v", want, errs)
		}
		if changed.Spec.OverrideRules = append(changed.Spec.OverrideRules, policyv1alpha1.RuleWithCluster{}); len(ValidateOverridePolicyUpdate(changed, old)) != 1 {
			t.Errorf("%s: a changed policy is admitted", want)
		}
	}
}
