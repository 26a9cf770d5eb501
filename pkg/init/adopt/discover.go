// Package adopt makes a control plane of Karmada one of this project: its roles are replaced one at a time where they are, with their
// arguments, credentials and Secrets. Its API server, Kubernetes' controllers, etcd and the agents of its clusters stay as they are.
package adopt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ownversion "github.com/karmada-toolkit/karmada/internal/version"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// Installer is what installed a control plane.
type Installer string

// The installers.
const (
	ByInit      Installer = "karmadactl init"
	ByChart     Installer = "the Helm chart"
	ByOperator  Installer = "karmada-operator"
	ByManifests Installer = "manifests"
)

const (
	// oldest and tooNew bound the versions that are taken over.
	oldest, tooNew = "1.16.0", "1.20.0"
	// helmRelease is the annotation with the name of a Helm release.
	helmRelease = "meta.helm.sh/release-name"
	// operatorName is the Deployment of Karmada's operator, nextOperator the release of that of this project beside it.
	operatorName, nextOperator = "karmada-operator", "karmada-operator-next"
)

// roles are the roles that are replaced, in their order: what the API server calls comes first, and who writes much last.
func roles() []string {
	return []string{
		components.Webhook, components.AggregatedAPIServer, components.Search, components.MetricsAdapter, components.Scheduler,
		components.Estimator, components.Descheduler, components.ControllerManager,
	}
}

// Component is a workload of a control plane.
type Component struct {
	// Role is the name of its program, such as karmada-scheduler.
	Role string `json:"role"`
	Name string `json:"name"`
	// Image is that of the container of the role, Version its tag. Target is the image that replaces it.
	Image   string `json:"image"`
	Version string `json:"version"`
	Target  string `json:"target"`
	// Notes are what is different afterwards.
	Notes []string `json:"notes,omitempty"`

	workload  client.Object
	pod       *corev1.PodSpec
	container int
}

// Adopted reports whether the component has the image already.
func (c *Component) Adopted() bool { return c.Image == c.Target }

// Plan is what an adoption would do.
type Plan struct {
	Namespace string    `json:"namespace"`
	Installer Installer `json:"installer"`
	// Release is the Helm release that has the workloads, unless another tool has the release.
	Release string `json:"release,omitempty"`
	// Operator is the namespace of the operator that has the workloads, unless another tool writes its Karmada.
	Operator string `json:"operator,omitempty"`
	// Version is the lowest of the versions of the roles.
	Version    string      `json:"version"`
	Components []Component `json:"components"`
	// Kept are the workloads that stay as they are.
	Kept []string `json:"kept,omitempty"`
	// Agents are those of clusters in Pull mode, which stay as they are.
	Agents []Agent `json:"agents,omitempty"`
	// Purges are the objects whose purge modes get their names of v1.19.
	Purges []string `json:"purges,omitempty"`
	// Refusals are why it cannot be done; empty if it can.
	Refusals []string `json:"refusals,omitempty"`
}

// Agent is that of a cluster in Pull mode.
type Agent struct {
	Cluster string `json:"cluster"`
	// Rights are those that it has afterwards.
	Rights Rights `json:"rights"`
}

// Rights are those of an agent.
type Rights string

// The rights of agents.
const (
	// RightsOfRegistration are what "register" of Karmada gave. The admission policy of agents limits them, as those of this project.
	RightsOfRegistration Rights = "those of its registration; the admission policy agents.karmada.io refuses writes about other clusters"
	// RightsUnknown are those of other credentials.
	RightsUnknown Rights = "not known: its credentials are not those of a registration, perhaps an administrator's, and nothing limits them"
)

// Images returns the image that replaces that of a role.
type Images func(role string) string

// discover finds the workloads of a control plane in a namespace of a host cluster. With withEtcd, etcd is one that is replaced.
func discover(ctx context.Context, host client.Client, namespace string, images Images, withEtcd bool) (*Plan, error) {
	list := &appsv1.DeploymentList{}
	if err := host.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the Deployments in namespace %s: %w", namespace, err)
	}
	p := &Plan{Namespace: namespace}
	var all []client.Object
	for i := range list.Items {
		d := &list.Items[i]
		if c := componentOf(d, images); c != nil {
			p.Components = append(p.Components, *c)
			all = append(all, d)
		} else if program := programOf(&d.Spec.Template.Spec, 0); program == apiServerProgram || program == components.KubeControllerManager {
			p.Kept = append(p.Kept, d.Name)
			all = append(all, d)
		}
	}
	sets := &appsv1.StatefulSetList{}
	if err := host.List(ctx, sets, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the StatefulSets in namespace %s: %w", namespace, err)
	}
	var etcd []Component
	for i := range sets.Items {
		switch s := &sets.Items[i]; {
		case programOf(&s.Spec.Template.Spec, 0) != components.Etcd:
		case withEtcd:
			etcd = append(etcd, etcdOf(s, images))
		default:
			p.Kept = append(p.Kept, s.Name)
		}
	}
	order := func(c Component) int { return slices.Index(roles(), c.Role) }
	slices.SortFunc(p.Components, func(a, b Component) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), strings.Compare(a.Name, b.Name))
	})
	p.Installer = installerOf(all)
	p.Version = lowest(p.Components)
	if p.Installer == ByOperator {
		operators := &appsv1.DeploymentList{}
		if err := host.List(ctx, operators, client.MatchingFields{metav1.ObjectNameField: operatorName}); err != nil {
			return nil, fmt.Errorf("looking for the operator: %w", err)
		}
		if len(operators.Items) > 0 {
			p.Operator = operators.Items[0].Namespace
		}
	}
	p.refuse(all, etcd)
	if p.Components = append(p.Components, etcd...); withEtcd && len(etcd) == 0 {
		p.Refusals = append(p.Refusals, "there is no etcd in namespace "+namespace+": leave out --etcd")
	}
	return p, nil
}

// manager returns the controller-manager, or nil.
func (p *Plan) manager() *Component {
	i := slices.IndexFunc(p.Components, func(c Component) bool { return c.Role == components.ControllerManager })
	if i < 0 {
		return nil
	}
	return &p.Components[i]
}

// componentOf returns the component that a Deployment is; nil for another workload.
func componentOf(d *appsv1.Deployment, images Images) *Component {
	for i := range d.Spec.Template.Spec.Containers {
		role := programOf(&d.Spec.Template.Spec, i)
		if !slices.Contains(roles(), role) {
			continue
		}
		image := d.Spec.Template.Spec.Containers[i].Image
		return &Component{Role: role, Name: d.Name, Image: image, Version: tag(image), Target: images(role), Notes: notes(role, &d.Spec.Template.Spec.Containers[i]), workload: d, pod: &d.Spec.Template.Spec, container: i}
	}
	return nil
}

// programOf returns the name of the program that a container runs.
func programOf(pod *corev1.PodSpec, container int) string {
	if container >= len(pod.Containers) || len(pod.Containers[container].Command) == 0 {
		return ""
	}
	return path.Base(pod.Containers[container].Command[0])
}

// tag returns the tag of an image; empty if it has none.
func tag(image string) string {
	name, _, _ := strings.Cut(image, "@")
	i := strings.LastIndex(name, ":")
	if i < strings.LastIndex(name, "/") || i < 0 {
		return ""
	}
	return name[i+1:]
}

// notes are what is different for the arguments of a role.
func notes(role string, c *corev1.Container) []string {
	var out []string
	for _, arg := range slices.Concat(c.Command, c.Args) {
		name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case role == components.ControllerManager && (name == "cluster-lease-duration" || name == "cluster-lease-renew-interval-fraction"):
			out = append(out, "--"+name+" has no effect, as from v1.18 on")
		case name == "kube-api-qps" || name == "kube-api-burst" || name == "cluster-api-qps" || name == "cluster-api-burst":
			out = append(out, "--"+name+"="+value+" limits requests; without it, priority and fairness of the servers do")
		}
	}
	if role == components.Webhook && !slices.ContainsFunc(slices.Concat(c.Command, c.Args), func(arg string) bool { return strings.HasPrefix(arg, "--client-ca-file") }) {
		out = append(out, "without --client-ca-file it answers every client that reaches it, as before")
	}
	return out
}

// installerOf returns what installed the workloads.
func installerOf(all []client.Object) Installer {
	for _, o := range all {
		labels := o.GetLabels()
		switch {
		case labels[components.ManagedByLabel] == components.ManagedByOperator:
			return ByOperator
		case labels[components.ManagedByLabel] == "Helm" || o.GetAnnotations()[helmRelease] != "":
			return ByChart
		case labels[components.BootstrapLabel] != "":
			return ByInit
		}
	}
	return ByManifests
}

// lowest returns the lowest version of components that are not adopted.
func lowest(all []Component) string {
	var out *version.Version
	for i := range all {
		v, err := version.ParseSemantic(all[i].Version)
		if err == nil && !all[i].Adopted() && (out == nil || v.LessThan(out)) {
			out = v
		}
	}
	if out == nil {
		return ""
	}
	return "v" + out.String()
}

// refuse adds why the adoption cannot be done. all are the workloads of the control plane, etcd are components that no release and no
// operator of this project writes.
func (p *Plan) refuse(all []client.Object, etcd []Component) {
	add := func(format string, args ...any) { p.Refusals = append(p.Refusals, fmt.Sprintf(format, args...)) }
	if len(p.Components) == 0 || p.manager() == nil {
		add("there is no karmada-controller-manager in namespace %s: name the namespace of the control plane with --namespace", p.Namespace)
		return
	}
	if p.Version != "" {
		v := version.MustParseSemantic(p.Version)
		if v.LessThan(version.MustParseSemantic(oldest)) || v.AtLeast(version.MustParseSemantic(tooNew)) {
			add("the control plane has %s: only v1.16 to v1.19 are taken over", p.Version)
		}
	}
	for i := range p.Components {
		p.Refusals = append(p.Refusals, p.Components[i].refusals()...)
	}
	for i := range etcd {
		p.Refusals = append(p.Refusals, etcd[i].etcdRefusals()...)
	}
	switch tool := p.writer(all); {
	case tool == "" || p.adopted() && (p.Release+p.Operator != "" || !slices.ContainsFunc(etcd, func(c Component) bool { return !c.Adopted() })):
	case p.Release != "":
		add("%s, which goes on with the chart of this project: run \"adopt --prepare\", then %q. The way back is %q, then \"adopt --rollback\"; \"adopt --finish\" ends it", tool, p.Upgrade(), p.Downgrade())
	case p.Operator != "":
		add("%s, in whose place that of this project goes on: run \"adopt --prepare\", then %q. The way back is %q, then \"adopt --rollback\"; \"adopt --finish\" ends it", tool, p.Upgrade(), p.Downgrade())
	default:
		add("%s, and would write the old images again. Run \"adopt --prepare\", have it set the images that --dry-run lists, and run \"adopt\" again", tool)
	}
}

// Upgrade returns the command that upgrades the Helm release of the control plane to the chart of this project, or puts the operator of
// this project in the place of that of Karmada.
func (p *Plan) Upgrade() string {
	release := ownversion.Get().Release()
	if p.Operator != "" {
		return fmt.Sprintf("kubectl scale deployment %[1]s -n %[2]s --replicas=0 && helm install %[3]s %[1]s-%[4]s.tgz -n %[2]s --set installCRDs=false --set operator.image.tag=%[5]s --wait",
			operatorName, p.Operator, nextOperator, strings.TrimPrefix(release, "v"), release)
	}
	return fmt.Sprintf("helm get values %[1]s -n %[2]s > values.yaml && helm upgrade %[1]s karmada-%[3]s.tgz -n %[2]s --reset-values -f values.yaml --set karmadaImageVersion=%[4]s --wait",
		p.Release, p.Namespace, strings.TrimPrefix(release, "v"), release)
}

// Downgrade returns the command that undoes Upgrade. The Job of the chart of this project cannot be changed.
func (p *Plan) Downgrade() string {
	if p.Operator != "" {
		return fmt.Sprintf("helm uninstall %[3]s -n %[2]s --wait && kubectl scale deployment %[1]s -n %[2]s --replicas=1", operatorName, p.Operator, nextOperator)
	}
	return fmt.Sprintf("kubectl delete job %[1]s-static-resource -n %[2]s --ignore-not-found && helm rollback %[1]s -n %[2]s --wait", p.Release, p.Namespace)
}

// refusals are why a component cannot be replaced.
func (c *Component) refusals() []string {
	var out []string
	if _, err := version.ParseSemantic(c.Version); err != nil && !c.Adopted() {
		out = append(out, fmt.Sprintf("the version of %s is not known: its image %s has no tag of a release", c.Name, c.Image))
	}
	if d, is := c.workload.(*appsv1.Deployment); is && (d.Spec.Paused || ptr.Deref(d.Spec.Replicas, 1) > 0 && d.Status.AvailableReplicas == 0) {
		out = append(out, fmt.Sprintf("%[1]s is not available: repair it first (kubectl describe deployment %[1]s -n %[2]s)", d.Name, d.Namespace))
	}
	return out
}

// adopted reports whether all components have their images already.
func (p *Plan) adopted() bool {
	return !slices.ContainsFunc(p.Components, func(c Component) bool { return !c.Adopted() })
}

// writer returns the tool that writes the workloads of the control plane again and again; empty for none. It sets Release.
func (p *Plan) writer(all []client.Object) string {
	for _, o := range all {
		labels, annotations := o.GetLabels(), o.GetAnnotations()
		switch {
		case annotations["argocd.argoproj.io/tracking-id"] != "" || labels["argocd.argoproj.io/instance"] != "":
			return "Argo CD writes " + o.GetName()
		case labels["kustomize.toolkit.fluxcd.io/name"] != "":
			return "Flux writes " + o.GetName() + " (Kustomization " + labels["kustomize.toolkit.fluxcd.io/name"] + ")"
		case labels["helm.toolkit.fluxcd.io/name"] != "":
			return "Flux writes " + o.GetName() + " (HelmRelease " + labels["helm.toolkit.fluxcd.io/name"] + ")"
		case p.Installer == ByChart:
			p.Release = annotations[helmRelease]
			return "Helm release " + p.Release + " has " + o.GetName()
		case p.Installer == ByOperator:
			return "the operator of Karmada " + labels[components.InstanceLabel] + " writes " + o.GetName()
		}
	}
	return ""
}

// errRefused is the error of a plan that cannot be done.
var errRefused = errors.New("this control plane cannot be adopted")

// Err returns why the adoption cannot be done, or nil.
func (p *Plan) Err() error {
	if len(p.Refusals) == 0 {
		return nil
	}
	return fmt.Errorf("%w; nothing was changed:\n  - %s", errRefused, strings.Join(p.Refusals, "\n  - "))
}
