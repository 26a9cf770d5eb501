package execution

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
)

func TestSuccesses(t *testing.T) {
	object := func(name string) appliedObject {
		return appliedObject{corev1.ObjectReference{Kind: "Deployment", Name: name, UID: types.UID(name)}, types.NamespacedName{Namespace: "default", Name: name}}
	}
	for name, tc := range map[string]struct {
		delay time.Duration
		do    func(*successes)
		want  []string
	}{
		"clusters within the delay": {successDelay, func(s *successes) {
			s.add(object("a"), "m2")
			time.Sleep(successDelay / 2)
			s.add(object("a"), "m1")
			s.add(object("a"), "m2")
		}, []string{"Normal SyncSucceed Successfully applied resource(default/a) to cluster m1, m2"}},
		"a cluster after the delay": {successDelay, func(s *successes) {
			s.add(object("a"), "m1")
			time.Sleep(successDelay + time.Millisecond)
			s.add(object("a"), "m2")
		}, []string{
			"Normal SyncSucceed Successfully applied resource(default/a) to cluster m1",
			"Normal SyncSucceed Successfully applied resource(default/a) to cluster m2",
		}},
		"two objects": {successDelay, func(s *successes) {
			s.add(object("a"), "m1")
			time.Sleep(time.Millisecond)
			s.add(object("b"), "m1")
		}, []string{
			"Normal SyncSucceed Successfully applied resource(default/a) to cluster m1",
			"Normal SyncSucceed Successfully applied resource(default/b) to cluster m1",
		}},
		"no delay": {0, func(s *successes) {
			s.add(object("a"), "m1")
			s.add(object("a"), "m1")
		}, []string{
			"Normal SyncSucceed Successfully applied resource(default/a) to cluster m1",
			"Normal SyncSucceed Successfully applied resource(default/a) to cluster m1",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				recorder := record.NewFakeRecorder(10)
				s := newSuccesses(recorder, tc.delay)
				tc.do(s)
				time.Sleep(successDelay + time.Millisecond)
				synctest.Wait()
				close(recorder.Events)
				var got []string
				for e := range recorder.Events {
					got = append(got, e)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" || len(s.pending) != 0 {
					t.Error(diff, s.pending)
				}
			})
		})
	}
}
