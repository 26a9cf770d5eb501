// Package operator is the role that installs control planes: it reconciles Karmada objects of the cluster it runs in, by the phases of an
// installation.
package operator

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/kube"
	operatorv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/operator/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// Name is the name of the operator: of its Lease, its events and its ClusterRole.
const Name = "karmada-operator"

// controller is the only value of --controllers beside "*".
const controller = "karmada"

// Options are the settings of the operator.
type Options struct {
	// Kubeconfig is that of the host cluster; empty means the service account of the pod.
	Kubeconfig string
	// Controllers are those that run: "*" or "karmada".
	Controllers []string
	// Workers is the number of Karmadas that are reconciled at a time.
	Workers int
	// Resync is the time after which a Karmada is reconciled although nothing changed; 0 is 12 hours. Certificates are renewed then.
	Resync time.Duration
}

// defaultResync is the default of Options.Resync.
const defaultResync = 12 * time.Hour

// NewOptions returns the defaults.
func NewOptions() *Options { return &Options{Controllers: []string{"*"}, Workers: 5} }

// AddFlags adds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Path of the kubeconfig of the cluster with the Karmada objects. Empty means the service account of the pod.")
	fs.StringSliceVar(&o.Controllers, "controllers", o.Controllers, "Controllers that run: '*' or 'karmada', which is the only one.")
	fs.IntVar(&o.Workers, "concurrent-karmada-syncs", o.Workers, "Number of Karmada objects that are reconciled at a time.")
	fs.DurationVar(&o.Resync, "resync-period", o.Resync, "Time after which a Karmada is reconciled although nothing changed. 0 means 12 hours.")
}

// Validate reports settings that cannot work.
func (o *Options) Validate() error {
	for _, name := range o.Controllers {
		if name != "*" && name != controller && name != "-"+controller {
			return fmt.Errorf("--controllers: there is no controller %q; there is %s", name, controller)
		}
	}
	if o.Workers < 1 || o.Resync < 0 {
		return errors.New("--concurrent-karmada-syncs must be at least 1, and --resync-period not negative")
	}
	return nil
}

// enabled reports whether the controller runs.
func (o *Options) enabled() bool {
	return !slices.Contains(o.Controllers, "-"+controller) && (slices.Contains(o.Controllers, "*") || slices.Contains(o.Controllers, controller))
}

// Credentials returns those of the host cluster.
func (o *Options) Credentials(userAgent string) (*kube.Credentials, error) {
	load := rest.InClusterConfig
	if o.Kubeconfig != "" {
		load = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", o.Kubeconfig) }
	}
	credentials, err := kube.NewCredentials(kube.CredentialsOptions{Load: load, Clock: clock.RealClock{}})
	if err != nil {
		return nil, err
	}
	credentials.Config.UserAgent, credentials.Config.QPS, credentials.Config.Burst = userAgent, -1, 0
	return credentials, nil
}

// Manager limits the cache to Karmadas and what the operator manages.
func (o *Options) Manager(m *manager.Options) error {
	managed := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{components.ManagedByLabel: components.ManagedByOperator})}
	m.Cache.ByObject = map[client.Object]cache.ByObject{
		&operatorv1alpha1.Karmada{}: {}, &appsv1.Deployment{}: managed, &appsv1.StatefulSet{}: managed, &corev1.Service{}: managed,
	}
	m.MapperProvider = func(cfg *rest.Config, c *http.Client) (meta.RESTMapper, error) {
		return apiutil.NewDynamicRESTMapper(cfg, c)
	}
	m.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.Service{}, &corev1.Namespace{}}}
	return nil
}
