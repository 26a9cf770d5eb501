package v1alpha1

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDefaultResourceModels(t *testing.T) {
	got, err := json.Marshal(DefaultResourceModels())
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"grade":0,"ranges":[{"name":"cpu","min":"0","max":"1"},{"name":"memory","min":"0","max":"4Gi"}]},` +
		`{"grade":1,"ranges":[{"name":"cpu","min":"1","max":"2"},{"name":"memory","min":"4Gi","max":"16Gi"}]},` +
		`{"grade":2,"ranges":[{"name":"cpu","min":"2","max":"4"},{"name":"memory","min":"16Gi","max":"32Gi"}]},` +
		`{"grade":3,"ranges":[{"name":"cpu","min":"4","max":"8"},{"name":"memory","min":"32Gi","max":"64Gi"}]},` +
		`{"grade":4,"ranges":[{"name":"cpu","min":"8","max":"16"},{"name":"memory","min":"64Gi","max":"128Gi"}]},` +
		`{"grade":5,"ranges":[{"name":"cpu","min":"16","max":"32"},{"name":"memory","min":"128Gi","max":"256Gi"}]},` +
		`{"grade":6,"ranges":[{"name":"cpu","min":"32","max":"64"},{"name":"memory","min":"256Gi","max":"512Gi"}]},` +
		`{"grade":7,"ranges":[{"name":"cpu","min":"64","max":"128"},{"name":"memory","min":"512Gi","max":"1Ti"}]},` +
		`{"grade":8,"ranges":[{"name":"cpu","min":"128","max":"9223372036854775807"},{"name":"memory","min":"1Ti","max":"9223372036854775807"}]}]`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func model(grade uint, lower, upper string) ResourceModel {
	return ResourceModel{Grade: grade, Ranges: []ResourceModelRange{{Name: "cpu", Min: resource.MustParse(lower), Max: resource.MustParse(upper)}}}
}

func TestStandardizeResourceModels_SortsAndOpensTheEnds(t *testing.T) {
	models := []ResourceModel{model(3, "2", "4"), model(1, "1", "2")}
	StandardizeResourceModels(models)
	if models[0].Grade != 1 || models[0].Ranges[0].Min.String() != "0" || models[0].Ranges[0].Max.String() != "2" ||
		models[1].Ranges[0].Max.Value() != math.MaxInt64 {
		t.Errorf("got %v", models)
	}
	StandardizeResourceModels(nil)
}

func TestPrepareCluster(t *testing.T) {
	c := &Cluster{Status: ClusterStatus{KubernetesVersion: "v1"}}
	PrepareClusterForCreate(c, true)
	if c.Generation != 1 || c.Status.KubernetesVersion != "" || len(c.Spec.ResourceModels) != 9 {
		t.Errorf("created: %+v", c)
	}
	bare := &Cluster{}
	PrepareClusterForCreate(bare, false)
	if bare.Spec.ResourceModels != nil {
		t.Error("models without the gate")
	}

	c.Status.KubernetesVersion = "v2"
	same := c.DeepCopy()
	same.Status = ClusterStatus{}
	PrepareClusterForUpdate(same, c, true)
	if diff := cmp.Diff(c, same); diff != "" {
		t.Errorf("an unchanged spec: %s", diff)
	}
	cleared := c.DeepCopy()
	cleared.Spec.ResourceModels = nil
	PrepareClusterForUpdate(cleared, c, true)
	if cleared.Generation != 2 || cleared.Spec.ResourceModels != nil {
		t.Errorf("cleared models: %+v", cleared)
	}
}

func TestCanonicalizeCluster(t *testing.T) {
	now, before := metav1.NewTime(time.Unix(100, 0)), metav1.NewTime(time.Unix(1, 0))
	c := &Cluster{Spec: ClusterSpec{Zone: "z", Taints: []corev1.Taint{
		{Key: "a", Effect: corev1.TaintEffectNoExecute},
		{Key: "b", Effect: corev1.TaintEffectNoExecute, TimeAdded: &before},
		{Key: "c", Effect: corev1.TaintEffectNoSchedule},
	}}}
	CanonicalizeCluster(c, now)
	want := ClusterSpec{Zones: []string{"z"}, Taints: []corev1.Taint{
		{Key: "a", Effect: corev1.TaintEffectNoExecute, TimeAdded: &now},
		{Key: "b", Effect: corev1.TaintEffectNoExecute, TimeAdded: &before},
		{Key: "c", Effect: corev1.TaintEffectNoSchedule},
	}}
	if diff := cmp.Diff(want, c.Spec); diff != "" {
		t.Error(diff)
	}
}
