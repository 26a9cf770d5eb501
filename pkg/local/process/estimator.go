package process

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/kubelite/ready"
	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/internal/wait"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
	"github.com/karmada-toolkit/karmada/pkg/local/membership"
	"github.com/karmada-toolkit/karmada/pkg/local/settings"
)

// estimatorTimeout bounds how long an estimator may take to be ready.
const estimatorTimeout = 30 * time.Second

// estimators starts the estimators of members.
type estimators struct {
	federation.Deps
	f        *federation.Federation
	program  string
	launcher *launcher
	certs    certs
}

// run makes sure that the estimator of a member runs, is ready, and is found by the scheduler; or, if the federation
// has none, that it does not run.
func (s *estimators) run(ctx context.Context, member string, control, info ready.Info) (err error) {
	p := process{federation.Estimator(member), s.f.Dir()}
	if !s.f.Estimators {
		if _, alive := p.running(); alive {
			return p.stop(ctx)
		}
		return nil
	}
	step := "estimate " + member
	defer progress.Begin(ctx, s.Progress, step, &err)()
	ctx, cancel := context.WithTimeoutCause(ctx, estimatorTimeout, fmt.Errorf("its estimator is not ready after %s; its log is %s", estimatorTimeout, s.f.Dir().Log(p.name)))
	defer cancel()
	err = retryEnded(func() error {
		alive, stop, err := s.start(ctx, p, member, info)
		if err != nil {
			return err
		}
		defer stop()
		if err := s.publish(alive, member, control); err != nil {
			return federation.Cause(alive, err)
		}
		return s.awaitReady(alive, step, member)
	})
	if err != nil {
		return fmt.Errorf("starting the estimator of %s: %w", member, err)
	}
	s.launcher.done(p.name)
	s.Progress.Done(step, "at "+federation.Address(s.f.Port(federation.EstimatorPort(member))))
	return nil
}

// awaitReady returns when the estimator of a member is ready.
func (s *estimators) awaitReady(alive context.Context, step, member string) error {
	url := "http://" + federation.Address(s.f.Port(federation.EstimatorHealthPort(member))) + "/readyz"
	err := wait.Until(alive, wait.Options{
		Interval: 100 * time.Millisecond, Publish: func(error) { s.Progress.Waiting(step, "the estimator to be ready") },
	}, func(ctx context.Context) error { return kube.CheckOK(ctx, http.DefaultClient, url) })
	if err != nil {
		return federation.Cause(alive, err)
	}
	return nil
}

// start starts the process unless it runs. The context that it returns ends with the process.
func (s *estimators) start(ctx context.Context, p process, member string, info ready.Info) (context.Context, context.CancelFunc, error) {
	found, running, err := s.launcher.running(ctx, p, s.args(member, info))
	if err != nil {
		return nil, nil, err
	}
	if running {
		alive, stop := p.during(ctx, found)
		return alive, stop, nil
	}
	if err := s.f.ChoosePorts(federation.EstimatorPorts(member)...); err != nil {
		return nil, nil, err
	}
	if err := s.certs.estimator(member); err != nil {
		return nil, nil, err
	}
	c, err := s.launcher.start(ctx, p, s.program, s.args(member, info))
	if err != nil {
		return nil, nil, err
	}
	alive, stop := c.during(ctx)
	return alive, stop, nil
}

// publish writes the Service by which the scheduler finds the estimator.
func (s *estimators) publish(ctx context.Context, member string, control ready.Info) error {
	_, c, err := membership.Connect(control.Kubeconfig)
	if err != nil {
		return err
	}
	applier := &apply.Applier{Client: c, Manager: membership.FieldManager}
	_, err = applier.Apply(ctx, s.service(member))
	return err
}

func (s *estimators) service(member string) client.Object {
	return components.EstimatorService(member, clusterv1alpha1.NamespaceKarmadaSystem, "localhost", int32(s.f.Port(federation.EstimatorPort(member))))
}

// remove stops the estimator of a member and removes its data, and its Service from the control plane.
func (s *estimators) remove(ctx context.Context, member string, controlPlane client.Client) error {
	dir, name := s.f.Dir(), federation.Estimator(member)
	if err := (process{name, dir}).stop(ctx); err != nil {
		return err
	}
	if err := client.IgnoreNotFound(controlPlane.Delete(ctx, s.service(member))); err != nil {
		return fmt.Errorf("removing the Service of the estimator: %w", err)
	}
	return errors.Join(os.RemoveAll(dir.Data(name)), os.RemoveAll(dir.Log(name)))
}

// args are the arguments of an estimator.
func (s *estimators) args(member string, info ready.Info) []string {
	return append(estimatorArgs(s.f, member, info), settings.Args(s.f.Settings, settings.EstimatorRole, "")...)
}

// estimatorArgs are the arguments of an estimator without the settings of the user.
func estimatorArgs(f *federation.Federation, member string, info ready.Info) []string {
	pair := filepath.Join(certDir(f.Dir()), federation.Estimator(member))
	return []string{
		settings.EstimatorRole,
		"--kubeconfig=" + info.Kubeconfig,
		"--cluster-name=" + member,
		"--bind-address=" + federation.Loopback,
		fmt.Sprintf("--server-port=%d", f.Port(federation.EstimatorPort(member))),
		"--grpc-auth-cert-file=" + pair + ".crt",
		"--grpc-auth-key-file=" + pair + ".key",
		"--grpc-client-ca-file=" + filepath.Join(certDir(f.Dir()), "ca.crt"),
		"--grpc-client-allowed-names=" + estimatorClientName,
		"--health-probe-bind-address=" + federation.Address(f.Port(federation.EstimatorHealthPort(member))),
		"--metrics-bind-address=" + federation.Address(f.Port(federation.EstimatorMetricsPort(member))),
	}
}
