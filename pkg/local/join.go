package local

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kubelite/ready"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

// join makes sure that a member belongs to the federation and waits until it is
// Ready.
func (s *starter) join(ctx context.Context, name string, control, info ready.Info) error {
	step := "join " + name
	s.Progress.Begin(step)
	cpConfig, cp, err := connect(control.Kubeconfig)
	if err != nil {
		return err
	}
	cfg, m, err := connect(info.Kubeconfig)
	if err != nil {
		return err
	}
	d := member.Deps{
		Program: s.Program, ControlPlane: cp, Member: m,
		Report: func(line string) { s.Progress.Waiting(step, line) },
	}
	err = cp.Get(ctx, client.ObjectKey{Name: name}, &clusterv1alpha1.Cluster{})
	if apierrors.IsNotFound(err) {
		_, err = member.Join(ctx, d, member.JoinRequest{
			Name: name, Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Config: cfg,
		})
	}
	if err != nil {
		return fmt.Errorf("joining %s: %w", name, err)
	}
	problem, err := member.WaitReady(ctx, d, name, joinLimit)
	if err != nil {
		return fmt.Errorf("joining %s: %w", name, err)
	}
	if problem != "" {
		return fmt.Errorf("joining %s: it is not Ready after %s: %s; the log of the control plane is %s", name, joinLimit, problem, s.f.log(rolesProcess))
	}
	problem, err = member.WaitReachable(ctx, cpConfig, name, d.Report, joinLimit)
	if err != nil {
		return fmt.Errorf("joining %s: %w", name, err)
	}
	if problem != "" {
		return fmt.Errorf("joining %s: it is not reached through the control plane after %s: %s; the log of the control plane is %s", name, joinLimit, problem, s.f.log(rolesProcess))
	}
	s.Progress.Done(step, "Ready")
	return nil
}
