package installer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/rollout"
)

// oldestHost is the oldest Kubernetes that the objects of a control plane are
// understood by.
const oldestHost = "1.24.0"

// preflight checks everything that can be before anything is written, and reports
// all findings together.
func (s *state) preflight(ctx context.Context) error {
	var mu sync.Mutex
	var findings []string
	g, ctx := errgroup.WithContext(ctx)
	for _, check := range []func(context.Context) ([]string, error){
		s.checkVersion, s.checkPermissions, s.checkNodePort, s.checkNamespace, s.checkStorage,
		s.checkDNS, s.checkDirectory, s.checkPullSecrets, s.checkPriorityClasses, s.checkEtcdChange,
	} {
		g.Go(func() error {
			found, err := check(ctx)
			mu.Lock()
			findings = append(findings, found...)
			mu.Unlock()
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	slices.Sort(findings)
	findings = slices.Compact(findings)
	switch len(findings) {
	case 0:
	case 1:
		return errors.New(findings[0])
	default:
		return fmt.Errorf("nothing was changed; first:\n  - %s", strings.Join(findings, "\n  - "))
	}
	s.Progress.Done(phasePreflight, "nothing is in the way")
	return nil
}

func (s *state) checkVersion(context.Context) ([]string, error) {
	have, err := version.ParseGeneric(s.facts.version.GitVersion)
	if err != nil {
		return nil, nil //nolint:nilerr // a version of another form says nothing
	}
	if have.LessThan(version.MustParseGeneric(oldestHost)) {
		return []string{fmt.Sprintf("the host cluster runs Kubernetes %s, which is too old: use %s or newer", s.facts.version.GitVersion, oldestHost)}, nil
	}
	return nil, nil
}

// permission is something that an installation does in the host cluster.
type permission struct {
	group, resource string
	verbs           []string
	clusterWide     bool
	name            string
}

func (s *state) permissions() []permission {
	write := []string{"get", "create", "patch"}
	out := []permission{
		{resource: "namespaces", verbs: write, clusterWide: true, name: s.options.Namespace},
		{resource: "secrets", verbs: write},
		{resource: "services", verbs: write},
		{group: "apps", resource: "deployments", verbs: append([]string{"list"}, write...)},
		{resource: "pods", verbs: []string{"list"}},
	}
	if !s.options.external() {
		out = append(out, permission{group: "apps", resource: "statefulsets", verbs: append([]string{"list"}, write...)})
		if s.options.Etcd.StorageMode == components.StorageHostPath && s.options.Etcd.NodeSelector == "" {
			out = append(out, permission{resource: "nodes", verbs: []string{"list", "patch"}, clusterWide: true})
		}
	}
	return out
}

// checkPermissions asks the host cluster what the user may do.
func (s *state) checkPermissions(ctx context.Context) ([]string, error) {
	var mu sync.Mutex
	missing := map[string][]string{}
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range s.permissions() {
		for _, verb := range p.verbs {
			g.Go(func() error {
				attributes := &authorizationv1.ResourceAttributes{Verb: verb, Group: p.group, Resource: p.resource, Name: p.name, Namespace: s.options.Namespace}
				if p.clusterWide {
					attributes.Namespace = ""
				}
				review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes}}
				answer, err := s.hostAPI.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
				if err != nil {
					return connectionOnly(err)
				}
				if !answer.Status.Allowed {
					mu.Lock()
					missing[p.resource] = append(missing[p.resource], verb)
					mu.Unlock()
				}
				return nil
			})
		}
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("asking the host cluster what is allowed: %w", err)
	}
	var out []string
	for resource, verbs := range missing {
		slices.Sort(verbs)
		out = append(out, fmt.Sprintf("the user of the host cluster may not %s %s: use another --context, or have it allowed", strings.Join(verbs, ", "), resource))
	}
	return out, nil
}

// checkNodePort sees whether the port of the API server is free.
func (s *state) checkNodePort(context.Context) ([]string, error) {
	want := s.options.APIServer.NodePort
	for _, svc := range s.facts.services {
		if svc.Namespace == s.options.Namespace && svc.Name == components.APIServer {
			if slices.ContainsFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort == want }) {
				return nil, nil
			}
			continue
		}
		for _, p := range svc.Spec.Ports {
			if p.NodePort == want {
				return []string{fmt.Sprintf("nodePort of karmada apiserver %d already exist: Service %s/%s has it; choose another with --port", want, svc.Namespace, svc.Name)}, nil
			}
		}
	}
	return nil, nil
}

// checkNamespace sees that nothing in the namespace is another's.
func (s *state) checkNamespace(ctx context.Context) ([]string, error) {
	ns := s.facts.namespace
	if ns == nil {
		return nil, nil
	}
	if ns.DeletionTimestamp != nil {
		return []string{fmt.Sprintf("namespace %s is being deleted: wait until it is gone, or choose another with --namespace", ns.Name)}, nil
	}
	var out []string
	check := func(kind string, m *metav1.ObjectMeta) {
		if _, ok := m.Labels[components.BootstrapLabel]; !ok {
			out = append(out, fmt.Sprintf("%s %s/%s is there already and was not made by init: choose another --namespace, or remove it", kind, ns.Name, m.Name))
		}
	}
	deployments, err := s.hostAPI.AppsV1().Deployments(ns.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, connectionOnly(err)
	}
	for i := range deployments.Items {
		if d := &deployments.Items[i]; slices.Contains(components.WorkloadNames(), d.Name) {
			check("Deployment", &d.ObjectMeta)
		}
	}
	if s.facts.etcd != nil && !s.options.external() {
		check("StatefulSet", &s.facts.etcd.ObjectMeta)
	}
	return out, nil
}

// checkStorage sees that etcd has a place for its data.
func (s *state) checkStorage(ctx context.Context) ([]string, error) {
	if s.options.external() {
		return nil, nil
	}
	switch s.options.Etcd.StorageMode {
	case components.StorageHostPath:
		if _, _, err := s.facts.etcdNode(s.options); err != nil {
			return []string{err.Error()}, nil //nolint:nilerr // it is a finding
		}
		return s.checkDataPath(ctx)
	case components.StoragePVC:
		return s.checkClaims(ctx)
	}
	return nil, nil
}

// checkDataPath sees that no other control plane has its data in the directory.
func (s *state) checkDataPath(ctx context.Context) ([]string, error) {
	sets, err := s.hostAPI.AppsV1().StatefulSets(metav1.NamespaceAll).List(ctx, ours())
	if err != nil {
		return nil, connectionOnly(err)
	}
	for i := range sets.Items {
		set := &sets.Items[i]
		if set.Namespace == s.options.Namespace {
			continue
		}
		for _, v := range set.Spec.Template.Spec.Volumes {
			if v.HostPath != nil && v.HostPath.Path == s.options.Etcd.DataPath {
				return []string{fmt.Sprintf("the control plane in namespace %s keeps its data in %s: choose another directory with --etcd-data", set.Namespace, v.HostPath.Path)}, nil
			}
		}
	}
	return nil, nil
}

// checkClaims sees that there is a StorageClass, or a volume for each member.
func (s *state) checkClaims(ctx context.Context) ([]string, error) {
	e := &s.options.Etcd
	if s.facts.etcd != nil {
		return nil, nil // its claims are there
	}
	_, err := s.hostAPI.StorageV1().StorageClasses().Get(ctx, e.StorageClass, metav1.GetOptions{})
	if err == nil || !apierrors.IsNotFound(err) {
		return nil, connectionOnly(err)
	}
	volumes, err := s.hostAPI.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, connectionOnly(err)
	}
	size := resource.MustParse(e.PVCSize)
	fit := int32(0)
	for i := range volumes.Items {
		v := &volumes.Items[i]
		capacity := v.Spec.Capacity[corev1.ResourceStorage]
		if v.Spec.StorageClassName == e.StorageClass && capacity.Cmp(size) >= 0 && slices.Contains(v.Spec.AccessModes, corev1.ReadWriteOnce) {
			fit++
		}
	}
	if fit < e.Replicas {
		return []string{fmt.Sprintf("there is no StorageClass %q, and %d of %d PersistentVolumes of that class with at least %s: make them, or choose another class with --storage-classes-name", e.StorageClass, fit, e.Replicas, e.PVCSize)}, nil
	}
	return nil, nil
}

// checkEtcdChange refuses what etcd cannot do once it has data.
func (s *state) checkEtcdChange(context.Context) ([]string, error) {
	old := s.facts.etcd
	if old == nil || s.options.external() {
		return nil, nil
	}
	var out []string
	if n := s.options.Etcd.Replicas; old.Spec.Replicas != nil && *old.Spec.Replicas != n {
		out = append(out, fmt.Sprintf("etcd has %d members, not %d: init cannot change their number; keep --etcd-replicas=%d, or run deinit first", *old.Spec.Replicas, n, *old.Spec.Replicas))
	}
	have := components.StorageEmptyDir
	if len(old.Spec.VolumeClaimTemplates) > 0 {
		have = components.StoragePVC
	}
	for _, v := range old.Spec.Template.Spec.Volumes {
		if v.HostPath != nil {
			have = components.StorageHostPath
		}
	}
	want := s.options.Etcd.StorageMode
	if want == "" {
		want = components.StorageEmptyDir
	}
	if have != want {
		out = append(out, fmt.Sprintf("etcd keeps its data in storage mode %s, not %s: init cannot move it; keep --etcd-storage-mode=%s, or run deinit first", have, want, have))
	}
	return out, nil
}

// dnsGrace is how long the DNS of a new host may take to start.
const dnsGrace = 2 * time.Minute

// checkDNS sees that somebody answers for names in the host cluster. Where it does
// not show, nothing is said.
func (s *state) checkDNS(ctx context.Context) ([]string, error) {
	pods, err := s.hostAPI.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: "k8s-app=kube-dns"})
	if err != nil || len(pods.Items) == 0 {
		return nil, connectionOnly(err)
	}
	for i := range pods.Items {
		if rollout.PodReady(&pods.Items[i]) {
			return nil, nil
		}
	}
	r, stuck := rollout.PodReason(&pods.Items[0])
	if age := s.Now().Sub(pods.Items[0].CreationTimestamp.Time); age < dnsGrace && !stuck && !r.Crashed {
		return nil, nil // it is being started, and what needs names asks again
	}
	return []string{fmt.Sprintf("the DNS of the host cluster does not answer: %s; see to it with \"kubectl -n kube-system describe pods -l k8s-app=kube-dns\"", r.Text)}, nil
}

// checkDirectory sees that local files can be written and are not those of a
// control plane that is in use.
func (s *state) checkDirectory(ctx context.Context) ([]string, error) {
	d := s.options.directory()
	if err := d.writable(); err != nil {
		return []string{err.Error()}, nil //nolint:nilerr // it is a finding
	}
	if d.ours(s.owner(), s.facts.certificates) {
		return nil, nil
	}
	if who, ok := d.owner(); ok && who.HostID == s.facts.id {
		_, err := s.hostAPI.CoreV1().Secrets(who.Namespace).Get(ctx, components.CertSecret, metav1.GetOptions{})
		if err == nil {
			return []string{fmt.Sprintf("the files in %s are of the control plane in namespace %s of this cluster: choose another directory with --karmada-data", d.data, who.Namespace)}, nil
		}
		if err := connectionOnly(err); err != nil {
			return nil, err
		}
	}
	if server, ok := d.alive(ctx); ok {
		return []string{fmt.Sprintf("the files in %s are of another control plane, at %s: choose another directory with --karmada-data", d.data, server)}, nil
	}
	return nil, nil
}

func (s *state) checkPullSecrets(ctx context.Context) ([]string, error) {
	var out []string
	for _, name := range s.options.Images.PullSecrets {
		_, err := s.hostAPI.CoreV1().Secrets(s.options.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			out = append(out, fmt.Sprintf("there is no Secret %s/%s for --image-pull-secrets: make the namespace and the Secret first", s.options.Namespace, name))
			continue
		}
		if err := connectionOnly(err); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *state) checkPriorityClasses(ctx context.Context) ([]string, error) {
	flags := map[string]string{}
	for _, c := range s.options.named() {
		if c.PriorityClass != "" && c.PriorityClass != defaultPriority {
			flags[c.PriorityClass] = c.flag
		}
	}
	var out []string
	for name, flag := range flags {
		_, err := s.hostAPI.SchedulingV1().PriorityClasses().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			out = append(out, fmt.Sprintf("there is no PriorityClass %q for --%s-priority-class: make it, or choose another", name, flag))
			continue
		}
		if err := connectionOnly(err); err != nil {
			return nil, err
		}
	}
	return out, nil
}
