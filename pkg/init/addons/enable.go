package addons

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/version"
	"github.com/karmada-toolkit/karmada/internal/wait"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
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

// part is one workload of an addon.
type part struct {
	addon, workload string
	// host are the objects in the host cluster; rights and apis are those in the control plane.
	host, rights, apis []client.Object
}

// enabling is one installation of addons.
type enabling struct {
	Deps
	Request
	*hostSide
	tracker *rollout.Tracker

	mu     sync.Mutex
	result Result
}

// hostSide is the host cluster with the installation in it.
type hostSide struct {
	api    kubernetes.Interface
	client client.Client
	facts  *hostcluster.Facts
}

// Enable installs addons, or makes those that are installed as wanted, and waits until they are ready. All are tried.
// It can be run again.
func Enable(ctx context.Context, d Deps, r Request) (*Result, error) {
	names, err := r.selected("enable")
	if err != nil {
		return nil, err
	}
	e := &enabling{Deps: d, Request: r}
	if names, err = e.available(names); err != nil {
		return nil, err
	}
	if e.hostSide, err = connectHost(ctx, d.Host, r.Namespace); err != nil {
		return nil, err
	}
	parts, err := e.parts(ctx, names)
	if err != nil {
		return nil, err
	}
	e.tracker = rollout.NewTracker(e.api, r.Namespace, d.Now)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go e.tracker.Run(ctx)
	errs, limit := make([]error, len(parts)), make(chan struct{}, parallelAddons)
	var wg sync.WaitGroup
	for i := range parts {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			errs[i] = e.install(ctx, &parts[i])
		})
	}
	wg.Wait()
	for i := range parts {
		if errs[i] == nil {
			e.result.Workloads = append(e.result.Workloads, parts[i].workload)
		}
	}
	return &e.result, errors.Join(errs...)
}

// available leaves out the addons whose role does not exist. It is an error to name one.
func (e *enabling) available(names []string) ([]string, error) {
	var out []string
	for _, name := range names {
		if name != components.Search {
			out = append(out, name)
			continue
		}
		const reason = "this version has no role search yet"
		if slices.Contains(e.Addons, name) {
			return nil, fmt.Errorf("addon %s cannot be enabled: %s", name, reason)
		}
		e.note("%s is left out: %s", name, reason)
	}
	if slices.Contains(e.Addons, All) && !slices.Contains(names, components.Estimator) {
		e.note("%s is left out: name clusters with --cluster, or use --all-clusters", components.Estimator)
	}
	return out, nil
}

func (e *enabling) note(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.result.Notes = append(e.result.Notes, fmt.Sprintf(format, args...))
}

// connectHost reads the installation in a namespace of the host cluster.
func connectHost(ctx context.Context, cfg *rest.Config, namespace string) (*hostSide, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = -1, 0
	h := &hostSide{}
	var err error
	if h.api, err = kubernetes.NewForConfig(cfg); err != nil {
		return nil, fmt.Errorf("connecting to the host cluster: %w", err)
	}
	if h.client, err = client.New(cfg, client.Options{Scheme: kube.NewScheme()}); err != nil {
		return nil, fmt.Errorf("connecting to the host cluster: %w", err)
	}
	if h.facts, err = hostcluster.Gather(ctx, h.api, namespace); err != nil {
		return nil, err
	}
	if err := hostcluster.RefuseControlPlane(cfg.Host, h.api.Discovery()); err != nil {
		return nil, err
	}
	if h.facts.Namespace == nil {
		return nil, fmt.Errorf("there is no namespace %s in the host cluster: name that of the control plane with --namespace", namespace)
	}
	return h, nil
}

// parts returns what is to be installed, everything that can be checked being checked.
func (e *enabling) parts(ctx context.Context, names []string) ([]part, error) {
	cfg, err := e.config(ctx, names)
	if err != nil {
		return nil, err
	}
	var out []part
	for _, name := range names {
		switch name {
		case components.Estimator:
			estimators, err := e.estimators(ctx, cfg)
			if err != nil {
				return nil, err
			}
			out = append(out, estimators...)
		case components.Descheduler:
			e.setWorkload(cfg, name, name)
			out = append(out, part{addon: name, workload: name, host: []client.Object{components.DeschedulerDeployment(cfg)}})
		case components.MetricsAdapter:
			e.setWorkload(cfg, name, name)
			if err := e.setServerCertificate(ctx, cfg, name); err != nil {
				return nil, err
			}
			host := fmt.Sprintf("%s.%s.svc.%s", name, cfg.Namespace, cfg.Domain)
			out = append(out, part{
				addon: name, workload: name, host: components.MetricsAdapterHost(cfg),
				apis: components.MetricsAPIs(cfg.Namespace, host, 443, cfg.Certificates.CABundle()),
			})
		}
	}
	for i := range out {
		out[i].rights = components.RBACOf(e.Namespace, out[i].addon)
		if err := write.Stamp(out[i].host); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// config returns what the objects are made of, without settings of pods.
func (e *enabling) config(ctx context.Context, names []string) (*components.Config, error) {
	cfg := &components.Config{
		Namespace: e.Namespace, Domain: e.Domain, IPv6: components.IPv6(e.facts.IPv6),
		Workloads: map[string]components.Workload{}, Certificates: maps.Clone(e.facts.Certificates), Kubeconfigs: map[string][]byte{},
	}
	for _, name := range names {
		if name == components.Estimator {
			continue
		}
		secret, err := e.api.CoreV1().Secrets(e.Namespace).Get(ctx, name+"-config", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, e.missingSecret(name + "-config")
		}
		if err != nil {
			return nil, fmt.Errorf("reading the kubeconfig of %s: %w", name, err)
		}
		for _, kubeconfig := range secret.Data {
			cfg.Kubeconfigs[name] = kubeconfig
		}
	}
	if len(cfg.Certificates) == 0 {
		return nil, e.missingSecret(components.CertSecret)
	}
	for _, key := range []string{"ca.crt", "ca.key", components.EstimatorClient + ".crt", components.EstimatorClient + ".key"} {
		if len(cfg.Certificates[key]) == 0 {
			return nil, fmt.Errorf("secrets `%s` in namespace %s has no key %s; run \"%s init\" again, which adds what is missing", components.CertSecret, e.Namespace, key, e.Program)
		}
	}
	if d, err := e.api.AppsV1().Deployments(e.Namespace).Get(ctx, components.Scheduler, metav1.GetOptions{}); err == nil {
		for _, s := range d.Spec.Template.Spec.ImagePullSecrets {
			cfg.PullSecrets = append(cfg.PullSecrets, s.Name)
		}
	}
	return cfg, nil
}

func (e *enabling) missingSecret(name string) error {
	return fmt.Errorf("secrets `%s` is not found in namespace %s, please execute %s init to deploy karmada first", name, e.Namespace, e.Program)
}

// setWorkload sets the pods of a workload of an addon.
func (e *enabling) setWorkload(cfg *components.Config, addon, workload string) {
	s := e.Settings[addon]
	images, missing := config.NewImageSet(map[string]string{addon: s.Image}, e.PrivateRegistry).WithBuild(version.Get(), e.facts.Images())
	if hint := config.ImageHint(e.Program, missing); hint != "" && addon == workload {
		e.note("%s", hint)
	}
	cfg.Workloads[workload] = components.Workload{
		Image: images.Image(addon), PullPolicy: corev1.PullIfNotPresent, Replicas: s.Replicas, PriorityClass: s.PriorityClass,
	}
}

// install writes the rights of a part, its pods, and, when they are ready, its APIs. It returns when all are ready.
func (e *enabling) install(ctx context.Context, p *part) error {
	e.Progress.Begin(p.workload)
	var all apply.ChangeSet
	for _, step := range []func(context.Context, *part) (apply.ChangeSet, error){e.writeRights, e.writePods, e.writeAPIs} {
		changes, err := step(ctx, p)
		all = append(all, changes...)
		if err != nil {
			e.record(all)
			return fmt.Errorf("%s: %w", p.workload, err)
		}
	}
	e.record(all)
	e.Progress.Done(p.workload, "ready, "+write.Summary(all))
	return nil
}

func (e *enabling) record(changes apply.ChangeSet) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.result.Changes = append(e.result.Changes, changes...)
}

func (e *enabling) writeRights(ctx context.Context, p *part) (apply.ChangeSet, error) {
	return e.writeControlPlane(ctx, p.rights)
}

// writeControlPlane writes objects in the control plane, to which it connects if there are any.
func (e *enabling) writeControlPlane(ctx context.Context, objects []client.Object) (apply.ChangeSet, error) {
	if len(objects) == 0 {
		return nil, nil
	}
	cp, err := e.ControlPlane(ctx)
	if err != nil {
		return nil, err
	}
	return write.Apply(ctx, cp, objects)
}

func (e *enabling) writePods(ctx context.Context, p *part) (apply.ChangeSet, error) {
	changes, err := write.Apply(ctx, e.client, p.host)
	if err != nil {
		return changes, err
	}
	err = e.tracker.Wait(ctx, p.workload, unlimited(e.PodTimeout), func(what string) { e.Progress.Waiting(p.workload, what) })
	return changes, e.tracker.Explain(ctx, err, "--pod-timeout", e.PodTimeout, p.workload)
}

func (e *enabling) writeAPIs(ctx context.Context, p *part) (apply.ChangeSet, error) {
	changes, err := e.writeControlPlane(ctx, p.apis)
	if err != nil {
		return changes, err
	}
	for _, api := range apiNames(p.addon) {
		if err := e.awaitAPI(ctx, p.workload, api); err != nil {
			return changes, err
		}
	}
	return changes, nil
}

// awaitAPI waits until the API server serves an API.
func (e *enabling) awaitAPI(ctx context.Context, step, api string) error {
	cp, err := e.ControlPlane(ctx)
	if err != nil {
		return err
	}
	err = wait.Until(ctx, wait.Options{Timeout: unlimited(e.APITimeout), Publish: func(reason error) {
		if reason != nil {
			e.Progress.Waiting(step, fmt.Sprintf("API %s: %s", api, rollout.FirstLine(reason.Error())))
		}
	}}, func(ctx context.Context) error { return rollout.CheckAPI(ctx, cp, api) })
	switch {
	case errors.Is(err, wait.ErrTimeout):
		return fmt.Errorf("APIService %s: %w; see --apiservice-timeout", api, err)
	case err != nil:
		return fmt.Errorf("APIService %s: %w", api, err)
	}
	return nil
}

// unlimited returns the timeout of a wait, where 0 stands for none.
func unlimited(timeout time.Duration) time.Duration {
	if timeout == 0 {
		return config.Unlimited
	}
	return timeout
}

// joined returns names separated by commas.
func joined(names []string) string { return strings.Join(names, ", ") }
