package addons

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/pkg/init/write"
)

// The directories of an export, in the order in which they are applied.
const (
	exportRights = "1-control-plane"
	exportHost   = "2-host"
	exportAPIs   = "3-control-plane"
	exportPKI    = "pki"
)

// Export checks what Enable does, and writes the objects of addons to files in dir instead of applying them. Running it again
// keeps the certificates.
func Export(ctx context.Context, d Deps, r Request, dir string) (*Result, error) {
	o, parts, _, err := prepare(ctx, &d, &r, filepath.Join(dir, exportPKI))
	if err != nil {
		return nil, err
	}
	for _, sub := range []string{exportRights, exportHost, exportAPIs} {
		if err := os.RemoveAll(filepath.Join(dir, sub)); err != nil {
			return nil, fmt.Errorf("writing to %s: %w", dir, err)
		}
	}
	for _, p := range parts {
		for sub, objects := range map[string][]client.Object{exportRights: p.rights, exportHost: p.host, exportAPIs: p.apis} {
			if len(objects) == 0 {
				continue
			}
			text, err := write.Encode(objects)
			if err != nil {
				return nil, err
			}
			path := filepath.Join(dir, sub, p.workload+".yaml")
			if err := pki.WriteFile(path, text, 0o600); err != nil {
				return nil, fmt.Errorf("writing %s: %w", path, err)
			}
		}
		o.result.Workloads = append(o.result.Workloads, p.workload)
	}
	path := filepath.Join(dir, "README.txt")
	if err := pki.WriteFile(path, []byte(howToApply(&r, parts)), 0o644); err != nil {
		return nil, fmt.Errorf("writing %s: %w", path, err)
	}
	return &o.result, nil
}

// howToApply returns the next steps for the files of an export.
func howToApply(r *Request, parts []part) string {
	var rights, apis bool
	var rollouts strings.Builder
	for _, p := range parts {
		rights, apis = rights || len(p.rights) > 0, apis || len(p.apis) > 0
		fmt.Fprintf(&rollouts, "  kubectl -n %s rollout status deployment/%s\n", r.Namespace, p.workload)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "How to install the addons from these files. The files in %s/ and %s/ hold private keys: keep them as such.\n", exportHost, exportPKI)
	out.WriteString("KUBECONFIG is the kubeconfig of the control plane; the other commands are for the host cluster.\n\n")
	const inControlPlane = "  kubectl --kubeconfig KUBECONFIG apply --server-side --force-conflicts -f %s/\n"
	if rights {
		fmt.Fprintf(&out, inControlPlane, exportRights)
	}
	fmt.Fprintf(&out, "  kubectl apply --server-side --force-conflicts -f %s/\n%s", exportHost, rollouts.String())
	if apis {
		fmt.Fprintf(&out, inControlPlane, exportAPIs)
	}
	return out.String()
}

// keptCertificate reads the certificate of a workload that an earlier export made, if there is one.
func (p *planner) keptCertificate(workload string) error {
	for _, end := range []string{".crt", ".key"} {
		data, err := os.ReadFile(filepath.Join(p.pki, workload+end))
		if err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("reading the certificate of %s: %w", workload, err)
		}
		p.cfg.Certificates[workload+end] = data
	}
	return nil
}

// keepCertificate writes the certificate of a workload for the next export.
func (p *planner) keepCertificate(workload string) error {
	for _, end := range []string{".crt", ".key"} {
		if err := pki.WriteFile(filepath.Join(p.pki, workload+end), p.cfg.Certificates[workload+end], 0o600); err != nil {
			return fmt.Errorf("writing the certificate of %s: %w", workload, err)
		}
	}
	return nil
}
