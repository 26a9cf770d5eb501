package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/version"
	operatorv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/operator/v1alpha1"
	installer "github.com/karmada-toolkit/karmada/pkg/init"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/credentials"
	"github.com/karmada-toolkit/karmada/pkg/init/write"
)

const (
	// addressInterval is the time between two looks for the address of a load balancer.
	addressInterval = 5 * time.Second
	// kubeconfigKey is the key of a Secret with the kubeconfig of a host cluster.
	kubeconfigKey = "kubeconfig"
	// kubeControllers is the field manager of Kubernetes' controllers, which annotate Deployments.
	kubeControllers = "kube-controller-manager"
)

// errNoAddress reports that the load balancer of an API server has no address yet.
var errNoAddress = errors.New("the load balancer has no address yet")

// reconciler makes control planes what their Karmadas have.
type reconciler struct {
	// client and reader are those of the cluster of the operator. The reader has no cache.
	client client.Client
	reader client.Reader
	config *rest.Config
	events *events.Recorder
	now    func() time.Time
	resync time.Duration

	// crds are the definitions that were downloaded, by their source.
	crds sync.Map

	load    func(context.Context, *config.Configuration) ([]*apiextensionsv1.CustomResourceDefinition, error)
	install func(context.Context, installer.Deps, *config.Configuration) (*installer.Result, error)
	connect func(*rest.Config) (client.Client, error)
}

func connect(cfg *rest.Config) (client.Client, error) {
	return client.New(cfg, client.Options{Scheme: kube.NewScheme()})
}

// host is a host cluster.
type host struct {
	config *rest.Config
	client.Client
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	k := &operatorv1alpha1.Karmada{}
	if err := r.client.Get(ctx, req.NamespacedName, k); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	k = k.DeepCopy()
	switch {
	case k.Spec.Suspend != nil && *k.Spec.Suspend:
		return reconcile.Result{}, nil
	case k.DeletionTimestamp != nil:
		return reconcile.Result{}, r.delete(ctx, k)
	}
	if err := r.claim(ctx, k); err != nil {
		return reconcile.Result{}, err
	}
	if problems := validate(k); len(problems) > 0 {
		text := problems.ToAggregate().Error()
		r.events.Warning(k, operatorv1alpha1.ReasonValidationError, text)
		return reconcile.Result{}, r.report(ctx, k, metav1.ConditionFalse, operatorv1alpha1.ReasonValidationError, text)
	}
	ready := meta.FindStatusCondition(k.Status.Conditions, string(operatorv1alpha1.Ready))
	if ready == nil || ready.Status != metav1.ConditionTrue || k.Status.ObservedGeneration != k.Generation {
		if err := r.report(ctx, k, metav1.ConditionFalse, operatorv1alpha1.ReasonProgressing, "karmada init job is in progressing"); err != nil {
			return reconcile.Result{}, err
		}
	}
	found, err := r.converge(ctx, k)
	switch {
	case errors.Is(err, errNoAddress):
		return reconcile.Result{RequeueAfter: addressInterval}, r.report(ctx, k, metav1.ConditionFalse, operatorv1alpha1.ReasonProgressing, err.Error())
	case err != nil:
		r.events.Warning(k, operatorv1alpha1.ReasonFailed, err.Error())
		return reconcile.Result{}, errors.Join(err, r.report(ctx, k, metav1.ConditionFalse, operatorv1alpha1.ReasonFailed, err.Error()))
	}
	r.events.Recovered(k)
	return reconcile.Result{RequeueAfter: r.resync}, r.report(ctx, k, metav1.ConditionTrue, operatorv1alpha1.ReasonCompleted, "karmada init job is completed", found)
}

// claim adds the finalizer and the label that the deletion is decided by.
func (r *reconciler) claim(ctx context.Context, k *operatorv1alpha1.Karmada) error {
	before := k.DeepCopy()
	changed := controllerutil.AddFinalizer(k, operatorv1alpha1.KarmadaFinalizer)
	if _, has := k.Labels[operatorv1alpha1.DisableCascadingDeletionLabel]; !has {
		metav1.SetMetaDataLabel(&k.ObjectMeta, operatorv1alpha1.DisableCascadingDeletionLabel, "false")
		changed = true
	}
	if !changed {
		return nil
	}
	if err := r.client.Patch(ctx, k, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("adding the finalizer: %w", err)
	}
	return nil
}

// report writes the condition Ready, and with it what was found of the control plane, if that differs.
func (r *reconciler) report(ctx context.Context, k *operatorv1alpha1.Karmada, status metav1.ConditionStatus, reason, message string, found ...operatorv1alpha1.KarmadaStatus) error {
	before := k.DeepCopy()
	for _, f := range found {
		f.Conditions = k.Status.Conditions
		k.Status = f
	}
	meta.SetStatusCondition(&k.Status.Conditions, metav1.Condition{Type: string(operatorv1alpha1.Ready), Status: status, Reason: reason, Message: message, ObservedGeneration: k.Generation})
	k.Status.ObservedGeneration = k.Generation
	patch := client.MergeFrom(before)
	if data, err := patch.Data(k); err != nil || string(data) == "{}" {
		return err
	}
	if err := r.client.Status().Patch(ctx, k, patch); err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}

// converge makes the control plane what the Karmada has, and returns what is reported of it beside the condition.
func (r *reconciler) converge(ctx context.Context, k *operatorv1alpha1.Karmada) (found operatorv1alpha1.KarmadaStatus, err error) {
	h, err := r.host(ctx, k)
	if err != nil {
		return found, err
	}
	if err := r.takeOver(ctx, h, k); err != nil {
		return found, err
	}
	g, err := r.secrets(ctx, k)
	if err != nil {
		return found, err
	}
	if err := r.expose(ctx, h, k, &g); err != nil {
		return found, err
	}
	c := configurationOf(k, g)
	if err := takeWorkloads(ctx, h, k, c); err != nil {
		return found, err
	}
	crds, err := r.definitions(ctx, k, c)
	if err != nil {
		return found, err
	}
	log.FromContext(ctx).V(2).Info("Installing the control plane", "server", g.server)
	result, err := r.install(ctx, installer.Deps{Program: Name, Host: h.config, Now: r.now, CRDs: crds}, c)
	if err != nil {
		return found, err
	}
	if err := pruneBudgets(ctx, h, k, c.AllParts()); err != nil {
		return found, err
	}
	if err := r.publish(ctx, h, k, result.Admin); err != nil {
		return found, err
	}
	names := namesOf(k)
	found.SecretRef = &operatorv1alpha1.LocalSecretReference{Namespace: k.Namespace, Name: names(adminSecret)}
	found.APIServerService = &operatorv1alpha1.APIServerService{Name: names(components.APIServer)}
	found.KarmadaVersion, found.KubernetesVersion = version.Get().Release(), tagOf(c.ImageOf(config.Part{Name: components.APIServer, Component: &c.APIServer.Component}))
	return found, nil
}

// definitions returns the APIs of the federation that the Karmada names; nil for those that are built in. They are downloaded once, or for
// each pass if the policy is Always.
func (r *reconciler) definitions(ctx context.Context, k *operatorv1alpha1.Karmada, c *config.Configuration) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	t := k.Spec.CRDTarball
	if t == nil || t.HTTPSource == nil {
		return nil, nil
	}
	always := t.CRDDownloadPolicy != nil && *t.CRDDownloadPolicy == operatorv1alpha1.DownloadAlways
	if have, ok := r.crds.Load(c.CRDs); ok && !always {
		return have.([]*apiextensionsv1.CustomResourceDefinition), nil
	}
	crds, err := r.load(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("spec.crdTarball: %w", err)
	}
	if crds != nil {
		r.crds.Store(c.CRDs, crds)
	}
	return crds, nil
}

// host returns the host cluster of a control plane.
func (r *reconciler) host(ctx context.Context, k *operatorv1alpha1.Karmada) (*host, error) {
	cfg := r.config
	if ref := remote(k); ref != nil {
		data, err := r.secret(ctx, k, *ref, kubeconfigKey)
		if err != nil {
			return nil, fmt.Errorf("spec.hostCluster.secretRef: %w", err)
		}
		if cfg, err = remoteConfig(data[kubeconfigKey]); err != nil {
			return nil, fmt.Errorf("spec.hostCluster.secretRef: the kubeconfig: %w", err)
		}
		cfg.Host = cmp.Or(k.Spec.HostCluster.APIEndpoint, cfg.Host)
	}
	c, err := r.connect(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to the host cluster: %w", err)
	}
	return &host{cfg, c}, nil
}

// remoteConfig reads the kubeconfig of a user. What it named as a file or command would be that of the operator, whose token may read all
// Secrets.
func remoteConfig(kubeconfig []byte) (*rest.Config, error) {
	c, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, err
	}
	local := false
	for _, cluster := range c.Clusters {
		local = local || cluster.CertificateAuthority != ""
	}
	for _, user := range c.AuthInfos {
		local = local || user.TokenFile+user.ClientCertificate+user.ClientKey != "" || user.Exec != nil || user.AuthProvider != nil
	}
	if local {
		return nil, errors.New("it names files or a command: write certificates and tokens into it")
	}
	return clientcmd.NewDefaultClientConfig(*c, nil).ClientConfig()
}

// takeOver returns an error if objects with the names of the control plane are there which are not of the Karmada.
func (r *reconciler) takeOver(ctx context.Context, h *host, k *operatorv1alpha1.Karmada) error {
	err := eachOf(ctx, h, k, func(o client.Object) error {
		if o.GetLabels()[components.ManagedByLabel] == components.ManagedByOperator {
			return nil
		}
		return fmt.Errorf("there is a %s %s, which is not of this Karmada: choose another name, or delete it", strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1."), client.ObjectKeyFromObject(o))
	})
	if err != nil {
		return err
	}
	cert := &corev1.Secret{}
	key := client.ObjectKey{Namespace: k.Namespace, Name: namesOf(k)(components.CertSecret)}
	switch err := h.Get(ctx, key, cert); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading the certificates: %w", err)
	case cert.Labels[components.ManagedByLabel] != components.ManagedByOperator:
		return fmt.Errorf("the Secret %s is not of this Karmada: another control plane is or was installed here; choose another name, or delete it", key)
	case cert.Labels[components.InstanceLabel] != "" && cert.Labels[components.InstanceLabel] != k.Name:
		return fmt.Errorf("the Secret %s is of Karmada %s, whose objects have the same names: choose another name", key, cert.Labels[components.InstanceLabel])
	case len(cert.Data["apiserver.crt"]) == 0 || len(cert.Data["ca.key"]) == 0 || len(cert.Data[components.Webhook+".crt"]) == 0 && !credentials.Shared(cert.Data):
		return fmt.Errorf("the Secret %s has not the certificates of a control plane: put those of an operator back, or delete it", key)
	}
	return nil
}

// eachOf calls a function with each workload and Service that has a name of the control plane.
func eachOf(ctx context.Context, h *host, k *operatorv1alpha1.Karmada, do func(client.Object) error) error {
	var names []string
	for _, workload := range append(components.WorkloadNames(), components.EtcdClient, components.Descheduler, components.MetricsAdapter, components.Search) {
		names = append(names, namesOf(k)(workload))
	}
	for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &corev1.ServiceList{}} {
		if err := h.List(ctx, list, client.InNamespace(k.Namespace)); err != nil {
			return fmt.Errorf("looking for objects of others: %w", err)
		}
		err := meta.EachListItem(list, func(obj runtime.Object) error {
			if o, ok := obj.(client.Object); ok && slices.Contains(names, o.GetName()) {
				return do(o)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// takeWorkloads takes the workloads and Services of Karmada's operator over, if the Karmada has other images for its roles.
func takeWorkloads(ctx context.Context, h *host, k *operatorv1alpha1.Karmada, c *config.Configuration) error {
	wanted := map[string]string{}
	for _, part := range c.AllParts() {
		if !components.OfKubernetes(part.Name) && part.Name != components.Etcd {
			wanted[c.Names(part.Name)] = c.ImageOf(part)
		}
	}
	var former []client.Object
	err := eachOf(ctx, h, k, func(o client.Object) error {
		if slices.ContainsFunc(o.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
			return m.Manager == write.FieldManager && m.Operation == metav1.ManagedFieldsOperationApply
		}) {
			return nil
		}
		former = append(former, o)
		d, ok := o.(*appsv1.Deployment)
		if ok && len(d.Spec.Template.Spec.Containers) > 0 && d.Spec.Template.Spec.Containers[0].Image == wanted[d.Name] && tagOf(wanted[d.Name]) != version.Get().Release() {
			return fmt.Errorf("the Karmada has the image %s for %s, which is that of Karmada's operator: remove imageRepository and imageTag of this component from spec.components", wanted[d.Name], d.Name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, o := range former {
		if err := takeFields(ctx, h, o); err != nil {
			return err
		}
	}
	return nil
}

// takeFields takes the fields of an object over that an operator updated which does not apply objects, as Karmada's: what is not wanted of them
// would stay.
func takeFields(ctx context.Context, h *host, o client.Object) error {
	updaters := sets.New[string]()
	for _, m := range o.GetManagedFields() {
		if m.Operation == metav1.ManagedFieldsOperationUpdate && m.Subresource == "" && m.Manager != kubeControllers {
			updaters.Insert(m.Manager)
		}
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(o, updaters, write.FieldManager)
	if err == nil && patch != nil {
		err = h.Patch(ctx, o, client.RawPatch(types.JSONPatchType, patch))
	}
	if err != nil {
		return fmt.Errorf("taking the fields of %T %s over: %w", o, client.ObjectKeyFromObject(o), err)
	}
	return nil
}

// secrets reads what the Karmada refers to.
func (r *reconciler) secrets(ctx context.Context, k *operatorv1alpha1.Karmada) (given, error) {
	var g given
	if custom := k.Spec.CustomCertificate; custom != nil && custom.APIServerCACert != nil {
		data, err := r.secret(ctx, k, *custom.APIServerCACert, corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
		if err != nil {
			return g, fmt.Errorf("spec.customCertificate.apiServerCACert: %w", err)
		}
		g.authority = &config.KeyPair{Cert: data[corev1.TLSCertKey], Key: data[corev1.TLSPrivateKeyKey]}
	}
	if x := componentsOf(k).Etcd.External; x != nil {
		data, err := r.secret(ctx, k, x.SecretRef, corev1.ServiceAccountRootCAKey, corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
		if err != nil {
			return g, fmt.Errorf("spec.components.etcd.external.secretRef: %w", err)
		}
		g.etcd = map[string][]byte{"etcd-ca.crt": data[corev1.ServiceAccountRootCAKey], "etcd-client.crt": data[corev1.TLSCertKey], "etcd-client.key": data[corev1.TLSPrivateKeyKey]}
	}
	return g, nil
}

// secret returns the data of a Secret that has some keys. Without a namespace, it is in that of the Karmada. Another namespace is refused:
// who may create a Karmada need not be allowed to read the Secrets there.
func (r *reconciler) secret(ctx context.Context, k *operatorv1alpha1.Karmada, ref operatorv1alpha1.LocalSecretReference, keys ...string) (map[string][]byte, error) {
	if ref.Namespace != "" && ref.Namespace != k.Namespace {
		return nil, fmt.Errorf("the Secret %s/%s is in another namespace than the Karmada: copy it to namespace %s", ref.Namespace, ref.Name, k.Namespace)
	}
	s := &corev1.Secret{}
	if err := r.reader.Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: ref.Name}, s); err != nil {
		return nil, err
	}
	for _, key := range keys {
		if len(s.Data[key]) == 0 {
			return nil, fmt.Errorf("the Secret %s/%s has no key %q", k.Namespace, ref.Name, key)
		}
	}
	return s.Data, nil
}

// expose writes the Service of the API server, and finds out where it is reached. The port of a node, and the address of a load balancer,
// are known only then.
func (r *reconciler) expose(ctx context.Context, h *host, k *operatorv1alpha1.Karmada, g *given) error {
	c := configurationOf(k, *g)
	names := &components.Config{
		Namespace: k.Namespace, Domain: c.Host.Domain, Names: c.Names, Labels: c.Labels, ServiceType: c.APIServer.ServiceType,
		LoadBalancerClass: c.APIServer.LoadBalancerClass, ServiceAnnotations: c.APIServer.ServiceAnnotations,
	}
	if c.APIServer.ServiceType == corev1.ServiceTypeClusterIP {
		g.server = names.InternalServer()
		return nil
	}
	service := components.APIServerService(names).(*corev1.Service)
	stored := &corev1.Service{}
	err := h.Get(ctx, client.ObjectKeyFromObject(service), stored)
	if apierrors.IsNotFound(err) || err == nil && stored.Spec.Type != service.Spec.Type {
		if _, err = write.Apply(ctx, h, []client.Object{components.HostNamespace(names), service}); err == nil {
			err = h.Get(ctx, client.ObjectKeyFromObject(service), stored)
		}
	}
	if err != nil {
		return fmt.Errorf("writing the Service of the API server: %w", err)
	}
	g.nodePort = stored.Spec.Ports[0].NodePort
	if c.APIServer.ServiceType != corev1.ServiceTypeLoadBalancer {
		return nil // a node's address
	}
	for _, ingress := range stored.Status.LoadBalancer.Ingress {
		if g.address = ingress.Hostname; g.address == "" {
			g.address = ingress.IP
		}
	}
	if g.address == "" {
		return errNoAddress
	}
	g.server = components.ServerURL(g.address)
	return nil
}

// publish writes the administrator's kubeconfig into a Secret of the host cluster, and of the cluster of the Karmada.
func (r *reconciler) publish(ctx context.Context, h *host, k *operatorv1alpha1.Karmada, kubeconfig []byte) error {
	to := []client.Client{h.Client}
	if remote(k) != nil {
		to = append(to, r.client)
	}
	for _, c := range to {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: namesOf(k)(adminSecret), Labels: labelsOf(k)},
			Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{adminKey: kubeconfig},
		}
		if _, err := write.Apply(ctx, c, []client.Object{secret}); err != nil {
			return fmt.Errorf("writing the administrator's kubeconfig: %w", err)
		}
	}
	return nil
}

// tagOf returns the tag of an image.
func tagOf(image string) string { return image[strings.LastIndex(image, ":")+1:] }
