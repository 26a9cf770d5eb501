package cordon

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestCordonAndUncordon(t *testing.T) {
	mark := corev1.Taint{Key: "cluster.karmada.io/unschedulable", Effect: corev1.TaintEffectNoSchedule}
	a := corev1.Taint{Key: "a", Effect: corev1.TaintEffectNoExecute}
	b := corev1.Taint{Key: "b", Effect: corev1.TaintEffectNoExecute}
	for name, tt := range map[string]struct {
		change  func([]corev1.Taint) ([]corev1.Taint, bool)
		old     []corev1.Taint
		want    []corev1.Taint
		changed bool
	}{
		"the mark comes last":          {cordon, []corev1.Taint{a}, []corev1.Taint{a, mark}, true},
		"marked already":               {cordon, []corev1.Taint{mark, a}, []corev1.Taint{mark, a}, false},
		"the last one takes its place": {uncordon, []corev1.Taint{mark, a, b}, []corev1.Taint{b, a}, true},
		"only the mark":                {uncordon, []corev1.Taint{mark}, []corev1.Taint{}, true},
		"not marked":                   {uncordon, []corev1.Taint{a}, []corev1.Taint{a}, false},
		"same key, other effect stays": {uncordon, []corev1.Taint{{Key: mark.Key, Effect: corev1.TaintEffectNoExecute}}, []corev1.Taint{{Key: mark.Key, Effect: corev1.TaintEffectNoExecute}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, changed := tt.change(tt.old)
			if changed != tt.changed {
				t.Errorf("changed %v, want %v", changed, tt.changed)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
