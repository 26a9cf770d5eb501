package agent

import (
	"context"
	"errors"
	"net/http"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/apimachinery/lease"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

// register presents the cluster to the control plane, however long that takes. It
// fails when the control plane has another cluster of the name, or this one under
// another name.
func (a *agent) register(ctx context.Context) error {
	err := a.insist(ctx, "Looking at the member cluster", func() (err error) {
		a.id, err = member.ID(ctx, a.memberAPI)
		return err
	})
	if err != nil {
		return err
	}
	// Before anything comes anew.
	err = a.insist(ctx, "Cleaning up after being abandoned", func() error {
		_, err := a.cleanIfAbandoned(ctx)
		return err
	})
	if err != nil {
		return err
	}
	a.abandoned.Store(false)
	err = a.insist(ctx, "Registering the cluster", func() error {
		request, err := a.request()
		if err != nil {
			return err
		}
		deps := member.Deps{ControlPlane: a.plane, Member: a.memberAPI, Report: func(line string) { a.log.Info(line) }}
		_, err = member.Present(ctx, deps, request)
		return err
	})
	if err == nil {
		a.log.Info("The cluster is registered", "id", a.id)
	}
	return err
}

// request is how the cluster presents itself.
func (a *agent) request() (member.PresentRequest, error) {
	o := a.options
	r := member.PresentRequest{
		Name: o.ClusterName, ID: a.id, Namespace: o.ClusterNamespace,
		APIEndpoint: o.ClusterAPIEndpoint, ProxyURL: o.ProxyServerAddress,
		Provider: o.ClusterProvider, Region: o.ClusterRegion, Zones: o.ClusterZones, Config: a.memberConfig,
		Credentials: o.reports(reportCredentials), Impersonator: o.reports(reportImpersonator),
	}
	if a.memberConfig.Proxy == nil {
		return r, nil
	}
	req, err := http.NewRequest(http.MethodGet, a.memberConfig.Host, http.NoBody) //nolint:noctx // never sent
	if err != nil {
		return r, err
	}
	proxy, err := a.memberConfig.Proxy(req)
	if err == nil && proxy != nil {
		r.ProxyURL = proxy.String()
	}
	return r, err
}

// permanent says whether trying again cannot help.
func permanent(err error) bool { return errors.Is(err, member.ErrTaken) }

// newLease returns what renews the lease of the cluster, by which the control plane
// knows that it is reported on.
func newLease(ctx context.Context, a *agent) lease.Controller {
	o := a.options
	own := func(l *coordinationv1.Lease) error {
		l.Spec.HolderIdentity = &o.ClusterName // the control plane may have made it
		if len(l.OwnerReferences) > 0 {
			return nil
		}
		cluster := &clusterv1alpha1.Cluster{}
		err := a.mgr.GetClient().Get(ctx, client.ObjectKey{Name: o.ClusterName}, cluster)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			l.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: "Cluster", Name: cluster.Name, UID: cluster.UID,
			}}
		}
		return err
	}
	return lease.NewController(clock.RealClock{}, a.kube, o.ClusterName, int32(o.LeaseDuration.Seconds()), nil,
		o.renewInterval(), o.ClusterName, clusterv1alpha1.NamespaceKarmadaCluster, own)
}
