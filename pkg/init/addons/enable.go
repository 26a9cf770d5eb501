package addons

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/phases"
	"github.com/karmada-toolkit/karmada/pkg/init/rollout"
	"github.com/karmada-toolkit/karmada/pkg/init/write"
)

// parallelAddons is how many addons are installed at the same time.
const parallelAddons = 8

// Result is what was installed.
type Result struct {
	// Workloads are the names of the Deployments that are ready.
	Workloads []string
	// Changes are what was done to the objects of both clusters, in no order.
	Changes apply.ChangeSet
	// Notes are for the user.
	Notes []string
}

// Enable installs addons, or makes those that are installed as wanted, and waits until they are ready. All are tried.
// It can be run again.
func Enable(ctx context.Context, d Deps, r Request) (*Result, error) {
	s, rows, err := prepare(ctx, &d, &r, "")
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go s.Tracker.Run(ctx)
	err = phases.Run(ctx, s, rows)
	out := &Result{Notes: s.Outcome.Notes()}
	out.Changes, _ = s.Outcome.Changes()
	for _, p := range rows {
		if s.Outcome.Done(p.Name) {
			out.Workloads = append(out.Workloads, p.Workload)
		}
	}
	return out, err
}

// prepare returns the phases that are to run, everything that can be checked being checked. pki is where the certificates of an
// export are kept.
func prepare(ctx context.Context, d *Deps, r *Request, pki string) (*phases.State, []phases.Phase, error) {
	names, err := r.selected("enable")
	if err != nil {
		return nil, nil, err
	}
	host, err := connectHost(ctx, d.Host, r.Namespace)
	if err != nil {
		return nil, nil, err
	}
	if d.Progress == nil {
		d.Progress = progress.Discard{}
	}
	s := &phases.State{
		Config: &r.Config, Host: host.Client, HostAPI: host.API, Facts: host.Facts, Connect: d.ControlPlane, Progress: progress.NewReminder(d.Progress, d.Now), Now: d.Now,
		Tracker: rollout.NewTracker(host.API, r.Namespace, d.Now, nil), Outcome: &phases.Outcome{}, TimeoutFlag: "--pod-timeout", Parallel: parallelAddons, KeepGoing: true,
	}
	if slices.Contains(r.Addons, All) && !slices.Contains(names, components.Estimator) {
		s.Outcome.Note("%s is left out: name clusters with --cluster, or use --all-clusters", components.Estimator)
	}
	p := &planner{deps: d, request: r, host: host, outcome: s.Outcome, pki: pki}
	cfg, clusters, err := p.plan(ctx, names)
	s.Given = &phases.Inputs{Config: cfg}
	return s, phases.Addons(names, clusters), err
}

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
	s, rows, err := prepare(ctx, &d, &r, filepath.Join(dir, exportPKI))
	if err != nil {
		return nil, err
	}
	out := &Result{Notes: s.Outcome.Notes()}
	var files []write.Manifest
	for _, p := range rows {
		for _, part := range []struct {
			dir     string
			objects func(*phases.Inputs) ([]client.Object, error)
		}{{exportRights, p.Rights}, {exportHost, p.Host}, {exportAPIs, p.ControlPlane}} {
			objects, err := part.objects(s.Given)
			if err != nil {
				return nil, err
			}
			if len(objects) > 0 {
				files = append(files, write.Manifest{Dir: part.dir, Name: p.Workload, Objects: objects})
			}
		}
		out.Workloads = append(out.Workloads, p.Workload)
	}
	return out, write.Files(dir, []string{exportRights, exportHost, exportAPIs}, files, howToApply(r.Namespace, files))
}

// howToApply returns the next steps for the files of an export.
func howToApply(namespace string, files []write.Manifest) string {
	var out, rollouts strings.Builder
	used := map[string]bool{}
	for _, f := range files {
		if used[f.Dir] = true; f.Dir == exportHost {
			fmt.Fprintf(&rollouts, "  kubectl -n %s rollout status deployment/%s\n", namespace, f.Name)
		}
	}
	fmt.Fprintf(&out, "How to install the addons from these files. The files in %s/ and %s/ hold private keys: keep them as such.\n", exportHost, exportPKI)
	out.WriteString("KUBECONFIG is the kubeconfig of the control plane; the other commands are for the host cluster.\n\n")
	const inControlPlane = "  kubectl --kubeconfig KUBECONFIG apply --server-side --force-conflicts -f %s/\n"
	if used[exportRights] {
		fmt.Fprintf(&out, inControlPlane, exportRights)
	}
	fmt.Fprintf(&out, "  kubectl apply --server-side --force-conflicts -f %s/\n%s", exportHost, rollouts.String())
	if used[exportAPIs] {
		fmt.Fprintf(&out, inControlPlane, exportAPIs)
	}
	return out.String()
}
