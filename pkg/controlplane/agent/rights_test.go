package agent

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

// answer is a reader whose lists have one result.
type answer struct {
	client.Reader
	err   error
	lists []client.ListOptions
}

func (a *answer) List(_ context.Context, _ client.ObjectList, options ...client.ListOption) error {
	a.lists = append(a.lists, *(&client.ListOptions{}).ApplyOptions(options))
	return a.err
}

func TestRights_Condition(t *testing.T) {
	plane := &answer{}
	r := &rights{reader: plane, cluster: "m3"}
	cluster := &clusterv1alpha1.Cluster{}
	forbidden := apierrors.NewForbidden(workv1alpha1.Resource("works"), "", errors.New("no Role"))
	for _, step := range []struct {
		name string
		err  error
		want metav1.ConditionStatus // empty: no condition
	}{
		{"it may read them", nil, ""},
		{"no answer says nothing about rights", errors.New("timeout"), ""},
		{"refused", forbidden, metav1.ConditionTrue},
		{"no answer keeps what is known", errors.New("timeout"), metav1.ConditionTrue},
		{"restored", nil, metav1.ConditionFalse},
	} {
		plane.err = step.err
		r.check(t.Context())
		got := r.conditions(cluster)
		if step.want == "" {
			if got != nil {
				t.Errorf("%s: %v", step.name, got)
			}
			continue
		}
		if len(got) != 1 || got[0].Type != clusterv1alpha1.ClusterConditionAgentRefused || got[0].Status != step.want {
			t.Fatalf("%s: %v, want %s", step.name, got, step.want)
		}
		if step.want == metav1.ConditionTrue && (!strings.Contains(got[0].Message, "karmada-es-m3") || !strings.Contains(got[0].Message, "no Role")) {
			t.Errorf("%s: message %q", step.name, got[0].Message)
		}
		cluster.Status.Conditions = got
	}
	for _, list := range plane.lists {
		if list.Namespace != "karmada-es-m3" || list.Limit != 1 {
			t.Errorf("listed %+v", list)
		}
	}
}
