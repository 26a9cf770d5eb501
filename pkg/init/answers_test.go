package installer

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

func TestAnswers_WaitsForWhatIsNotReadyAfterAll(t *testing.T) {
	deployment := func(ready int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			Spec:   appsv1.DeploymentSpec{Replicas: new(int32(1))},
			Status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: ready},
		}
	}
	for name, tc := range map[string]struct {
		// unready is from when to when the host cluster takes it for not ready.
		from, to time.Duration
		// answers is from when on it answers; 0 is never.
		answers time.Duration
		fails   bool
	}{
		"at once":                                 {answers: time.Nanosecond},
		"ready, but not to be reached":            {fails: true},
		"it is found out that it is not ready":    {from: 20 * time.Second, to: 50 * time.Second, answers: 52 * time.Second},
		"not ready for ever":                      {to: time.Hour, fails: true},
		"ready again, and then not to be reached": {from: 5 * time.Second, to: 20 * time.Second, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				o := NewOptions()
				s := &state{Deps: Deps{Progress: progress.Discard{}, Now: time.Now}, options: &o, board: newBoard(nil, nil, "", time.Now)}
				err := s.answers(t.Context(), "https://here", []string{components.APIServer}, func(context.Context) error {
					since := time.Since(begun)
					ready := int32(1)
					if since >= tc.from && since < tc.to {
						ready = 0
					}
					s.board.view = &view{deployments: map[string]*appsv1.Deployment{components.APIServer: deployment(ready)}}
					if tc.answers > 0 && since+time.Nanosecond >= tc.answers {
						return nil
					}
					return errors.New("connection reset by peer")
				})
				if tc.fails != (err != nil) {
					t.Errorf("after %s: %v", time.Since(begun), err)
				}
				if took := time.Since(begun); took > s.limit() {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}
