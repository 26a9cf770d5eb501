package execution

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

func TestSetInterpreted_EscapesTextOfTheMember(t *testing.T) {
	status := &workv1alpha1.WorkStatus{}
	setInterpreted(status, []*object{{trouble: trouble{reason: "Failed", message: "status is \x1b[2Jgone"}}}, time.Unix(1, 0))
	c := meta.FindStatusCondition(status.Conditions, ConditionInterpreted)
	if want := `status is \x1b[2Jgone`; c == nil || c.Message != want {
		t.Errorf("got %+v, want the message %q", c, want)
	}
}
