//go:build integration

package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
	"github.com/karmada-toolkit/karmada/pkg/member/registration/agentcert"
)

// remove deletes a cluster and waits until its agent has lost its rights.
func (p *agentPlane) remove(t *testing.T, i *member.Identity) {
	t.Helper()
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: i.Cluster}}
	p.must(t, p.admin.Delete(t.Context(), cluster))
	testenv.Eventually(t, 30*time.Second, func(ctx context.Context) error {
		if err := p.admin.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the cluster is there: %w", err)
		}
		return denied(ctx, i)
	})
}

// denied returns an error while the control plane answers an agent.
func denied(ctx context.Context, i *member.Identity) error {
	err := i.Client.Get(ctx, client.ObjectKey{Name: i.Cluster}, &clusterv1alpha1.Cluster{})
	if err == nil || !strings.Contains(err.Error(), "forbidden") {
		return fmt.Errorf("it still gets an answer: %w", err)
	}
	return nil
}

// endsToken: a token that registered a cluster is of no use once the
// cluster was deleted, so that its holder cannot give the old certificate its rights
// back.
func (p *agentPlane) endsToken(t *testing.T) {
	token := p.token(t)
	old, err := p.enrol(t, token, "deleted", "id-deleted")
	p.must(t, err)
	// While the cluster is there its own token works again.
	again, err := p.enrol(t, token, "deleted", "id-deleted")
	if err != nil || again.New {
		t.Fatalf("again: %v", err)
	}
	// The API server may know the token for some seconds after it was deleted: the
	// request is made before, and the approver must not answer from what it knew.
	c := p.asToken(t, token)
	p.remove(t, old)
	for name, cluster := range map[string]string{"revive": "deleted", "other": "after-deletion"} {
		csr := certificateRequest(t, name, agentcert.Subject(cluster))
		if err := c.Create(t.Context(), csr); err != nil {
			if !apierrors.IsUnauthorized(err) {
				t.Errorf("%s: %v", name, err)
			}
			continue // the token is gone already
		}
		testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
			got, err := requestOutcome(ctx, p.admin, name)
			if err == nil && !strings.HasPrefix(got, "Denied Token") {
				return fmt.Errorf("%s: answered %q", name, got)
			}
			return err
		})
	}
	secret := &corev1.Secret{}
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		err := p.admin.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: registration.TokenSecretName(token.ID)}, secret)
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the token is there: %w", err)
		}
		return nil
	})
	if err := denied(t.Context(), old); err != nil {
		t.Errorf("the old certificate is alive: %v", err)
	}
	clusters := &clusterv1alpha1.ClusterList{}
	p.must(t, p.admin.List(t.Context(), clusters))
	for i := range clusters.Items {
		if name := clusters.Items[i].Name; name == "deleted" || name == "after-deletion" {
			t.Errorf("cluster %q is there", name)
		}
	}
}

// leavesTokenToLoser: two clusters ask for one name at the same time. One
// gets it; the other's token is good for another name.
func (p *agentPlane) leavesTokenToLoser(t *testing.T) {
	for round := range 5 {
		name := fmt.Sprintf("race%d", round)
		tokens := []registration.Token{p.token(t), p.token(t)}
		errs := make([]error, 2)
		var wg sync.WaitGroup
		for i := range tokens {
			wg.Go(func() { _, errs[i] = p.enrol(t, tokens[i], name, fmt.Sprintf("id-race-%d-%d", round, i)) })
		}
		wg.Wait()
		loser := 0
		if errs[0] == nil {
			loser = 1
		}
		if errs[loser] == nil || errs[1-loser] != nil || !strings.Contains(errs[loser].Error(), "taken") {
			t.Fatalf("round %d: %v", round, errs)
		}
		if _, err := p.enrol(t, tokens[loser], name+"-b", fmt.Sprintf("id-race-%d-%d", round, loser)); err != nil {
			t.Errorf("round %d: the loser's token: %v", round, err)
		}
	}
}

// acceptsOneOfTwoNames: one token, two names at the same time.
func (p *agentPlane) acceptsOneOfTwoNames(t *testing.T) {
	for round := range 5 {
		token := p.token(t)
		errs := make([]error, 2)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				_, errs[i] = p.enrol(t, token, fmt.Sprintf("either%d-%d", round, i), fmt.Sprintf("id-either-%d-%d", round, i))
			})
		}
		wg.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Errorf("round %d: %v", round, errors.Join(errs...))
		}
	}
}
