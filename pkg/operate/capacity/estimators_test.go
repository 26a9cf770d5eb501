package capacity

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karmada-toolkit/karmada/internal/forward"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
)

func TestWithCertificates(t *testing.T) {
	for name, below := range map[string]string{"as init writes them": "pki", "as local up writes them": "karmada/pki"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			kubeconfig, base := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, below)
			if err := os.MkdirAll(base, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{"ca.crt", "scheduler-estimator-client.crt"} {
				if err := os.WriteFile(filepath.Join(base, file), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := WithCertificates(NewEstimatorOptions(), kubeconfig); got.CAFile != "" {
				t.Errorf("without a key: %+v", got)
			}
			if err := os.WriteFile(filepath.Join(base, "scheduler-estimator-client.key"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			got := WithCertificates(NewEstimatorOptions(), kubeconfig)
			want := []string{filepath.Join(base, "ca.crt"), filepath.Join(base, "scheduler-estimator-client.crt"), filepath.Join(base, "scheduler-estimator-client.key")}
			if diff := cmp.Diff(want, []string{got.CAFile, got.CertFile, got.KeyFile}); diff != "" {
				t.Error(diff)
			}
			named := NewEstimatorOptions()
			named.CAFile = "other.crt"
			if got := WithCertificates(named, kubeconfig); got.CAFile != "other.crt" || got.CertFile != "" {
				t.Errorf("with a flag: %+v", got)
			}
			insecure := NewEstimatorOptions()
			insecure.InsecureSkipVerify = true
			if got := WithCertificates(insecure, kubeconfig); got.CAFile != "" {
				t.Errorf("without checks: %+v", got)
			}
		})
	}
	if got := WithCertificates(NewEstimatorOptions(), ""); got.CAFile != "" {
		t.Errorf("without a kubeconfig: %+v", got)
	}
}

func TestEstimates_Problems(t *testing.T) {
	clusters := []clusterv1alpha1.Cluster{cluster("dead", nil, nil), cluster("fine", nil, nil), cluster("none", nil, nil)}
	answers := Estimates{"dead": core.Estimate{Err: "Unavailable: connection refused"}, "fine": core.Estimate{Replicas: 1}}
	const advice = `estimators that "addons enable" installed run in the host cluster: name its kubeconfig with --host-kubeconfig, or its context with --host-context; a local federation gets them with "local up --estimators"`
	encrypted := EstimatorOptions{CAFile: "ca.crt"}
	want := []string{
		`the estimator of cluster "dead" does not answer, its status counts: Unavailable: connection refused`,
		`no estimator of cluster "none" is found from this machine, the status of the cluster counts`, advice,
	}
	if diff := cmp.Diff(want, answers.Problems(clusters, encrypted)); diff != "" {
		t.Error(diff)
	}
	const certificates = "no certificates are beside the kubeconfig: if the estimators require them, give --scheduler-estimator-ca-file, --scheduler-estimator-cert-file and --scheduler-estimator-key-file"
	if diff := cmp.Diff(append(want, certificates), answers.Problems(clusters, EstimatorOptions{})); diff != "" {
		t.Error(diff)
	}
	encrypted.Dial = (&forward.Host{}).Dial
	want = []string{want[0], `no estimator of cluster "none" is found in the host cluster, the status of the cluster counts`}
	if diff := cmp.Diff(want, answers.Problems(clusters, encrypted)); diff != "" {
		t.Error(diff)
	}
}

func TestCallEstimators_MissingFiles(t *testing.T) {
	o := NewEstimatorOptions()
	o.CertFile, o.KeyFile = "/missing/client.crt", "/missing/client.key"
	_, err := CallEstimators(t.Context(), o, &Workload{}, nil, nil)
	for _, want := range []string{"--scheduler-estimator-cert-file: there is no file /missing/client.crt", "--scheduler-estimator-key-file: there is no file /missing/client.key"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err != nil && strings.Contains(err.Error(), "ca-file") {
		t.Errorf("a flag without a value is reported: %v", err)
	}
}
