package agent

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/component-helpers/apimachinery/lease"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

// membership is the registration of the member at the control plane, until the control
// plane abandons it.
type membership struct {
	options *Options
	clock   clock.Clock
	log     logr.Logger
	retry   retrier
	// plane and member are clients of the control plane and the member.
	plane, member client.Client
	memberConfig  *rest.Config

	// id is the id of the member. It is set before registered.
	id         string
	registered atomic.Bool
	// refused is the reason for which the control plane did not accept the address of the
	// member, or nil.
	refused atomic.Pointer[string]
	// corrected reports whether the Cluster had another address than the agent's.
	corrected atomic.Bool
	// abandoned reports whether the control plane has abandoned the cluster.
	abandoned atomic.Bool
}

// serves reports whether a Cluster is that of this agent: its name, Pull mode, and not
// another cluster with the same name.
func (m *membership) serves(cluster *clusterv1alpha1.Cluster) bool {
	return !m.abandoned.Load() && cluster.Name == m.options.ClusterName && cluster.Spec.SyncMode == clusterv1alpha1.Pull && cluster.Spec.ID == m.id
}

// register registers the cluster at the control plane, and retries until it succeeds. It
// fails if the control plane has another cluster with the name, or this one with another
// name.
func (m *membership) register(ctx context.Context) error {
	err := m.retry.until(ctx, "Reading the id of the member cluster", func(ctx context.Context) (err error) {
		m.id, err = member.ID(ctx, m.member)
		return err
	})
	if err != nil {
		return err
	}
	// Before any object is applied again.
	err = m.retry.until(ctx, "Cleaning up an abandoned cluster", func(ctx context.Context) error {
		_, err := m.cleanIfAbandoned(ctx)
		return err
	})
	if err != nil {
		return err
	}
	m.abandoned.Store(false)
	err = m.retry.until(ctx, "Registering the cluster", func(ctx context.Context) error {
		request, err := m.request()
		if err != nil {
			return err
		}
		deps := member.Deps{ControlPlane: m.plane, Member: m.member, Report: func(line string) { m.log.Info(line) }}
		_, err = member.Present(ctx, deps, request)
		return err
	})
	if err != nil {
		return err
	}
	m.registered.Store(true)
	m.log.Info("The cluster is registered", "id", m.id)
	return nil
}

// request returns the request to register.
func (m *membership) request() (member.PresentRequest, error) {
	o := m.options
	r := member.PresentRequest{
		Name: o.ClusterName, ID: m.id, Namespace: o.ClusterNamespace,
		APIEndpoint: o.ClusterAPIEndpoint, ProxyURL: o.ProxyServerAddress,
		Provider: o.ClusterProvider, Region: o.ClusterRegion, Zones: o.ClusterZones, Config: m.memberConfig,
		Credentials: o.reports(reportCredentials), Impersonator: o.reports(reportImpersonator),
		Refused: func(reason error) { m.refused.Store(new(reason.Error())) },
	}
	if m.memberConfig.Proxy == nil {
		return r, nil
	}
	req, err := http.NewRequest(http.MethodGet, m.memberConfig.Host, http.NoBody)
	if err != nil {
		return r, err
	}
	proxy, err := m.memberConfig.Proxy(req)
	if err == nil && proxy != nil {
		r.ProxyURL = proxy.String()
	}
	return r, err
}

// offerInterval is how often an address that the control plane refused is offered again: its rules may change.
const offerInterval = 5 * time.Minute

// lostAddress reports whether the Cluster lost the address that the agent offers. One that the control plane refused is offered
// again from time to time, one that an administrator replaced only after a restart.
func (m *membership) lostAddress(cluster *clusterv1alpha1.Cluster) bool {
	own := m.options.ClusterAPIEndpoint
	if own == "" || cluster.DeletionTimestamp != nil || !m.serves(cluster) {
		return false
	}
	if cluster.Spec.APIEndpoint != "" {
		m.corrected.Store(cluster.Spec.APIEndpoint != own)
		return false
	}
	return m.refused.Load() == nil && !m.corrected.Load()
}

// refusedAddress reports whether the control plane refused the address of the member, and nobody set another.
func (m *membership) refusedAddress() bool {
	return m.refused.Load() != nil && !m.corrected.Load() && !m.abandoned.Load()
}

// offer offers the address of the member again.
func (m *membership) offer(ctx context.Context) error {
	return m.retry.until(ctx, "Offering the address of the member", func(ctx context.Context) error {
		request, err := m.request()
		if err != nil {
			return err
		}
		accepted, refuse := true, request.Refused
		request.Refused = func(reason error) {
			accepted = false
			refuse(reason)
		}
		err = member.Offer(ctx, member.Deps{ControlPlane: m.plane, Report: func(line string) { m.log.Info(line) }}, request)
		if err == nil && accepted {
			m.refused.Store(nil)
		}
		return err
	})
}

// conditions returns the condition APIEndpointAccepted of the cluster: none until the
// control plane refused an address. An administrator who sets one needs no restart of
// the agent.
func (m *membership) conditions(cluster *clusterv1alpha1.Cluster) []metav1.Condition {
	out := metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionAPIEndpointAccepted, Status: metav1.ConditionTrue,
		Reason: "EndpointSet", Message: "the control plane has an address of the cluster",
	}
	reason := m.refused.Load()
	switch {
	case cluster.Spec.APIEndpoint != "":
		if meta.FindStatusCondition(cluster.Status.Conditions, out.Type) == nil {
			return nil
		}
	case reason == nil:
		return nil
	default:
		out.Status, out.Reason = metav1.ConditionFalse, "EndpointRefused"
		out.Message = fmt.Sprintf("users do not reach the cluster through the control plane, because its address was refused: %s. If the control plane reaches the cluster at another address: "+
			`kubectl patch cluster %s --type merge -p '{"spec":{"apiEndpoint":"https://HOST:PORT"}}'`, *reason, cluster.Name)
	}
	return []metav1.Condition{out}
}

// newLease returns the controller that renews the lease of the cluster.
func newLease(ctx context.Context, a *agent) lease.Controller {
	o := a.options
	own := func(l *coordinationv1.Lease) error {
		l.Spec.HolderIdentity = &o.ClusterName // the control plane may have created it
		if delete(l.Annotations, clusterv1alpha1.FailingAnnotation); a.failing.Load() {
			metav1.SetMetaDataAnnotation(&l.ObjectMeta, clusterv1alpha1.FailingAnnotation, "true")
		}
		o.plane.annotate(&l.ObjectMeta)
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
