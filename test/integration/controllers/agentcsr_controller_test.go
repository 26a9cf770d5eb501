//go:build integration

// Covers pkg/controlplane/controllers/agentcsr.

package controllers_test

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
	"github.com/karmada-toolkit/karmada/pkg/member/registration/agentcert"
)

// requestOutcome waits for the answer to a request.
func requestOutcome(ctx context.Context, c client.Reader, name string) (string, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, csr); err != nil {
		return "", err
	}
	for _, condition := range csr.Status.Conditions {
		return string(condition.Type) + " " + condition.Reason, nil
	}
	return "", errors.New("no answer")
}

// TestRegistration has one control plane for clusters that have nothing to do with one another.
func TestRegistration(t *testing.T) {
	t.Parallel()
	p := startAgentPlane(t)
	for name, test := range map[string]func(*testing.T){
		"requests that are approved, and others":         p.approves,
		"a cluster waits for an earlier one of its name": p.waitsForAnEarlierCluster,
		"rights are restored":                            p.restoresRights,
		"an agent loses its rights with its cluster":     p.takesRightsBack,
		"a request describes the cluster":                p.describesTheCluster,
		"a token ends with its cluster":                  p.endsToken,
		"the loser of a race for a name keeps its token": p.leavesTokenToLoser,
		"a token is good for one of two names at a time": p.acceptsOneOfTwoNames,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

func (p *agentPlane) approves(t *testing.T) {
	agent := p.mustEnrol(t, "m1", "id-1")
	p.mustEnrol(t, "m2", "id-2")
	push := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "push"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push, ID: "id-p"}}
	if err := p.admin.Create(t.Context(), push); err != nil {
		t.Fatal(err)
	}
	token := p.token(t)
	t.Run("whoever has nothing but a token", func(t *testing.T) { p.answersTokens(t, token) })
	t.Run("an agent", func(t *testing.T) { p.answersAgents(t, agent) })
	t.Run("a token is good for one name", func(t *testing.T) {
		one := p.token(t)
		if _, err := p.enrol(t, one, "m3", "id-3"); err != nil {
			t.Fatal(err)
		}
		if _, err := p.enrol(t, one, "m4", "id-4"); err == nil || !strings.Contains(err.Error(), `was used to register cluster "m3"`) {
			t.Errorf("got %v", err)
		}
		again, err := p.enrol(t, one, "m3", "id-3")
		if err != nil || again.New {
			t.Errorf("the same cluster, again: %v, new %v", err, again != nil && again.New)
		}
		if _, err := p.enrol(t, p.token(t), "m3", "id-x"); err == nil || !strings.Contains(err.Error(), "is taken by another cluster") {
			t.Errorf("another cluster of the name: %v", err)
		}
	})
	t.Run("a reusable token is good for many", func(t *testing.T) {
		many := p.token(t, func(t *registration.Token) { t.Reusable = true })
		for _, name := range []string{"n1", "n2"} {
			if _, err := p.enrol(t, many, name, "id-"+name); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("a cluster has one name, and the second is refused before its token is used", func(t *testing.T) {
		token := p.token(t)
		if _, err := p.enrol(t, token, "alias", "id-1"); err == nil || !strings.Contains(err.Error(), "under another name") {
			t.Errorf("got %v", err)
		}
		if _, err := p.enrol(t, token, "alias2", "id-alias2"); err != nil {
			t.Errorf("the token was used up: %v", err)
		}
		testenv.Eventually(t, 30*time.Second, func(ctx context.Context) error {
			err := p.admin.Get(ctx, client.ObjectKey{Name: "alias"}, &clusterv1alpha1.Cluster{})
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
	})
	t.Run("what a token asks for without success leaves nothing", func(t *testing.T) {
		clusters := &clusterv1alpha1.ClusterList{}
		if err := p.admin.List(t.Context(), clusters); err != nil {
			t.Fatal(err)
		}
		for i := range clusters.Items {
			if name := clusters.Items[i].Name; strings.HasPrefix(name, "bad") || name == "rbac-generator" {
				t.Errorf("cluster %q was registered", name)
			}
		}
	})
}

// answersTokens makes requests with a token. An empty answer means that nobody
// answers.
func (p *agentPlane) answersTokens(t *testing.T, token registration.Token) {
	t.Helper()
	agent := func(name string) pkix.Name { return agentcert.Subject(name) }
	type change = func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequestSpec)
	cases := map[string]struct {
		subject pkix.Name
		change  change
		want    string
	}{
		"the shared user of others":               {agent("rbac-generator"), nil, "Denied ReservedName"},
		"a name that shares a Secret":             {agent("m1-impersonator"), nil, "Denied ReservedName"},
		"a name that is none":                     {agent("BAD_NAME"), nil, "Denied InvalidName"},
		"another cluster's name":                  {agent("m1"), nil, "Denied NameTaken"},
		"the name of a cluster that is pushed to": {agent("push"), nil, "Denied NameTaken"},
		"an administrator":                        {pkix.Name{CommonName: "system:admin", Organization: []string{"system:masters"}}, nil, ""},
		"a further group":                         {pkix.Name{CommonName: "system:karmada:agent:bad1", Organization: []string{"system:karmada:agents", "system:masters"}}, nil, ""},
		"another group":                           {pkix.Name{CommonName: "system:karmada:agent:bad2", Organization: []string{"system:masters"}}, nil, ""},
		"no group":                                {pkix.Name{CommonName: "system:karmada:agent:bad3"}, nil, ""},
		"more in the subject":                     {pkix.Name{CommonName: "system:karmada:agent:bad4", Organization: []string{"system:karmada:agents"}, OrganizationalUnit: []string{"x"}}, nil, ""},
		"a DNS name": {agent("bad5"), func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
			r.DNSNames = []string{"karmada-apiserver"}
		}, ""},
		"a URI": {agent("bad6"), func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
			r.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}}
		}, ""},
		"a server's certificate": {agent("bad7"), func(_ *x509.CertificateRequest, s *certificatesv1.CertificateSigningRequestSpec) {
			s.Usages = append(s.Usages, certificatesv1.UsageServerAuth)
		}, ""},
		"no client's certificate": {agent("bad8"), func(_ *x509.CertificateRequest, s *certificatesv1.CertificateSigningRequestSpec) {
			s.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature}
		}, ""},
		"another signer": {agent("bad9"), func(_ *x509.CertificateRequest, s *certificatesv1.CertificateSigningRequestSpec) {
			s.SignerName = "example.com/any"
		}, ""},
	}
	c := p.asToken(t, token)
	i := 0
	for name, tc := range cases {
		i++
		csr := certificateRequest(t, fmt.Sprintf("try-%d", i), tc.subject)
		if tc.change != nil {
			csr = certificateRequest(t, csr.Name, tc.subject, tc.change)
		}
		if err := c.Create(t.Context(), csr); err != nil {
			if tc.want == "" {
				continue // the API server itself refuses
			}
			t.Fatalf("%s: %v", name, err)
		}
		p.expect(t, name, csr.Name, tc.want)
	}
}

// expect waits for an answer; an empty one must not come.
func (p *agentPlane) expect(t *testing.T, what, csr, want string) {
	t.Helper()
	if want == "" {
		// Later requests that are answered show that this one had its turn; see below.
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if got, err := requestOutcome(ctx, p.admin, csr); err == nil {
				t.Errorf("%s: answered %q", what, got)
			}
		})
		return
	}
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		got, err := requestOutcome(ctx, p.admin, csr)
		if err == nil && got != want {
			return fmt.Errorf("%s: answered %q instead of %q", what, got, want)
		}
		return err
	})
}

// answersAgents makes requests as an agent.
func (p *agentPlane) answersAgents(t *testing.T, agent *member.Identity) {
	t.Helper()
	for name, tc := range map[string]struct{ cluster, want string }{
		"own-renewal":     {"m1", "Approved AutoApproved"},
		"foreign-cluster": {"m2", ""},
		"new-cluster":     {"bad10", ""},
	} {
		csr := certificateRequest(t, name, agentcert.Subject(tc.cluster))
		if err := agent.Client.Create(t.Context(), csr); err != nil {
			t.Fatal(err)
		}
		p.expect(t, name, name, tc.want)
	}
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		csr := &certificatesv1.CertificateSigningRequest{}
		if err := agent.Client.Get(ctx, client.ObjectKey{Name: "own-renewal"}, csr); err != nil {
			return err
		}
		if len(csr.Status.Certificate) == 0 {
			return errors.New("not signed")
		}
		return nil
	})
	err := agent.Client.Get(t.Context(), client.ObjectKey{Name: "try-1"}, &certificatesv1.CertificateSigningRequest{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("it may read the requests of others: %v", err)
	}
}

func (p *agentPlane) waitsForAnEarlierCluster(t *testing.T) {
	p.mustEnrol(t, "earlier", "id-earlier")
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "earlier"}}
	hold := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["test/hold"]}}`))
	if err := errors.Join(p.admin.Patch(t.Context(), c, hold), p.admin.Delete(t.Context(), c)); err != nil {
		t.Fatal(err)
	}
	go func() {
		if p.refused(t.Context(), agentcert.ReasonBeingRemoved) {
			_ = p.admin.Patch(t.Context(), c, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
		}
	}()
	next, err := p.enrol(t, p.token(t), "earlier", "id-earlier-2")
	if err != nil || !next.New {
		t.Errorf("got %+v, %v", next, err)
	}
}

// refused waits until a request is refused for a reason.
func (p *agentPlane) refused(ctx context.Context, reason string) bool {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		list := &certificatesv1.CertificateSigningRequestList{}
		if err := p.admin.List(ctx, list); err != nil {
			continue
		}
		for i := range list.Items {
			for _, c := range list.Items[i].Status.Conditions {
				if c.Reason == reason {
					return true
				}
			}
		}
	}
}

func (p *agentPlane) restoresRights(t *testing.T) {
	agent := p.mustEnrol(t, "restored", "id-restored")
	space := names.ExecutionNamespace("restored")
	testenv.Eventually(t, 30*time.Second, func(ctx context.Context) error {
		return agent.Client.List(ctx, &workv1alpha1.WorkList{}, client.InNamespace(space))
	})
	cluster, work := metav1.ObjectMeta{Name: names.AgentRole("restored")}, metav1.ObjectMeta{Namespace: space, Name: names.AgentWorkRole("restored")}
	for _, obj := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: cluster}, &rbacv1.ClusterRoleBinding{ObjectMeta: cluster},
		&rbacv1.Role{ObjectMeta: work}, &rbacv1.RoleBinding{ObjectMeta: work},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: names.CredentialsSecret("restored")}},
	} {
		p.must(t, p.admin.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
		before := obj.GetUID()
		p.must(t, p.admin.Delete(t.Context(), obj))
		testenv.Eventually(t, 30*time.Second, func(ctx context.Context) error {
			if err := p.admin.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
				return err
			}
			if obj.GetUID() == before {
				return fmt.Errorf("%T %s is not deleted", obj, obj.GetName())
			}
			return nil
		})
	}
	testenv.Eventually(t, 30*time.Second, func(ctx context.Context) error {
		return errors.Join(agent.Client.Get(ctx, client.ObjectKey{Name: "restored"}, &clusterv1alpha1.Cluster{}),
			agent.Client.List(ctx, &workv1alpha1.WorkList{}, client.InNamespace(space)))
	})
}
