package match

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/karmada-toolkit/karmada/internal/build"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
)

type dice struct{ *rand.Rand }

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

func (d dice) words() []string {
	var out []string
	for range d.IntN(3) {
		out = append(out, pick(d, "a", "b", "c", "", "bad value", "-x", "3", "7"))
	}
	return out
}

func (d dice) key() string {
	return pick(d, "env", "rack", "example.com/tier", "bad key", "", "a/b/c", strings.Repeat("k", 64))
}

func (d dice) affinity() *policyv1alpha1.ClusterAffinity {
	if d.IntN(10) == 0 {
		return nil
	}
	a := &policyv1alpha1.ClusterAffinity{}
	if d.IntN(2) == 0 {
		a.LabelSelector = &metav1.LabelSelector{}
		if d.IntN(3) == 0 {
			a.LabelSelector.MatchLabels = map[string]string{d.key(): pick(d, "a", "b", "bad value")}
		}
		for range d.IntN(2) {
			a.LabelSelector.MatchExpressions = append(a.LabelSelector.MatchExpressions, metav1.LabelSelectorRequirement{
				Key: d.key(), Operator: metav1.LabelSelectorOperator(pick(d, "In", "NotIn", "Exists", "DoesNotExist", "Odd")), Values: d.words(),
			})
		}
	}
	if d.IntN(2) == 0 {
		a.FieldSelector = &policyv1alpha1.FieldSelector{}
		for range d.IntN(3) {
			a.FieldSelector.MatchExpressions = append(a.FieldSelector.MatchExpressions, corev1.NodeSelectorRequirement{
				Key:      pick(d, "provider", "region", "zone", "odd"),
				Operator: corev1.NodeSelectorOperator(pick(d, "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Odd")), Values: d.words(),
			})
		}
	}
	for range d.IntN(2) * d.IntN(30) {
		a.ClusterNames = append(a.ClusterNames, pick(d, "m1", "m2", "m3"))
	}
	for range d.IntN(2) * d.IntN(30) {
		a.ExcludeClusters = append(a.ExcludeClusters, pick(d, "m1", "m2"))
	}
	return a
}

func (d dice) cluster() *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: pick(d, "m1", "m2", "m3"), Labels: map[string]string{}}}
	for range d.IntN(3) {
		c.Labels[pick(d, "env", "rack", "example.com/tier")] = pick(d, "a", "b", "c", "", "3")
	}
	c.Spec.Provider, c.Spec.Region = pick(d, "a", "b", "", "5"), pick(d, "a", "b", "", "5")
	for range d.IntN(3) {
		c.Spec.Zones = append(c.Spec.Zones, pick(d, "a", "b", "3", "bad value"))
	}
	return c
}

func TestMatcher_AnswersAsCluster(t *testing.T) {
	d := dice{rand.New(rand.NewPCG(3, 4))}
	matched := 0
	for range 20000 {
		affinity, cluster := d.affinity(), d.cluster()
		m := Compile(affinity)
		want := Cluster(cluster, affinity)
		if got := m.Matches(cluster); got != want || (m.Mismatch(cluster) == "") != want {
			a, _ := json.Marshal(affinity)
			c, _ := json.Marshal(cluster)
			t.Fatalf("got %v, want %v\n%s\n%s", got, want, a, c)
		}
		if want {
			matched++
		}
	}
	if matched < 2000 {
		t.Errorf("only %d cases matched", matched)
	}
}

// A selector that is larger than admission allows selects nothing, and costs nothing.
func TestMatch_LargeSelectorsSelectNothing(t *testing.T) {
	values := make([]string, 100_000)
	for i := range values {
		values[i] = fmt.Sprintf("v%d", i)
	}
	selector := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpNotIn, Values: values}}}
	cluster := build.Cluster("m1")
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	for _, affinity := range []*policyv1alpha1.ClusterAffinity{
		{LabelSelector: selector},
		{FieldSelector: &policyv1alpha1.FieldSelector{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: keyZone, Operator: corev1.NodeSelectorOpNotIn, Values: values}}}},
	} {
		build.Bounded(t, time.Minute, 1<<20, func() {
			matcher := Compile(affinity)
			if Cluster(cluster, affinity) || matcher.Matches(cluster) {
				t.Error("the cluster is selected")
			}
		})
	}
	if got := Resource(obj, &policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ConfigMap", LabelSelector: selector}); got != None {
		t.Errorf("got %v", got)
	}
}

// FuzzSelector parses the texts of selectors in proportion to their length.
func FuzzSelector(f *testing.F) {
	f.Add("a in (b,c),!d,e!=f", "a", "b")
	f.Add("a=b,a==c,x notin ()", "", "")
	f.Fuzz(func(t *testing.T, text, key, value string) {
		build.Bounded(t, 30*time.Second, 4<<20+uint64(1024*(len(text)+len(key)+len(value))), func() {
			if selector, err := validation.ParseLabelSelector(text); err == nil {
				selector.Matches(labels.Set{key: value})
			}
			selector := &metav1.LabelSelector{MatchLabels: map[string]string{key: value}, MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: key, Operator: metav1.LabelSelectorOpIn, Values: strings.Split(text, ",")},
			}}
			if parsed, err := validation.LabelSelector(selector); err == nil {
				parsed.Matches(labels.Set{key: value})
			}
			matcher := Compile(&policyv1alpha1.ClusterAffinity{LabelSelector: selector})
			matcher.Matches(build.Cluster("m1"))
		})
	})
}
