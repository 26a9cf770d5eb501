package membership

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/progress"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
)

type lastReport struct {
	progress.Discard

	what string
}

func (l *lastReport) Waiting(_, what string)  { l.what = what }
func (l *lastReport) Failed(step, how string) { l.what = step + ": " + how }

func TestReporter_NamesWhatItWaitsForOnce(t *testing.T) {
	p := &lastReport{}
	Reporter(p, "register member2")("waiting for the control plane to sign")
	if p.what != "the control plane to sign" {
		t.Errorf("it waits for %q", p.what)
	}
}

func TestJoin_ReportsTheStepThatFails(t *testing.T) {
	p := &lastReport{}
	m := Member{Name: "member1", ControlPlane: t.TempDir() + "/none"}
	if err := Join(t.Context(), federation.Deps{Progress: p}, m); err == nil || p.what != "join member1: failed" {
		t.Errorf("%v, reported %q", err, p.what)
	}
	if err := Register(t.Context(), federation.Deps{Progress: p}, m, nil); err == nil || p.what != "register member1: failed" {
		t.Errorf("%v, reported %q", err, p.what)
	}
}

func TestCheckIdentity_NamesTheWayOutOfLostData(t *testing.T) {
	joined := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "member1"}, Spec: clusterv1alpha1.ClusterSpec{ID: "first"}}
	system := func(uid types.UID) client.Object {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: uid}}
	}
	build := func(objects ...client.Object) client.Client {
		return fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(objects...).Build()
	}
	m := Member{Name: "member1", Remove: "karmadactl local down --member member1 --purge"}
	for name, tc := range map[string]struct {
		clients Clients
		want    string
	}{
		"not joined":       {Clients{ControlPlane: build(), Member: build(system("second"))}, ""},
		"the same cluster": {Clients{ControlPlane: build(joined), Member: build(system("first"))}, ""},
		"its data is lost": {Clients{ControlPlane: build(joined), Member: build(system("second"))}, m.Remove},
	} {
		err := checkIdentity(t.Context(), tc.clients, m)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestAgain_OnlyOfAMemberThatLeft(t *testing.T) {
	const text = "; it had left the control plane and joined again"
	for _, tc := range []struct {
		known, belongs bool
		want           string
	}{{true, true, ""}, {false, false, ""}, {true, false, text}} {
		if got := again(Member{Known: tc.known}, tc.belongs); got != tc.want {
			t.Errorf("%+v: got %q", tc, got)
		}
	}
}
