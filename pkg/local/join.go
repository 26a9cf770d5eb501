package local

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

// joining is a member that is to belong to the federation.
type joining struct {
	name string
	// control and kubeconfig are the paths of the kubeconfigs of the control plane
	// and of the member.
	control, kubeconfig string
	// endpoint is where the control plane reaches the member; empty means at the same
	// address as the user.
	endpoint string
	// look says where to look when it does not work.
	look string
}

// reporter shows what member waits for as what a step waits for.
func (d Deps) reporter(step string) member.Reporter {
	return func(line string) { d.Progress.Waiting(step, strings.TrimPrefix(line, member.WaitingFor)) }
}

// join makes sure that a member belongs to the federation and waits until it is
// Ready.
func (d Deps) join(ctx context.Context, j joining) error {
	step := "join " + j.name
	d.Progress.Begin(step)
	cpConfig, cp, err := connect(j.control)
	if err != nil {
		return err
	}
	cfg, m, err := connect(j.kubeconfig)
	if err != nil {
		return err
	}
	deps := member.Deps{
		Program: d.Program, ControlPlane: cp, Member: m,
		Report: d.reporter(step),
	}
	err = cp.Get(ctx, client.ObjectKey{Name: j.name}, &clusterv1alpha1.Cluster{})
	if apierrors.IsNotFound(err) {
		_, err = member.Join(ctx, deps, member.JoinRequest{
			Name: j.name, Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Config: cfg, Endpoint: j.endpoint,
		})
	}
	if err != nil {
		return fmt.Errorf("joining %s: %w", j.name, err)
	}
	if err := settle(ctx, deps, cpConfig, j.name, j.look); err != nil {
		return fmt.Errorf("joining %s: %w", j.name, err)
	}
	d.Progress.Done(step, "Ready")
	return nil
}

// settle waits until a member is Ready and reached through the control plane. look
// says where to look when that takes too long.
func settle(ctx context.Context, deps member.Deps, control *rest.Config, name, look string) error {
	problem, err := member.WaitReady(ctx, deps, name, joinLimit)
	if err != nil {
		return err
	}
	if problem != "" {
		return fmt.Errorf("it is not Ready after %s: %s; %s", joinLimit, problem, look)
	}
	problem, err = member.WaitReachable(ctx, control, name, deps.Report, joinLimit)
	if err != nil {
		return err
	}
	if problem != "" {
		return fmt.Errorf("it is not reached through the control plane after %s: %s; %s", joinLimit, problem, look)
	}
	return nil
}
