package kubelite_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/karmada-toolkit/karmada/internal/testenv"
)

// TestInotify_NoInstances counts after a certificate was signed: then every component has started.
func TestInotify_NoInstances(t *testing.T) {
	for _, spec := range []testenv.Spec{testenv.ControlPlane(), testenv.Member("m1", 1)} {
		t.Run(spec.Name, func(t *testing.T) {
			t.Parallel()
			c := testenv.Start(t, spec)
			client := clientOf(t, c)
			certificateRequest(t, client, "jane", x509.CertificateRequest{Subject: pkix.Name{CommonName: "jane"}}, certificatesv1.CertificateSigningRequestSpec{
				SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
			})
			answered(t, client, "jane")
			if n := inotifyInstances(t, c.Info.PID); n != 0 {
				t.Errorf("the process has %d inotify instances, want none: a user has 128 by default", n)
			}
		})
	}
}

func inotifyInstances(t *testing.T, pid int) (n int) {
	t.Helper()
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if target, err := os.Readlink(filepath.Join(dir, entry.Name())); err == nil && target == "anon_inode:inotify" {
			n++
		}
	}
	return n
}
