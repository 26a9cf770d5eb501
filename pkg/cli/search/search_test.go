package search

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/karmada-toolkit/karmada/internal/build"
)

func TestKubeconfig(t *testing.T) {
	of := clientcmdapi.NewConfig()
	of.CurrentContext = "karmada-apiserver"
	of.Clusters["plane"] = &clientcmdapi.Cluster{Server: "https://10.0.0.1:5443", CertificateAuthorityData: []byte("ca")}
	of.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: "secret"}
	of.Contexts["karmada-apiserver"] = &clientcmdapi.Context{Cluster: "plane", AuthInfo: "admin", Namespace: "team"}
	out, err := kubeconfig(of, []string{"m2", "m1"})
	if err != nil {
		t.Fatal(err)
	}
	data, err := clientcmd.Write(*out)
	if err != nil {
		t.Fatal(err)
	}
	build.AssertGolden(t, "kubeconfig", string(data))
	of.CurrentContext = "other"
	if _, err := kubeconfig(of, nil); err == nil || !strings.Contains(err.Error(), `context "other"`) {
		t.Errorf("got %v", err)
	}
}
