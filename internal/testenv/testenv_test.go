package testenv_test

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/karmada-toolkit/karmada/internal/testenv"
)

func TestStartAll(t *testing.T) {
	clusters := testenv.StartAll(t, testenv.ControlPlane(), testenv.Member("m1", 1))
	wantNodes := []int{0, 1}
	for i, c := range clusters {
		client, err := kubernetes.NewForConfig(c.Config)
		if err != nil {
			t.Fatal(err)
		}
		nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(nodes.Items) != wantNodes[i] {
			t.Errorf("cluster %s: %v, got %d nodes, want %d", c.Info.Name, err, len(nodes.Items), wantNodes[i])
		}
	}
	if clusters[0].Info.Server == clusters[1].Info.Server {
		t.Errorf("both clusters are at %s", clusters[0].Info.Server)
	}
}

func TestStart_EndsWithTheTest(t *testing.T) {
	var c *testenv.Cluster
	t.Run("a test with a cluster", func(t *testing.T) { c = testenv.Start(t, testenv.ControlPlane()) })
	if c.Running() {
		t.Fatal("the cluster outlived its test")
	}
	if err := c.ExitError(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestLaunch_ShowsTheLogOfAFailure(t *testing.T) {
	spec := testenv.ControlPlane().With("--secure-port=-1")
	spec.DataDir = t.TempDir()
	_, err := testenv.Launch(t, spec)
	if err == nil || !strings.Contains(err.Error(), "--secure-port -1 is not a port") || !strings.Contains(err.Error(), "the process ended") {
		t.Errorf("got %v", err)
	}
}

func TestBinary_IsBuiltOnce(t *testing.T) {
	first := testenv.Binary(t, "kubelite")
	before, err := os.Stat(first)
	if err != nil {
		t.Fatal(err)
	}
	second := testenv.Binary(t, "kubelite")
	after, err := os.Stat(second)
	if err != nil || first != second || !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("got %s and %s, %v", first, second, err)
	}
}
