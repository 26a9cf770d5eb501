package capacity

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmada-toolkit/karmada/internal/build"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/operate/capacity"
)

func sample() []clusterv1alpha1.Cluster {
	m1 := clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "member1"}, Status: clusterv1alpha1.ClusterStatus{
		Conditions:  []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}},
		NodeSummary: &clusterv1alpha1.NodeSummary{TotalNum: 3, ReadyNum: 2},
		ResourceSummary: &clusterv1alpha1.ResourceSummary{
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse("96"), "memory": resource.MustParse("384Gi"), "pods": resource.MustParse("330")},
			Allocated:   corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("70Mi"), "pods": resource.MustParse("12")},
		},
	}}
	return []clusterv1alpha1.Cluster{m1, {ObjectMeta: metav1.ObjectMeta{Name: "member2"}}}
}

// graded returns a cluster with 3 nodes whose free processors are in the grade from 0 to 1, as its models say.
func graded() clusterv1alpha1.Cluster {
	c := sample()[0]
	c.Name = "member4"
	at := func(grade uint, from, to string) clusterv1alpha1.ResourceModel {
		return clusterv1alpha1.ResourceModel{Grade: grade, Ranges: []clusterv1alpha1.ResourceModelRange{{Name: "cpu", Min: resource.MustParse(from), Max: resource.MustParse(to)}}}
	}
	c.Spec.ResourceModels = []clusterv1alpha1.ResourceModel{at(0, "0", "1"), at(1, "1", "64")}
	c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{
		Allocatable:          corev1.ResourceList{"cpu": resource.MustParse("2700m"), "pods": resource.MustParse("330")},
		AllocatableModelings: []clusterv1alpha1.AllocatableModeling{{Grade: 0, Count: 3}},
	}
	return c
}

func TestPrintFree(t *testing.T) {
	var out bytes.Buffer
	if err := printFree(&out, sample()); err != nil {
		t.Fatal(err)
	}
	build.AssertGolden(t, "free", out.String())
}

// TestOutput_Documents pins the names of fields: scripts rely on them.
func TestOutput_Documents(t *testing.T) {
	var out, empty bytes.Buffer
	e := &env.Env{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: io.Discard}}
	w := &capacity.Workload{Kind: "Deployment", Namespace: "default", Name: "web", Replicas: 2, Requirements: &workv1alpha2.ReplicaRequirements{
		ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("250m")},
	}}
	for _, o := range []env.Output{"json", "yaml"} {
		if err := errors.Join(e.PrintDocument(o, newFreeDocument(sample())), e.PrintDocument(o, newFitsDocument(w, capacity.Fits(w, append(sample(), graded()), nil)))); err != nil {
			t.Fatal(err)
		}
	}
	build.AssertGolden(t, "documents", out.String())
	e.Out = &empty
	if err := e.PrintDocument("json", newFreeDocument(nil)); err != nil || !strings.Contains(empty.String(), `"clusters": []`) {
		t.Errorf("no clusters: %s, %v", empty.String(), err)
	}
}

func TestPrintFits(t *testing.T) {
	for name, w := range map[string]*capacity.Workload{
		"fits": {Requirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("250m")}}},
		"sets": {Components: []workv1alpha2.Component{{Name: "job", Replicas: 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			fits := append(capacity.Fits(w, append(sample(), graded()), nil), capacity.Fit{Cluster: "member3", Known: true, Replicas: 4, Source: capacity.Estimator})
			if err := printFits(&out, w, fits); err != nil {
				t.Fatal(err)
			}
			build.AssertGolden(t, name, out.String())
		})
	}
}
