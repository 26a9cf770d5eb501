//go:build integration

// Covers pkg/controlplane/aggregated.

package servers_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/aggregated"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// aggregatedServe runs the aggregated API server behind a control plane.
func aggregatedServe(t *testing.T, home *testenv.Cluster) client.Client {
	t.Helper()
	admin, err := client.New(home.Config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	ca, err := pki.NewCA(pki.CAConfig{CommonName: "ca"}, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := pki.NewLeaf(pki.LeafConfig{CommonName: "server", Hosts: []string{components.AggregatedService + ".karmada-system.svc"}}, ca, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	key, err := leaf.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := aggregated.NewOptions()
	dir := t.TempDir()
	certificate := &o.SecureServing.ServerCert.CertKey
	certificate.CertFile, certificate.KeyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for path, data := range map[string][]byte{certificate.CertFile: leaf.CertPEM(), certificate.KeyFile: key} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o.SecureServing.Listener = listener
	o.Etcd.StorageConfig.Transport.ServerList = []string{home.Info.Etcd}
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(home.Config, manager.Options{Scheme: admin.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := aggregated.Setup(t.Context(), mgr, o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("running the server: %v", err)
		}
	})
	objects := components.SystemNamespaces()
	for _, o := range components.LocalServing(components.Serving{
		AggregatedHost: "localhost", AggregatedPort: listener.Addr().(*net.TCPAddr).Port, CABundle: ca.CertPEM(), WebhookURL: "https://127.0.0.1",
	}) {
		if !strings.Contains(fmt.Sprintf("%T", o), "Webhook") {
			objects = append(objects, o)
		}
	}
	for _, o := range append(objects, components.FederationRBAC()...) {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error { return admin.List(ctx, &clusterv1alpha1.ClusterList{}) })
	t.Logf("served through the control plane after %s", time.Since(start).Round(time.Millisecond))
	return admin
}

// aggregatedJoin makes a member known to the control plane.
func aggregatedJoin(t *testing.T, admin client.Client, name string, member *testenv.Cluster) kubernetes.Interface {
	t.Helper()
	ctx := t.Context()
	in, err := kubernetes.NewForConfig(member.Config)
	if err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "impersonator", Namespace: "default"}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "impersonator"}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"users"}},
		{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"groups"}, ResourceNames: []string{"dev", "system:masters"}},
		{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{"robot"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "impersonator"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}},
	}
	_, err1 := in.CoreV1().ServiceAccounts("default").Create(ctx, account, metav1.CreateOptions{})
	_, err2 := in.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	_, err3 := in.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	token, err4 := in.CoreV1().ServiceAccounts("default").CreateToken(ctx, account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: clusterv1alpha1.NamespaceKarmadaCluster},
		Data:       map[string][]byte{"token": []byte(token.Status.Token), "caBundle": caOf(t, member.Config)},
	}
	ref := &clusterv1alpha1.LocalSecretReference{Namespace: secret.Namespace, Name: name}
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{
		SyncMode: clusterv1alpha1.Push, APIEndpoint: member.Config.Host, SecretRef: ref, ImpersonatorSecretRef: ref,
	}}
	if err := errors.Join(admin.Create(ctx, secret), admin.Create(ctx, cluster)); err != nil {
		t.Fatal(err)
	}
	return in
}

func caOf(t *testing.T, config *rest.Config) []byte {
	t.Helper()
	if err := rest.LoadTLSFiles(config); err != nil {
		t.Fatal(err)
	}
	return config.CAData
}

// testServiceAccount reads a member as an account that has rights there by its groups. An account that is seen with
// another group is refused, and so is an account of another name.
func testServiceAccount(t *testing.T, admin client.Client, inMember kubernetes.Interface, through *rest.Config) {
	ctx := t.Context()
	robots := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:serviceaccounts:default"}}
	bind := func(role string) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "robots"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: robots,
		}
	}
	_, err := inMember.RbacV1().ClusterRoleBindings().Create(ctx, bind("view"), metav1.CreateOptions{})
	if err := errors.Join(err, admin.Create(ctx, bind("alice"))); err != nil {
		t.Fatal(err)
	}
	list := func(ctx context.Context, as rest.ImpersonationConfig) error {
		config := rest.CopyConfig(through)
		config.Impersonate = as
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		_, err = c.CoreV1().Services("default").List(ctx, metav1.ListOptions{})
		return err
	}
	testenv.Eventually(t, 30*time.Second, func(ctx context.Context) error {
		return list(ctx, rest.ImpersonationConfig{UserName: "system:serviceaccount:default:robot"})
	})
	for _, tc := range []struct {
		as   rest.ImpersonationConfig
		text string
	}{
		{rest.ImpersonationConfig{UserName: "system:serviceaccount:default:other"}, `cannot impersonate resource "serviceaccounts"`},
		{rest.ImpersonationConfig{UserName: "bob", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:default"}}, `cannot impersonate resource "groups"`},
		{rest.ImpersonationConfig{UserName: "system:serviceaccount:default:robot", Groups: []string{"system:serviceaccounts:default", "ops"}}, `cannot impersonate resource "groups"`},
	} {
		if err := list(ctx, tc.as); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("as %s %v: %v", tc.as.UserName, tc.as.Groups, err)
		}
	}
}

func TestServer_BehindAControlPlane(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	all := testenv.StartAll(t, testenv.ControlPlane(), testenv.Member("m1", 0))
	home, member := all[0], all[1]
	admin := aggregatedServe(t, home)
	inMember := aggregatedJoin(t, admin, "m1", member)

	asAlice := rest.CopyConfig(home.Config)
	asAlice.Host = strings.TrimSuffix(home.Config.Host, "/") + "/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy"
	asAlice.Impersonate = rest.ImpersonationConfig{UserName: "alice", Groups: []string{"dev"}}
	alice, err := kubernetes.NewForConfig(asAlice)
	if err != nil {
		t.Fatal(err)
	}

	t.Run("a user without rights stops at the control plane, then at the member", func(t *testing.T) {
		_, err := alice.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "clusters.cluster.karmada.io") {
			t.Errorf("got %v", err)
		}
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "alice"}, Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"*"}, APIGroups: []string{clusterv1alpha1.GroupName}, Resources: []string{"clusters/proxy"}, ResourceNames: []string{"m1"}},
		}}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "alice"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "alice"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "alice"}},
		}
		if err := errors.Join(admin.Create(ctx, role), admin.Create(ctx, binding)); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, 30*time.Second, func(ctx context.Context) error {
			_, err := alice.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "alice" cannot list resource "namespaces" in API group ""`) {
				return fmt.Errorf("got %w", err)
			}
			return nil
		})
	})
	t.Run("a user with rights reads and watches the member", func(t *testing.T) {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "dev"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "dev"}},
		}
		if _, err := inMember.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, 30*time.Second, func(ctx context.Context) error {
			_, err := alice.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
			return err
		})
		events, err := alice.CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer events.Stop()
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "made"}}
		if _, err := alice.CoreV1().ConfigMaps("default").Create(ctx, made, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for e := range events.ResultChan() {
			if c, ok := e.Object.(*corev1.ConfigMap); ok && c.Name == "made" {
				break
			}
		}
		start := time.Now()
		for range 100 {
			if _, err := alice.CoreV1().Namespaces().List(ctx, metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("a list through the proxy takes %s", time.Since(start)/100)
	})
	t.Run("a ServiceAccount needs no group to be granted", func(t *testing.T) { testServiceAccount(t, admin, inMember, asAlice) })
}
