package phases

import (
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karmada-toolkit/karmada/internal/kube"
)

func definition(name string, status apiextensionsv1.ConditionStatus) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{AcceptedNames: apiextensionsv1.CustomResourceDefinitionNames{Plural: name, Kind: name}, Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
			{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue},
			{Type: apiextensionsv1.Established, Status: status},
		}},
	}
}

func TestEstablishing_PushesWhatIsStuck(t *testing.T) {
	done, stuck := definition("a.example.com", apiextensionsv1.ConditionTrue), definition("b.example.com", apiextensionsv1.ConditionFalse)
	c := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(done, stuck).WithStatusSubresource(done).Build()
	now := time.Unix(0, 0)
	e := &establishing{client: c, now: func() time.Time { return now }, left: []string{done.Name, stuck.Name}, since: now}
	conditions := func(name string) int {
		t.Helper()
		got := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, got); err != nil {
			t.Fatal(err)
		}
		if pushed := len(got.Status.Conditions) == 0; pushed != (got.Status.AcceptedNames.Plural == "") {
			t.Errorf("%s is pushed by half: %v", name, got.Status)
		}
		return len(got.Status.Conditions)
	}

	if err := e.check(t.Context()); err == nil || err.Error() != stuck.Name {
		t.Errorf("one is not established: %v", err)
	}
	if conditions(stuck.Name) != 2 {
		t.Error("it is pushed at once")
	}
	now = now.Add(stuckAfter + time.Second)
	if err := e.check(t.Context()); err == nil || !strings.Contains(err.Error(), stuck.Name) {
		t.Errorf("it is still not established: %v", err)
	}
	if conditions(stuck.Name) != 0 || conditions(done.Name) != 2 {
		t.Error("what is stuck, and nothing else, is pushed")
	}
	stuck.Status = done.Status
	if err := c.Get(t.Context(), client.ObjectKey{Name: stuck.Name}, stuck); err != nil {
		t.Fatal(err)
	}
	stuck.Status = done.Status
	if err := c.Status().Update(t.Context(), stuck); err != nil {
		t.Fatal(err)
	}
	if err := e.check(t.Context()); err != nil {
		t.Errorf("all are established: %v", err)
	}
}
