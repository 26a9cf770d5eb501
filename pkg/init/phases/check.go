package phases

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// Check is the phase that checks the whole control plane.
const Check = "check"

// checkLimit is how long the control plane may take to accept a policy once all
// its parts are ready.
const checkLimit = 30 * time.Second

func check() Phase {
	return Phase{
		Name: Check, Doc: "See that the control plane accepts a policy",
		Needs: []string{
			Etcd, CRDs, RBAC, Webhooks, AggregatedAPI, KubeControllerManager, Scheduler, ControllerManager, Webhook, BootstrapToken, Kubeconfig,
		},
		run: runCheck,
	}
}

// runCheck verifies that the API server reaches the webhooks and accepts a policy.
func runCheck(ctx context.Context, s *State, p Phase) error {
	cp, err := s.ControlPlane()
	if err != nil {
		return err
	}
	unready := func() string { return s.Tracker.Unready([]string{components.APIServer, components.Webhook}) }
	err = s.waitAfterReady(ctx, checkLimit, p.Name, "the control plane to accept a policy", unready, func(ctx context.Context) error {
		policy := &policyv1alpha1.PropagationPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "karmada-init-check"},
			Spec: policyv1alpha1.PropagationSpec{
				ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Name: "karmada-init-check"}},
			},
		}
		err := cp.Create(ctx, policy, client.DryRunAll)
		if meta.IsNoMatchError(err) {
			return fmt.Errorf("the APIs of the federation are not served yet: %w", err)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("the control plane does not accept a policy: %w", err)
	}
	s.Progress.Done(p.Name, "a policy is accepted")
	return nil
}
