package describe

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/describe"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
	"github.com/karmada-toolkit/karmada/pkg/insight/why"
	"github.com/karmada-toolkit/karmada/pkg/member"
	"github.com/karmada-toolkit/karmada/pkg/operate/failover"
)

// maxEvictions is the number of evictions from a cluster that are listed.
const maxEvictions = 10

// clusterDescriber puts a summary before the description of a member cluster, and
// counts the APIs in it.
type clusterDescriber struct {
	ctx      context.Context //nolint:containedctx // the interface of describers has none
	access   *env.Access
	now      func() time.Time
	showAPIs bool
	next     describe.ResourceDescriber
}

// Describe implements describe.ResourceDescriber.
func (d clusterDescriber) Describe(namespace, name string, settings describe.DescriberSettings) (string, error) {
	cluster, err := d.access.ControlPlane.Cluster(d.ctx, name)
	if err != nil {
		return "", err
	}
	rest, err := d.next.Describe(namespace, name, settings)
	if err != nil {
		return "", err
	}
	rest = masked(rest, cluster)
	if !d.showAPIs {
		rest = withoutSection(rest, "API Enablements")
	}
	evictions, err := d.evictions(name)
	if err != nil {
		return "", err
	}
	head, err := summary(cluster, evictions, d.now())
	if err != nil {
		return "", err
	}
	return head + "\n" + rest, nil
}

// masked returns the description of a cluster without the credentials for its proxy.
func masked(text string, c *clusterv1alpha1.Cluster) string {
	text = withoutSection(text, "Proxy Header")
	if c.Spec.ProxyURL == "" {
		return text
	}
	return strings.ReplaceAll(text, c.Spec.ProxyURL, manifest.MaskUser(c.Spec.ProxyURL))
}

// evictions returns the evictions from a cluster that are under way; none if the bindings may not be read.
func (d clusterDescriber) evictions(cluster string) ([]failover.Eviction, error) {
	c, err := d.access.ControlPlane.Client()
	if err != nil {
		return nil, err
	}
	evictions, err := failover.From(d.ctx, c, cluster)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	return evictions, err
}

// summary returns the most important properties of a cluster, and the evictions from it that are under way.
func summary(c *clusterv1alpha1.Cluster, evictions []failover.Eviction, now time.Time) (string, error) {
	var out bytes.Buffer
	w := printers.GetNewTabWriter(&out)
	line := func(name, value string) { _, _ = fmt.Fprintf(w, "%s:\t%s\n", name, value) } // Flush returns errors
	line("Summary", c.Name)
	line("  Ready", readyOf(c, now))
	line("  Mode", string(c.Spec.SyncMode))
	line("  Version", orNone(c.Status.KubernetesVersion))
	line("  Schedulable", schedulableOf(c))
	if len(c.Spec.ProxyHeader) > 0 {
		line("  Proxy headers", fmt.Sprintf("%d, whose values are not shown", len(c.Spec.ProxyHeader)))
	}
	line("  Taints", orNone(member.FormatTaints(c.Spec.Taints)))
	leaving := evictionLines(evictions, now)
	if stopped := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionEvictionsStopped); stopped != nil && stopped.Status == metav1.ConditionTrue {
		leaving = slices.Insert(leaving, 0, "stopped: "+oneLine(stopped.Message))
	}
	lines(w, "  Evictions", leaving)
	if n := c.Status.NodeSummary; n != nil {
		line("  Nodes", fmt.Sprintf("%d, %d ready", n.TotalNum, n.ReadyNum))
	}
	capacityLines(c.Status.ResourceSummary, line)
	kinds := 0
	for _, group := range c.Status.APIEnablements {
		kinds += len(group.Resources)
	}
	line("  APIs", fmt.Sprintf("%d kinds in %d versions of groups (--show-apis lists them)", kinds, len(c.Status.APIEnablements)))
	lines(w, "  Problems", problemsOf(c))
	if err := w.Flush(); err != nil {
		return "", fmt.Errorf("printing the summary of cluster %s: %w", c.Name, err)
	}
	return out.String(), nil
}

// lines prints a property with any number of values, one on each line.
func lines(w io.Writer, name string, values []string) {
	if len(values) == 0 {
		values = []string{"<none>"}
	}
	name += ":"
	for _, value := range values {
		_, _ = fmt.Fprintf(w, "%s\t%s\n", name, value) // Flush returns errors
		name = "  "
	}
}

// evictionLines returns the evictions that are under way, in words; only their number if they are many.
func evictionLines(evictions []failover.Eviction, now time.Time) []string {
	var out []string
	for i := range evictions {
		if i == maxEvictions {
			return append(out, fmt.Sprintf("and %d more", len(evictions)-i))
		}
		e := &evictions[i]
		name := e.Workload
		if e.Namespace != "" {
			name = e.Namespace + "/" + name
		}
		if e.Replicas > 0 {
			name += fmt.Sprintf(", %d replicas", e.Replicas)
		}
		out = append(out, name+": "+e.Progress(now))
	}
	return out
}

// readyOf returns the Ready condition in words.
func readyOf(c *clusterv1alpha1.Cluster, now time.Time) string {
	ready := c.ReadyCondition()
	if ready == nil {
		return "Unknown (not reported yet)"
	}
	text := string(ready.Status)
	if why := strings.TrimSuffix(strings.TrimPrefix(ready.Reason+": "+ready.Message, ": "), ": "); why != "" {
		text += " (" + oneLine(why) + ")"
	}
	if !ready.LastTransitionTime.IsZero() {
		text += " for " + duration.HumanDuration(now.Sub(ready.LastTransitionTime.Time))
	}
	return text
}

func schedulableOf(c *clusterv1alpha1.Cluster) string {
	switch {
	case !c.DeletionTimestamp.IsZero():
		return "No (the cluster is being removed)"
	case slices.ContainsFunc(c.Spec.Taints, clustercondition.Cordons):
		return "No (cordoned)"
	}
	var needed []string
	for i := range c.Spec.Taints {
		if t := &c.Spec.Taints[i]; t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute {
			needed = append(needed, t.ToString())
		}
	}
	if len(needed) > 0 {
		text := "Only with tolerations of " + strings.Join(needed, ", ")
		if flaps := clustercondition.Flaps(c); flaps != "" {
			text += " (" + oneLine(flaps) + ")"
		}
		return text
	}
	return "Yes"
}

// capacityLines prints what is used, scheduled pods that do not run yet included, and
// what is free of each resource.
func capacityLines(s *clusterv1alpha1.ResourceSummary, line func(name, value string)) {
	if s == nil {
		line("  Capacity", "<unknown>")
		return
	}
	names := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}
	var others []corev1.ResourceName
	for name := range s.Allocatable {
		if !slices.Contains(names, name) {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	for _, name := range append(names, others...) {
		all, ok := s.Allocatable[name]
		if !ok {
			continue
		}
		used := sum(s.Allocated[name], s.Allocating[name])
		free := all.DeepCopy()
		free.Sub(used)
		if free.Sign() < 0 {
			free = *resource.NewQuantity(0, all.Format)
		}
		line("  Capacity of "+string(name), amounts(name, used, free, all))
	}
}

// amounts returns what is used and free in the unit of the whole amount.
func amounts(name corev1.ResourceName, used, free, all resource.Quantity) string {
	text := func(q resource.Quantity) string { return q.String() }
	switch {
	case name == corev1.ResourceCPU:
		text = func(q resource.Quantity) string { return decimal(float64(q.MilliValue())/1000, 1000) }
	case all.Format == resource.BinarySI:
		unit, name := unitOf(all.Value())
		text = func(q resource.Quantity) string { return decimal(float64(q.Value())/float64(unit), 10) + name }
	}
	return fmt.Sprintf("%s used, %s free of %s", text(used), text(free), text(all))
}

// unitOf returns the largest binary unit of which there are 10 in a number of bytes.
func unitOf(value int64) (unit int64, name string) {
	unit, names := int64(1), []string{"", "Ki", "Mi", "Gi", "Ti", "Pi"}
	for i := range names {
		if name = names[i]; value/unit < 10*1024 || i == len(names)-1 {
			break
		}
		unit *= 1024
	}
	return unit, name
}

// decimal returns a number rounded to a fraction of 1/parts, without zeros at the end.
func decimal(value, parts float64) string {
	return strconv.FormatFloat(math.Round(value*parts)/parts, 'f', -1, 64)
}

func sum(a, b resource.Quantity) resource.Quantity {
	out := a.DeepCopy()
	out.Add(b)
	return out
}

// problemsOf returns what keeps a cluster from working as it should.
func problemsOf(c *clusterv1alpha1.Cluster) []string {
	var out []string
	for _, condition := range c.Status.Conditions {
		if why.BadIfTrue(condition.Type) == (condition.Status == metav1.ConditionTrue) {
			out = append(out, oneLine(fmt.Sprintf("%s is %s: %s", condition.Type, condition.Status, strings.Trim(condition.Reason+": "+condition.Message, ": "))))
		}
	}
	if n := c.Status.NodeSummary; n != nil && n.ReadyNum < n.TotalNum {
		out = append(out, fmt.Sprintf("%d of %d nodes are not ready", n.TotalNum-n.ReadyNum, n.TotalNum))
	}
	if !c.DeletionTimestamp.IsZero() {
		out = append(out, "the cluster is being removed; finalizers: "+orNone(strings.Join(c.Finalizers, ", ")))
	}
	if c.Spec.SyncMode == clusterv1alpha1.Push && c.Spec.ImpersonatorSecretRef == nil {
		out = append(out, "no impersonatorSecretRef: users cannot reach the cluster through the control plane")
	}
	return out
}

// withoutSection removes a section from a description: its heading and the lines that
// are indented more.
func withoutSection(text, heading string) string {
	var out []string
	skip := -1
	for line := range strings.SplitSeq(text, "\n") {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if skip >= 0 && indent > skip {
			continue
		}
		skip = -1
		if strings.TrimSpace(line) == heading+":" {
			skip = indent
			continue
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}
