package certs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/forward"
	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/internal/wait"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/rollout"
	"github.com/karmada-toolkit/karmada/pkg/init/write"
)

// Hosted is an installation in a host cluster: by init, or by the Helm chart.
type Hosted struct {
	// Program is what the user types, for the next steps that errors name.
	Program string
	// Namespace of the control plane.
	Namespace string
	// Release is the name of the Helm release, "karmada" for what init installed. Empty means the only control plane in Namespace.
	Release string
	// Files are kubeconfigs of the control plane, PKI a directory of certificates. Those that do not exist, or are of another
	// installation, are left alone.
	Files []string
	PKI   string
	// Timeout is how long the pods of a workload may take to be ready, and the control plane to answer.
	Timeout  time.Duration
	Progress progress.Reporter
	Now      func() time.Time

	api     kubernetes.Interface
	client  client.Client
	forward *forward.Host
	// scope chooses the objects of the control plane, state is the Secret with the state of a change of its authorities.
	scope []client.ListOption
	state metav1.ObjectMeta
}

// Connect connects to the host cluster.
func (h *Hosted) Connect(cfg *rest.Config) error {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = -1, 0
	var err error
	if h.api, err = kubernetes.NewForConfig(cfg); err == nil {
		h.client, err = client.New(cfg, client.Options{Scheme: kube.NewScheme()})
	}
	if err == nil {
		h.forward, err = forward.NewHost(cfg, nil)
	}
	if err != nil {
		return fmt.Errorf("connecting to the host cluster: %w", err)
	}
	if h.Progress == nil {
		h.Progress = progress.Discard{}
	}
	return nil
}

// frontProxyCA is a key that only the Secret with all certificates has.
const frontProxyCA = "front-proxy-ca.crt"

// choose finds the control plane. Of several, each has the objects with its label.
func (h *Hosted) choose(ctx context.Context) error {
	if h.scope != nil {
		return nil
	}
	list := &corev1.SecretList{}
	if err := h.client.List(ctx, list, client.InNamespace(h.Namespace)); err != nil {
		return fmt.Errorf("listing the Secrets in namespace %s: %w", h.Namespace, err)
	}
	const nameOfInit = "karmada"
	found := map[string]map[string]string{} // the labels by the name
	for _, s := range list.Items {
		release, byInit := s.Labels[components.InstanceLabel], s.Labels[components.BootstrapLabel]
		if s.Data[frontProxyCA] != nil && release+byInit != "" {
			found[cmp.Or(release, nameOfInit)] = s.Labels
		}
	}
	names := sortedKeys(found)
	name := cmp.Or(h.Release, append(names, nameOfInit)[0])
	if len(names) > 0 && found[name] == nil || len(names) > 1 && h.Release == "" {
		return fmt.Errorf("namespace %s has the control planes %s: choose one of them with --release", h.Namespace, strings.Join(names, ", "))
	}
	h.state = metav1.ObjectMeta{Namespace: h.Namespace, Name: components.ReleaseNames(name, "")(components.RenewalSecret), Labels: found[name]}
	h.scope = []client.ListOption{client.InNamespace(h.Namespace)}
	if release := found[name][components.InstanceLabel]; len(names) > 1 && release != "" {
		h.scope = append(h.scope, client.MatchingLabels{components.InstanceLabel: release})
	} else if len(names) > 1 {
		h.scope = append(h.scope, client.HasLabels{components.BootstrapLabel})
	}
	return nil
}

func (h *Hosted) own(ctx context.Context) (*inventory, error) {
	if err := h.choose(ctx); err != nil {
		return nil, err
	}
	contents, err := secretContents(ctx, h.client, false, h.scope...)
	if err != nil {
		return nil, err
	}
	complete, ownKey := map[string]bool{}, map[string]bool{}
	for _, c := range contents {
		complete[c.Name] = complete[c.Name] || c.Key == frontProxyCA
		ownKey[c.Name] = ownKey[c.Name] || c.Key == components.ServiceAccountKey+".key"
	}
	for _, c := range contents {
		c.signs = complete[c.Name]
		c.keepsKey = c.signs && !ownKey[c.Name] && c.Key == "karmada.crt" // as Karmada's own installer has it
	}
	out := &inventory{contents: contents}
	if len(out.signing()) == 0 {
		return nil, fmt.Errorf("there is no control plane in namespace %s: none of its Secrets has the key %s; name another with --namespace, or the host cluster with --kubeconfig and --context", h.Namespace, frontProxyCA)
	}
	for _, path := range append(slices.Clone(h.Files), h.PKI) {
		files, err := fileContents(path)
		if err != nil {
			out.gaps = append(out.gaps, err)
		}
		if related(files, contents) {
			out.contents = append(out.contents, files...)
		}
	}
	return out, nil
}

// related reports whether contents have an authority that others have too.
func related(contents, others []*content) bool {
	known := map[string]bool{}
	for p := range authorities(others) {
		known[string(p.cert.Raw)] = true
	}
	for p := range authorities(contents) {
		if known[string(p.cert.Raw)] {
			return true
		}
	}
	return false
}

// connect connects to the API server through the host cluster, by the certificates that are there now.
func (h *Hosted) connect(ctx context.Context) (client.Client, error) {
	all, err := h.own(ctx)
	if err != nil {
		return nil, err
	}
	_, leaves := pairs(all.signing())
	i := slices.IndexFunc(leaves, func(l named) bool { return slices.Contains(l.Cert.Subject.Organization, "system:masters") })
	if i < 0 {
		return nil, errors.New("none of the Secrets of the installation has the certificate of an administrator")
	}
	key, err := leaves[i].KeyPEM()
	if err != nil {
		return nil, err
	}
	cfg := &rest.Config{
		Host: "https://localhost", Dial: h.dialAPIServer,
		TLSClientConfig: rest.TLSClientConfig{CertData: leaves[i].chain, KeyData: key},
	}
	for _, c := range all.signing() {
		if c.Key == "ca.crt" {
			cfg.CAData = append(cfg.CAData, c.data...)
		}
	}
	return connected(ctx, cfg, h.Timeout)
}

// connected returns a client of a control plane that answers.
func connected(ctx context.Context, cfg *rest.Config, timeout time.Duration) (client.Client, error) {
	cfg.QPS, cfg.WarningHandlerWithContext = -1, rest.NoWarnings{}
	http, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	err = wait.Until(ctx, wait.Options{Timeout: timeout}, func(ctx context.Context) error { return kube.CheckOK(ctx, http, cfg.Host+"/readyz") })
	if err != nil {
		return nil, fmt.Errorf("the control plane does not answer: %w", err)
	}
	return client.New(cfg, client.Options{Scheme: kube.NewScheme()})
}

// dialAPIServer connects to a pod of the API server that is ready.
func (h *Hosted) dialAPIServer(ctx context.Context, _, _ string) (net.Conn, error) {
	workloads, err := h.workloads(ctx)
	if err != nil {
		return nil, err
	}
	for _, w := range workloads {
		if w.component() != components.APIServer {
			continue
		}
		pods, err := h.pods(ctx, w)
		if err != nil {
			return nil, err
		}
		for i := range pods {
			if rollout.PodReady(&pods[i]) {
				return h.forward.Pod(ctx, &pods[i], portOf(&pods[i], "server", 0))
			}
		}
	}
	return nil, errors.New("no pod of the API server is ready")
}

func (h *Hosted) kept(ctx context.Context, a named) (string, error) {
	workloads, err := h.workloads(ctx)
	if err != nil {
		return "", err
	}
	for _, w := range workloads {
		command := strings.Join(w.template.Spec.Containers[0].Command, " ")
		switch {
		case w.component() == components.KubeControllerManager && a.Place.Key == "ca.crt" && !strings.Contains(command, components.SigningCA):
			return "", fmt.Errorf("%s was installed by a version that cannot have two authorities: run %s init, or helm upgrade, with this version first", w.GetName(), h.Program)
		case w.component() == components.Etcd && strings.HasPrefix(a.Place.Key, "etcd-") && w.volatile():
			return "etcd keeps its data in its pods, and would lose it when they restart; use --etcd-storage-mode=PVC or hostPath", nil
		}
	}
	return "", nil
}

func (h *Hosted) load(ctx context.Context) (map[string][]byte, error) {
	if err := h.choose(ctx); err != nil {
		return nil, err
	}
	s := &corev1.Secret{ObjectMeta: h.state}
	if err := h.client.Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return s.Data, nil
}

func (h *Hosted) store(ctx context.Context, data map[string][]byte) error {
	s := &corev1.Secret{ObjectMeta: h.state, Type: corev1.SecretTypeOpaque, Data: data}
	if data == nil {
		return client.IgnoreNotFound(h.client.Delete(ctx, s))
	}
	_, err := write.Apply(ctx, h.client, []client.Object{s})
	return err
}

// workload is a Deployment or StatefulSet.
type workload struct {
	client.Object
	template *corev1.PodTemplateSpec
	selector *metav1.LabelSelector
}

// component returns the name that init gives to the workload: that of its container.
func (w workload) component() string { return w.template.Spec.Containers[0].Name }

// volatile reports whether the data of etcd is lost with its pods.
func (w workload) volatile() bool {
	return w.component() == components.Etcd && slices.ContainsFunc(w.template.Spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil })
}

// rank has etcd first, then the API server.
func (w workload) rank() int {
	if i := slices.Index([]string{components.Etcd, components.APIServer}, w.component()); i >= 0 {
		return i
	}
	return rankAPIServer + 1
}

// rankAPIServer is the rank of the API server.
const rankAPIServer = 1

// workloads returns those in the namespace that mount Secrets, in the order in which they are restarted.
func (h *Hosted) workloads(ctx context.Context) ([]workload, error) {
	var out []workload
	deployments, sets := &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}
	for _, list := range []client.ObjectList{deployments, sets} {
		if err := h.client.List(ctx, list, h.scope...); err != nil {
			return nil, fmt.Errorf("listing the workloads in namespace %s: %w", h.Namespace, err)
		}
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		out = append(out, workload{d, &d.Spec.Template, d.Spec.Selector})
	}
	for i := range sets.Items {
		s := &sets.Items[i]
		out = append(out, workload{s, &s.Spec.Template, s.Spec.Selector})
	}
	slices.SortStableFunc(out, func(a, b workload) int { return cmp.Or(a.rank()-b.rank(), strings.Compare(a.GetName(), b.GetName())) })
	return out, nil
}

// pods returns the pods of a workload that are not ending.
func (h *Hosted) pods(ctx context.Context, w workload) ([]corev1.Pod, error) {
	list, err := h.api.CoreV1().Pods(h.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(w.selector)})
	if err != nil {
		return nil, fmt.Errorf("listing the pods of %s: %w", w.GetName(), err)
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }), nil
}

// secrets returns the data of the Secrets that the installation made.
func (h *Hosted) secrets(ctx context.Context) (map[string]map[string][]byte, error) {
	list := &corev1.SecretList{}
	if err := h.client.List(ctx, list, client.InNamespace(h.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the Secrets in namespace %s: %w", h.Namespace, err)
	}
	out := map[string]map[string][]byte{}
	for _, s := range list.Items {
		if s.Labels[components.BootstrapLabel] != "" || s.Labels["app.kubernetes.io/managed-by"] != "" {
			out[s.Name] = s.Data
		}
	}
	return out, nil
}

func (h *Hosted) rollOut(ctx context.Context, which restarts) error {
	workloads, err := h.workloads(ctx)
	if err != nil {
		return err
	}
	secrets, err := h.secrets(ctx)
	if err != nil {
		return err
	}
	tracker := rollout.NewTracker(h.api, h.Namespace, h.Now, nil)
	running, stop := context.WithCancel(ctx)
	defer stop()
	go tracker.Run(running)
	var all []*workloadUpdate
	for _, w := range workloads {
		data := components.SecretFiles(w.template.Spec.Volumes, func(name string) map[string][]byte { return secrets[name] })
		if len(data) > 0 {
			all = append(all, &workloadUpdate{Hosted: h, workload: w, files: data, tracker: tracker, which: which})
		}
	}
	first := slices.IndexFunc(all, func(s *workloadUpdate) bool { return s.rank() > rankAPIServer })
	if first < 0 {
		first = len(all)
	}
	for _, s := range all[:first] {
		if err := s.run(ctx); err != nil {
			return err
		}
	}
	// Those that are not restarted can be waited for at the same time.
	g, each := errgroup.WithContext(ctx)
	for _, s := range all[first:] {
		if !s.stale() {
			g.Go(func() error { return s.tryReload(each) })
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, s := range all[first:] {
		if err := s.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// workloadUpdate is how the pods of one workload come to use the files of now.
type workloadUpdate struct {
	*Hosted
	workload
	files   map[string][]byte
	tracker *rollout.Tracker
	which   restarts
	// tried is whether it was waited for that the pods take the files over, done whether they use them.
	tried, done bool
}

// stale reports whether the pods are restarted: their process loads once what is new, or may not run.
func (s *workloadUpdate) stale() bool {
	hash := components.ContentHash(s.component(), s.files)
	switch same := s.template.Annotations[components.ContentHashAnnotation] == hash; {
	case s.volatile():
		return false
	case s.which == restartAll && s.component() != components.Etcd:
		return true
	case s.which == restartForCertificates:
		return !same && slices.Contains([]string{components.APIServer, components.KubeControllerManager}, s.component())
	default:
		return !same
	}
}

// tryReload is reload without an error where restarting the pods helps.
func (s *workloadUpdate) tryReload(ctx context.Context) error {
	s.tried = true
	s.Progress.Begin(s.GetName())
	err := s.reload(ctx)
	switch s.done = err == nil; {
	case s.done:
		s.Progress.Done(s.GetName(), "uses the new certificates, not restarted")
	case s.volatile() || ctx.Err() != nil:
		return fmt.Errorf("%s: %w", s.GetName(), err)
	}
	return nil
}

// run returns when the pods use the files of now. They are restarted if their process does not take them over.
func (s *workloadUpdate) run(ctx context.Context) (err error) {
	if s.rank() == rankAPIServer && s.which != restartAll {
		if err := s.awaitEtcd(ctx); err != nil {
			return err
		}
	}
	if !s.stale() && !s.tried {
		if err := s.tryReload(ctx); err != nil {
			return err
		}
	}
	if s.done {
		return nil
	}
	defer progress.Begin(ctx, s.Progress, s.GetName(), &err)()
	annotations := map[string]string{components.ContentHashAnnotation: components.ContentHash(s.component(), s.files)}
	if s.template.Annotations[components.ContentHashAnnotation] == annotations[components.ContentHashAnnotation] {
		annotations[restartedAnnotation] = s.Now().UTC().Format(time.RFC3339)
	}
	if err := s.roll(ctx, annotations); err != nil {
		return fmt.Errorf("%s: %w", s.GetName(), err)
	}
	s.done = true
	return nil
}

// awaitEtcd waits until the API servers reach etcd, which may have restarted: one that ends while its requests hang does not close its
// connections, and clients notice late.
func (s *workloadUpdate) awaitEtcd(ctx context.Context) error {
	pods, err := s.pods(ctx, s.workload)
	if err != nil {
		return err
	}
	for i := range pods {
		http, err := rest.HTTPClientFor(&rest.Config{
			TLSClientConfig: rest.TLSClientConfig{Insecure: true}, // nothing is sent
			Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return s.forward.Pod(ctx, &pods[i], portOf(&pods[i], "server", 0))
			},
		})
		if err == nil {
			err = wait.Until(ctx, wait.Options{Timeout: s.Timeout}, func(ctx context.Context) error { return kube.CheckOK(ctx, http, "https://localhost/readyz") })
		}
		if err != nil {
			return fmt.Errorf("pod %s: %w", pods[i].Name, err)
		}
	}
	return nil
}

// restartedAnnotation is what kubectl sets on the pods of a workload that it restarts.
const restartedAnnotation = "kubectl.kubernetes.io/restartedAt"

// roll replaces the pods.
func (s *workloadUpdate) roll(ctx context.Context, annotations map[string]string) error {
	changed := s.DeepCopyObject().(client.Object)
	switch o := changed.(type) {
	case *appsv1.Deployment:
		o.Spec.Template.Annotations = merged(s.template.Annotations, annotations)
	case *appsv1.StatefulSet:
		o.Spec.Template.Annotations = merged(s.template.Annotations, annotations)
	}
	if err := s.client.Patch(ctx, changed, client.MergeFrom(s.Object), client.FieldOwner(write.FieldManager)); err != nil {
		return fmt.Errorf("restarting the pods: %w", err)
	}
	err := s.tracker.Wait(ctx, s.GetName(), s.Timeout, func(what string) { s.Progress.Waiting(s.GetName(), what) })
	if err = s.tracker.Explain(ctx, err, "--timeout", s.Timeout, s.GetName()); err != nil {
		return err
	}
	err = wait.Until(ctx, wait.Options{Timeout: s.Timeout}, s.used)
	if err != nil && !errors.Is(err, errSilent) {
		return err
	}
	s.Progress.Done(s.GetName(), "restarted")
	return nil
}

func merged(a, b map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

// reloadTimeout is how long pods may take to use new files: kubelets update the volumes of a pod that changed at once, others within
// about a minute.
const reloadTimeout = 100 * time.Second

// changedAnnotation on a pod makes its kubelet update the volumes.
const changedAnnotation = "karmada.io/certificates-changed"

// reload has kubelets update the volumes of the pods, and waits until the processes use them.
func (s *workloadUpdate) reload(ctx context.Context) error {
	pods, err := s.pods(ctx, s.workload)
	if err != nil {
		return err
	}
	sum := sha256.New()
	for _, key := range sortedKeys(s.files) {
		fmt.Fprintf(sum, "%s %d %s", key, len(s.files[key]), s.files[key])
	}
	version := hex.EncodeToString(sum.Sum(nil))[:16]
	for i := range pods {
		pod := &pods[i]
		if pod.Annotations[changedAnnotation] == version {
			continue
		}
		before := pod.DeepCopy()
		pod.Annotations = merged(pod.Annotations, map[string]string{changedAnnotation: version})
		if err := s.client.Patch(ctx, pod, client.MergeFrom(before), client.FieldOwner(write.FieldManager)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("marking pod %s: %w", pod.Name, err)
		}
	}
	return wait.Until(ctx, wait.Options{Timeout: reloadTimeout, Publish: func(reason error) {
		if reason != nil {
			s.Progress.Waiting(s.GetName(), reason.Error())
		}
	}}, s.used)
}

// errSilent is why it cannot be known which certificates a process uses.
var errSilent = errors.New("it does not show which certificates it uses")

// used returns why a pod does not use the files of now, or nil.
func (s *workloadUpdate) used(ctx context.Context) error {
	var contents []*content
	for key, data := range s.files {
		contents = append(contents, &content{Place: Place{Key: key}, data: data})
	}
	now := serialsIn(contents)
	pods, err := s.pods(ctx, s.workload)
	if err != nil {
		return err
	}
	if len(pods) == 0 {
		return nil // it is scaled to nothing
	}
	for i := range pods {
		serials, err := s.serials(ctx, &pods[i])
		if err != nil {
			return fmt.Errorf("pod %s: %w", pods[i].Name, err)
		}
		if j := slices.IndexFunc(serials, func(serial string) bool { return !now[serial] }); j >= 0 {
			return fmt.Errorf("pod %s to use its new certificates: it has %s", pods[i].Name, serials[j])
		}
	}
	return nil
}

// notFound reports whether an object, or a subresource, does not exist.
func notFound(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err)
}
