//go:build integration

package phases

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ssa "github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/credentials"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
)

func TestWebhooks_DeletesWarningsOfAnEarlierVersion(t *testing.T) {
	_, cp := emptied(t)
	o := config.New()
	run := func() ssa.ChangeSet {
		s := &State{
			Config: &o, Facts: &hostcluster.Facts{}, Progress: progress.NewReminder(progress.Discard{}, time.Now), Now: time.Now,
			Outcome: &Outcome{}, credentials: &credentials.Credentials{Data: map[string][]byte{}}, Connect: func(context.Context) (client.Client, error) { return cp, nil },
		}
		i := slices.IndexFunc(All(), func(p Phase) bool { return p.Name == Webhooks })
		if _, err := All()[i].Apply(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		changes, _ := s.Outcome.Changes()
		return changes
	}
	run()
	plant := func(name string, labels map[string]string) {
		meta := metav1.ObjectMeta{Name: name, Labels: labels}
		for _, o := range []client.Object{
			&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
						Rule:       admissionregistrationv1.Rule{APIGroups: []string{"remedy.karmada.io"}, APIVersions: []string{"*"}, Resources: []string{"remedies"}},
					},
				}}},
				Validations: []admissionregistrationv1.Validation{{Expression: "false"}},
			}},
			&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn},
			}},
		} {
			if err := cp.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	system := names.SystemLabels()
	plant("no-effect-remedies.remedy.karmada.io", system)
	plant("no-effect-mine", nil)
	plant("mine", system)
	var deleted []string
	for _, c := range run() {
		if c.Action != ssa.Unchanged {
			deleted = append(deleted, string(c.Action)+" "+c.Kind+" "+c.Name)
		}
	}
	want := []string{
		"deleted ValidatingAdmissionPolicyBinding no-effect-remedies.remedy.karmada.io",
		"deleted ValidatingAdmissionPolicy no-effect-remedies.remedy.karmada.io",
	}
	if diff := cmp.Diff(want, deleted); diff != "" {
		t.Errorf("the second run: %s", diff)
	}
	if third := run(); third.Changed() {
		t.Errorf("the third run: %v", third)
	}
}
