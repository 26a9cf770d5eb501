package execution

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

// ConditionInterpreted is a condition of Works that is False while the rules for
// the status or the health of an object fail, and absent otherwise: the event is
// gone after an hour, and the health Unknown does not say why.
const ConditionInterpreted = "Interpreted"

// trouble is a failure of the interpreter.
type trouble struct {
	// reason is that of the event.
	reason, message string
}

// setInterpreted sets or removes the condition. It names the first failure.
func setInterpreted(status *workv1alpha1.WorkStatus, objects []*object, now time.Time) {
	var first trouble
	failed := 0
	for _, o := range objects {
		if o.trouble == (trouble{}) {
			continue
		}
		if failed++; failed == 1 {
			first = o.trouble
		}
	}
	if failed == 0 {
		meta.RemoveStatusCondition(&status.Conditions, ConditionInterpreted)
		return
	}
	if failed > 1 {
		first.message += fmt.Sprintf(" %d more failed.", failed-1)
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: ConditionInterpreted, Status: metav1.ConditionFalse, Reason: first.reason, Message: plaintext.Escape(first.message),
		LastTransitionTime: metav1.NewTime(now),
	})
}
