package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/wait"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

// podNamespace is the file with the namespace of the pod that the agent runs in.
const podNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Credentials returns those for the control plane.
func (o *Options) Credentials(userAgent string) (*kube.Credentials, error) {
	p, err := newPlane(o.KarmadaKubeconfig, o.KarmadaContext, userAgent, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	cfg := p.credentials.Config
	cfg.QPS, cfg.Burst = -1, 0
	if qps := o.PlaneQPS.QPS(); qps > 0 {
		cfg.QPS, cfg.Burst = qps, max(o.PlaneBurst, 1)
	}
	o.plane = p
	return p.credentials, nil
}

// Manager limits the cache to what the agent may read, and has the replicas elect
// their leader in the member: the election must not depend on the control plane.
func (o *Options) Manager(m *manager.Options) error {
	memberConfig, err := o.memberConfig()
	if err != nil {
		return err
	}
	m.LeaderElectionConfig = memberConfig
	if own, err := os.ReadFile(podNamespace); err == nil && m.LeaderElectionNamespace == clusterv1alpha1.NamespaceKarmadaSystem {
		// The default is a namespace of the control plane; the member may not have it.
		m.LeaderElectionNamespace = strings.TrimSpace(string(own))
	}
	m.LeaderElectionID = cmp.Or(m.LeaderElectionID, names.AgentLease(o.ClusterName))
	m.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return planeMapper(), nil }
	m.Cache.ByObject = map[client.Object]cache.ByObject{
		&clusterv1alpha1.Cluster{}: {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, o.ClusterName)},
		&workv1alpha1.Work{}:       {Namespaces: map[string]cache.Config{names.ExecutionNamespace(o.ClusterName): {}}},
	}
	m.Cache.DefaultWatchErrorHandler = o.check.watchFailed
	m.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.Service{}, &corev1.Secret{}, &corev1.ConfigMap{}, &corev1.Namespace{}}}
	return nil
}

// memberConfig returns the configuration for the member.
func (o *Options) memberConfig() (*rest.Config, error) {
	var cfg *rest.Config
	var err error
	if o.Kubeconfig == "" {
		if cfg, err = rest.InClusterConfig(); err != nil {
			return nil, fmt.Errorf("looking for the member cluster: %w; run the agent in a pod of the member, or name the member's kubeconfig with --kubeconfig", err)
		}
	} else if cfg, err = clientcmd.BuildConfigFromFlags("", o.Kubeconfig); err != nil {
		return nil, fmt.Errorf("loading the kubeconfig of the member cluster (--kubeconfig): %w", err)
	}
	cfg.UserAgent = "karmada-agent"
	cfg.WarningHandler = rest.NoWarnings{} // warnings about deprecated types are for the users of the types
	cfg.QPS, cfg.Burst = -1, 0
	if qps := o.ClusterQPS.QPS(); qps > 0 {
		cfg.QPS, cfg.Burst = qps, max(o.ClusterBurst, 1)
		cfg.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(cfg.QPS, cfg.Burst)
	}
	return cfg, nil
}

// planeMapper maps the kinds of the control plane that the agent uses, without
// discovery requests.
func planeMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	add := func(gv schema.GroupVersion, scope meta.RESTScope, kinds ...string) {
		for _, kind := range kinds {
			mapper.Add(gv.WithKind(kind), scope)
			mapper.Add(gv.WithKind(kind+"List"), scope) // the cache of one namespace requires it
		}
	}
	add(corev1.SchemeGroupVersion, meta.RESTScopeRoot, "Namespace")
	add(corev1.SchemeGroupVersion, meta.RESTScopeNamespace, "Secret", "ConfigMap", "Service", "Event")
	add(coordinationv1.SchemeGroupVersion, meta.RESTScopeNamespace, "Lease")
	add(certificatesv1.SchemeGroupVersion, meta.RESTScopeRoot, "CertificateSigningRequest")
	add(clusterv1alpha1.GroupVersion, meta.RESTScopeRoot, "Cluster")
	add(workv1alpha1.GroupVersion, meta.RESTScopeNamespace, "Work")
	add(configv1alpha1.GroupVersion, meta.RESTScopeRoot, "ResourceInterpreterCustomization", "ResourceInterpreterWebhookConfiguration")
	return mapper
}

// The interval between two attempts begins with firstRetry and doubles up to lastRetry.
const (
	firstRetry = 250 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// retrier repeats steps that fail until they succeed, and logs why they fail.
type retrier struct{ log logr.Logger }

// until calls fn until it succeeds, fails permanently or ctx ends.
func (r retrier) until(ctx context.Context, what string, fn func(context.Context) error) error {
	logged := ""
	return wait.Until(ctx, wait.Options{Interval: firstRetry, MaxInterval: lastRetry, Publish: func(reason error) {
		if reason != nil && reason.Error() != logged {
			logged = reason.Error()
			r.log.Info(what+" failed, trying again", "err", logged)
		}
	}}, func(ctx context.Context) error {
		err := fn(ctx)
		if errors.Is(err, member.ErrTaken) {
			return wait.Terminal(err)
		}
		return err
	})
}
