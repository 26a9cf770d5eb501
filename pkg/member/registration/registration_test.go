package registration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

func TestBootstrap_HasNoSharedUser(t *testing.T) {
	objects, err := Bootstrap("https://h:1", []byte("ca"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, o := range append(objects, Limits([]string{names.ComponentUser("scheduler")})...) {
		found = append(found, strings.TrimPrefix(fmt.Sprintf("%T ", o), "*v1.")+o.GetName())
		if strings.Contains(o.GetName(), "rbac-generator") {
			t.Errorf("%s would be a user that may do anything", o.GetName())
		}
	}
	want := []string{
		"ConfigMap cluster-info",
		"Role system:karmada:bootstrap-signer-clusterinfo",
		"RoleBinding system:karmada:bootstrap-signer-clusterinfo",
		"ClusterRoleBinding system:karmada:agent-bootstrap",
		"ClusterRole system:karmada:certificatesigningrequest:autoapprover",
		"ClusterRoleBinding system:karmada:agent-autoapprove-bootstrap",
		"ClusterRole system:karmada:certificatesigningrequest:selfautoapprover",
		"ClusterRoleBinding system:karmada:agent-autoapprove-certificate-rotation",
		"ValidatingAdmissionPolicy agents.karmada.io",
		"ValidatingAdmissionPolicyBinding agents.karmada.io",
		"PriorityLevelConfiguration karmada-control-plane",
		"FlowSchema karmada-control-plane-reviews",
		"FlowSchema karmada-control-plane-leader-election",
		"FlowSchema karmada-control-plane-writes",
		"FlowSchema karmada-control-plane",
		"PriorityLevelConfiguration karmada-agents",
		"FlowSchema karmada-agents",
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestBootstrap_DescribesTheControlPlane(t *testing.T) {
	objects, err := Bootstrap("https://h:1", []byte("ca"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load([]byte(objects[0].(*corev1.ConfigMap).Data["kubeconfig"]))
	if err != nil {
		t.Fatal(err)
	}
	if c := config.Clusters[""]; len(config.Clusters) != 1 || c == nil || c.Server != "https://h:1" || string(c.CertificateAuthorityData) != "ca" {
		t.Errorf("got %+v", config.Clusters)
	}
}

// everywhere are the rules of an agent that name no object: what they give is
// narrowed down otherwise, or is the same for all agents.
var everywhere = []string{
	"clusters", "certificatesigningrequests", "resourceinterpreterwebhookconfigurations", "resourceinterpretercustomizations",
	"works", "works/status", "events",
}

func TestAgentRBAC_NamesWhatItGives(t *testing.T) {
	for _, a := range []AgentAccess{
		{Cluster: "m1", Namespace: "karmada-cluster"},
		{Cluster: "m1", Namespace: "elsewhere", Requests: []string{"m1-b", "m1-a"}},
	} {
		for _, o := range AgentRBAC(a) {
			var rules []rbacv1.PolicyRule
			switch role := o.(type) {
			case *rbacv1.ClusterRole:
				rules = role.Rules
			case *rbacv1.Role:
				rules = role.Rules
			}
			for _, r := range rules {
				for _, resource := range r.Resources {
					if len(r.ResourceNames) == 0 && !slices.Contains(everywhere, resource) {
						t.Errorf("%T %s gives %v on all %s", o, o.GetName(), r.Verbs, resource)
					}
					if strings.Contains(resource+strings.Join(r.Verbs, "")+strings.Join(r.APIGroups, ""), "*") {
						t.Errorf("%T %s has a wildcard: %v", o, o.GetName(), r)
					}
				}
				for _, name := range r.ResourceNames {
					if !strings.Contains(name, a.Cluster) && name != a.Namespace {
						t.Errorf("%T %s names %s, which is not of %s", o, o.GetName(), name, a.Cluster)
					}
				}
			}
		}
	}
}

func TestAgentRBAC_IsOfItsUserOnly(t *testing.T) {
	for _, o := range append(AgentRBAC(AgentAccess{Cluster: "m1", Namespace: "karmada-cluster"}), TombstoneRBAC("m1")...) {
		var subjects []rbacv1.Subject
		switch b := o.(type) {
		case *rbacv1.ClusterRoleBinding:
			subjects = b.Subjects
		case *rbacv1.RoleBinding:
			subjects = b.Subjects
		default:
			continue
		}
		want := []rbacv1.Subject{{Kind: "User", APIGroup: "rbac.authorization.k8s.io", Name: "system:karmada:agent:m1"}}
		if diff := cmp.Diff(want, subjects); diff != "" {
			t.Errorf("%s (-want +got)\n%s", o.GetName(), diff)
		}
	}
}

func TestAgentObjects_AreThoseOfTheRules(t *testing.T) {
	var got []string
	for _, o := range AgentObjects(AgentAccess{Cluster: "m1", Namespace: "ns"}) {
		got = append(got, client.ObjectKeyFromObject(o).String())
	}
	if diff := cmp.Diff([]string{"ns/m1", "ns/m1-impersonator", "karmada-cluster/m1", "karmada-system/karmada-agent-m1"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestToken_RoundTrip(t *testing.T) {
	want := Token{
		ID: "abcdef", Secret: "0123456789abcdef", Expires: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC),
		Usages: []string{"authentication", "signing"}, Groups: []string{"system:bootstrappers:a", "system:bootstrappers:b"},
		Description: "d", Reusable: true,
	}
	secret := TokenSecret(want)
	if secret.Namespace != "kube-system" || secret.Name != "bootstrap-token-abcdef" || secret.Type != "bootstrap.kubernetes.io/token" ||
		string(secret.Data["expiration"]) != "2026-05-01T12:00:00Z" || string(secret.Data["usage-bootstrap-signing"]) != "true" {
		t.Errorf("got %+v", secret)
	}
	got, err := TokenOf(secret)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	forever := TokenSecret(Token{ID: "abcdef", Secret: "0123456789abcdef"})
	for _, key := range []string{"expiration", "auth-extra-groups", "description"} {
		if _, ok := forever.Data[key]; ok {
			t.Errorf("a token without it has %s", key)
		}
	}
}

func TestTokenOf_Malformed(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.Secret)
		want   string
	}{
		"no id":        {func(s *corev1.Secret) { delete(s.Data, "token-id") }, "has no token-id"},
		"another name": {func(s *corev1.Secret) { s.Name = "x" }, "its name is not bootstrap-token-abcdef"},
		"no secret":    {func(s *corev1.Secret) { delete(s.Data, "token-secret") }, "has no token-secret"},
		"short secret": {func(s *corev1.Secret) { s.Data["token-secret"] = []byte("x") }, "malformed"},
		"no time":      {func(s *corev1.Secret) { s.Data["expiration"] = []byte("soon") }, `its expiration "soon" is no time`},
	} {
		t.Run(name, func(t *testing.T) {
			secret := TokenSecret(Token{ID: "abcdef", Secret: "0123456789abcdef"})
			tc.change(secret)
			if _, err := TokenOf(secret); err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "0123456789") {
				t.Errorf("got %v", err)
			}
		})
	}
}
