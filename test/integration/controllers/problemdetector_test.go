//go:build integration

// Covers pkg/controlplane/problemdetector.

package controllers_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/planetest"
)

const detectorSamples = "../../../samples/cluster-problem-detector/"

// TestDetector_RunsWithTheRightsOfItsManifests runs the role on two nodes with the identities of the manifests. One API
// server is the member and the control plane. No name server here resolves kubernetes.default.
func TestDetector_RunsWithTheRightsOfItsManifests(t *testing.T) {
	t.Parallel()
	cluster := testenv.Start(t, testenv.ControlPlane())
	c, err := client.New(cluster.Config, client.Options{Scheme: kube.NewScheme()})
	must(t, err)
	planetest.InstallClusters(t, c)
	for _, name := range []string{"member1", "member2"} {
		must(t, c.Create(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push}}))
	}
	must(t, client.IgnoreAlreadyExists(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-cluster"}})))
	applyManifest(t, c, detectorSamples+"control-plane.yaml")
	applyManifest(t, c, detectorSamples+"member.yaml")
	plane := tokenOf(t, c, cluster.Config, "karmada-cluster", "cluster-problem-detector-member1")
	there := tokenOf(t, c, cluster.Config, "kube-system", "cluster-problem-detector")

	for _, name := range []string{"n1", "n2"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		must(t, c.Create(t.Context(), node))
		must(t, planetest.ChangeStatus(t.Context(), c, node, func() {
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		}))
		runDetector(t, "--cluster-name=member1", "--host-name="+name, "--kubeconfig="+kubeconfigOf(t, there), "--karmada-kubeconfig="+kubeconfigOf(t, plane),
			"--healthz-port=0", "--coredns-detect-period=200ms", "--coredns-failure-threshold=0", "--leader-elect-retry-period=100ms")
	}
	testenv.Eventually(t, 3*time.Minute, func(ctx context.Context) error {
		got := &clusterv1alpha1.Cluster{}
		if err := c.Get(ctx, client.ObjectKey{Name: "member1"}, got); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(got.Status.Conditions, clusterv1alpha1.ServiceDomainNameResolutionReady)
		if condition == nil || condition.Status != metav1.ConditionFalse || condition.Message != "service domain name resolution is unready" {
			return fmt.Errorf("the condition is %+v", condition)
		}
		return nil
	})
	checkRights(t, plane)
}

// checkRights checks that the identity in the control plane may do nothing else.
func checkRights(t *testing.T, cfg *rest.Config) {
	t.Helper()
	c, err := client.New(cfg, client.Options{Scheme: kube.NewScheme()})
	must(t, err)
	member := func(name string) *clusterv1alpha1.Cluster {
		return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	empty := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	for name, err := range map[string]error{
		"reads another cluster":             c.Get(t.Context(), client.ObjectKey{Name: "member2"}, member("")),
		"lists clusters":                    c.List(t.Context(), &clusterv1alpha1.ClusterList{}),
		"changes its cluster":               c.Patch(t.Context(), member("member1"), empty),
		"changes another cluster":           c.Patch(t.Context(), member("member2"), empty),
		"changes another cluster's status":  c.Status().Patch(t.Context(), member("member2"), empty),
		"deletes its cluster":               c.Delete(t.Context(), member("member1")),
		"reads Secrets of the same place":   c.List(t.Context(), &corev1.SecretList{}, client.InNamespace("karmada-cluster")),
		"writes nodes of the control plane": c.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n3"}}),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// applyManifest creates the objects of a manifest.
func applyManifest(t *testing.T, c client.Client, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		obj := &unstructured.Unstructured{}
		must(t, yaml.UnmarshalStrict(document, &obj.Object))
		must(t, c.Create(t.Context(), obj, client.FieldValidation(metav1.FieldValidationStrict)))
	}
}

// tokenOf returns the configuration of a client with a token of a service account.
func tokenOf(t *testing.T, c client.Client, cfg *rest.Config, namespace, name string) *rest.Config {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	must(t, c.SubResource("token").Create(t.Context(), account, request))
	out := rest.AnonymousClientConfig(cfg)
	out.BearerToken = request.Status.Token
	return out
}

func kubeconfigOf(t *testing.T, cfg *rest.Config) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "c",
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: cfg.Host, CertificateAuthorityData: cfg.CAData, CertificateAuthority: cfg.CAFile}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"c": {Token: cfg.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c"}},
	}, path))
	return path
}

// runDetector runs the role until the test ends.
func runDetector(t *testing.T, args ...string) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(testenv.Binary(t, "karmada"), append([]string{"cluster-problem-detector"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if bytes.Contains(out.Bytes(), []byte("forbidden")) {
			t.Error("the manifests lack a right")
		}
		if t.Failed() {
			t.Logf("the log ends with\n%s", out.Bytes()[max(0, out.Len()-4000):])
		}
	})
}
