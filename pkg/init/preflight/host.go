package preflight

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
	"github.com/karmada-toolkit/karmada/pkg/init/rollout"
)

const (
	// oldestHost is the oldest Kubernetes that supports the objects of a control plane.
	oldestHost = "1.24.0"
	// dnsGrace is how long the DNS of a new host may take to start.
	dnsGrace = 2 * time.Minute
)

// hostChecks are about the host cluster.
type hostChecks struct{ Deps }

func (c hostChecks) checkVersion(context.Context) ([]string, error) {
	have, err := version.ParseGeneric(c.Facts.Version.GitVersion)
	if err != nil {
		return nil, nil //nolint:nilerr // a version of another form is not compared
	}
	if have.LessThan(version.MustParseGeneric(oldestHost)) {
		return []string{fmt.Sprintf("the host cluster runs Kubernetes %s, which is too old: use %s or newer", c.Facts.Version.GitVersion, oldestHost)}, nil
	}
	return nil, nil
}

// checkNodePort checks that the port of the API server is free.
func (c hostChecks) checkNodePort(context.Context) ([]string, error) {
	want := c.Config.APIServer.NodePort
	for _, svc := range c.Facts.Services {
		if svc.Namespace == c.Config.APIServer.Namespace && svc.Name == components.APIServer {
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

// checkOperator finds a control plane that an operator owns in the namespace.
func (c hostChecks) checkOperator(context.Context) ([]string, error) {
	for i := range c.Facts.Deployments {
		d := &c.Facts.Deployments[i]
		if instance := d.Labels[components.InstanceLabel]; d.Labels[components.ManagedByLabel] == components.ManagedByOperator && instance != "" {
			return []string{fmt.Sprintf("namespace %[1]s has the control plane of Karmada %[2]s, which karmada-operator manages: change that (kubectl edit karmada %[2]s -n %[1]s), or choose another namespace with --namespace", d.Namespace, instance)}, nil
		}
	}
	return nil, nil
}

// checkNamespace finds objects of others with the names of the control plane's.
func (c hostChecks) checkNamespace(context.Context) ([]string, error) {
	ns := c.Facts.Namespace
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
	for i := range c.Facts.Deployments {
		if d := &c.Facts.Deployments[i]; slices.Contains(components.WorkloadNames(), d.Name) {
			check("Deployment", &d.ObjectMeta)
		}
	}
	if c.Facts.Etcd != nil && !c.Config.Etcd.External.Used() {
		check("StatefulSet", &c.Facts.Etcd.ObjectMeta)
	}
	return out, nil
}

// checkDNS finds a DNS of the host cluster that is not ready. Where its pods cannot be
// listed, there is no finding.
func (c hostChecks) checkDNS(ctx context.Context) ([]string, error) {
	pods, err := c.Host.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: "k8s-app=kube-dns"})
	if err != nil || len(pods.Items) == 0 {
		return nil, hostcluster.ConnectionError(err)
	}
	for i := range pods.Items {
		if rollout.PodReady(&pods.Items[i]) {
			return nil, nil
		}
	}
	r, stuck := rollout.PodReason(&pods.Items[0])
	if age := c.Now().Sub(pods.Items[0].CreationTimestamp.Time); age < dnsGrace && !stuck && !r.Crashed {
		return nil, nil // it is being started, and clients retry
	}
	return []string{fmt.Sprintf("the DNS of the host cluster does not answer: %s; see to it with \"kubectl -n kube-system describe pods -l k8s-app=kube-dns\"", r.Text)}, nil
}

func (c hostChecks) checkPullSecrets(ctx context.Context) ([]string, error) {
	var out []string
	for _, name := range c.Config.Images.PullSecrets {
		_, err := c.Host.CoreV1().Secrets(c.Config.APIServer.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			out = append(out, fmt.Sprintf("there is no Secret %s/%s for --image-pull-secrets: make the namespace and the Secret first", c.Config.APIServer.Namespace, name))
			continue
		}
		if err := hostcluster.ConnectionError(err); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c hostChecks) checkPriorityClasses(ctx context.Context) ([]string, error) {
	flags := map[string]string{}
	for _, w := range c.Config.Parts() {
		if w.PriorityClass != "" && w.PriorityClass != config.DefaultPriorityClass {
			flags[w.PriorityClass] = w.Flag
		}
	}
	var out []string
	for name, flag := range flags {
		_, err := c.Host.SchedulingV1().PriorityClasses().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			out = append(out, fmt.Sprintf("there is no PriorityClass %q for --%s-priority-class: make it, or choose another", name, flag))
			continue
		}
		if err := hostcluster.ConnectionError(err); err != nil {
			return nil, err
		}
	}
	return out, nil
}
