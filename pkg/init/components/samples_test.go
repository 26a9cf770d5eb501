package components

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

func TestSampleEstimator_HasTheRightsAndFlagsOfTheAddon(t *testing.T) {
	data, err := os.ReadFile("../../../samples/estimator/estimator.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	var deployment appsv1.Deployment
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		switch {
		case strings.Contains(document, "kind: ClusterRole\nmetadata"):
			err = yaml.UnmarshalStrict([]byte(document), &role)
		case strings.Contains(document, "kind: Deployment\n"):
			err = yaml.UnmarshalStrict([]byte(document), &deployment)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(EstimatorRules(), role.Rules); diff != "" {
		t.Error(diff)
	}
	objects := EstimatorHost(sampleAddons(), "MEMBER")
	addon := objects[len(objects)-1].(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Command
	for _, flag := range deployment.Spec.Template.Spec.Containers[0].Command {
		if !strings.Contains(strings.Join(addon, "\n")+"\n", flag+"\n") {
			t.Errorf("the addon does not have %s", flag)
		}
	}
}
