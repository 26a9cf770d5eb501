//go:build !kind

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
	"github.com/karmada-toolkit/karmada/pkg/insight/plan"
)

// predicted returns effects as lines.
func predicted(e *plan.Effects) []string {
	var out []string
	for _, o := range e.Objects {
		if o.PolicyBefore != o.PolicyAfter {
			out = append(out, fmt.Sprintf("%s/%s policy %q -> %q", o.Kind, o.Name, o.PolicyBefore, o.PolicyAfter))
		}
		for _, c := range o.Clusters {
			if c.Action != plan.ActionKeep && c.Action != plan.ActionRefuse {
				fields := slices.DeleteFunc(c.Fields, func(f string) bool { return strings.HasSuffix(f, corev1.LastAppliedConfigAnnotation) })
				if c.Action == plan.ActionUpdate && len(fields) == 0 {
					continue
				}
				out = append(out, fmt.Sprintf("%s/%s in %s: %s %d -> %d %s", o.Kind, o.Name, c.Name, c.Action, c.Before, c.After, strings.Join(fields, " ")))
			}
		}
	}
	slices.Sort(out)
	return out
}

// happened returns the differences of two states as lines.
func happened(before, after map[string]*unstructured.Unstructured) []string {
	all := maps.Clone(before)
	maps.Copy(all, after)
	var out []string
	for at, u := range all {
		was, is := before[at], after[at]
		cluster, _, _ := strings.Cut(at, " ")
		if cluster == "" {
			if a, b := holder(was), holder(is); a != b {
				out = append(out, fmt.Sprintf("%s/%s policy %q -> %q", u.GetKind(), u.GetName(), a, b))
			}
			continue
		}
		action, fields := plan.ActionUpdate, []string(nil)
		switch {
		case was == nil:
			action = plan.ActionCreate
		case is == nil:
			action = plan.ActionDelete
		default:
			for _, path := range manifest.Differences(was, is, 10) {
				fields = append(fields, path.String())
			}
			if len(fields) == 0 {
				continue
			}
		}
		out = append(out, fmt.Sprintf("%s/%s in %s: %s %d -> %d %s", u.GetKind(), u.GetName(), cluster, action, replicasOf(was), replicasOf(is), strings.Join(fields, " ")))
	}
	slices.Sort(out)
	return out
}

func replicasOf(u *unstructured.Unstructured) int64 {
	if u == nil {
		return 0
	}
	n, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if !found {
		n, _, _ = unstructured.NestedInt64(u.Object, "spec", "parallelism")
	}
	return n
}

// holder returns the policy that has a template.
func holder(u *unstructured.Unstructured) string {
	if u == nil {
		return ""
	}
	a := u.GetAnnotations()
	switch {
	case a[policyv1alpha1.PropagationPolicyNameAnnotation] != "":
		return fmt.Sprintf("PropagationPolicy %s/%s", a[policyv1alpha1.PropagationPolicyNamespaceAnnotation], a[policyv1alpha1.PropagationPolicyNameAnnotation])
	case a[policyv1alpha1.ClusterPropagationPolicyAnnotation] != "":
		return "ClusterPropagationPolicy " + a[policyv1alpha1.ClusterPropagationPolicyAnnotation]
	}
	return ""
}

// quiet waits until nothing changes any more, and returns the state.
func (p *truth) quiet(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	since := time.Now()
	state, _ := p.observe(t)
	for deadline := time.Now().Add(truthLimit); time.Now().Before(deadline) && time.Since(since) < truthQuiet; time.Sleep(150 * time.Millisecond) {
		next, working := p.observe(t)
		if working != "" || len(happened(state, next)) > 0 {
			since = time.Now()
		}
		state = next
	}
	return state
}

// observe returns the templates by " Kind/name", and the objects of clusters by "cluster Kind/name". working is what is under way.
func (p *truth) observe(t *testing.T) (out map[string]*unstructured.Unstructured, working string) {
	t.Helper()
	out = map[string]*unstructured.Unstructured{}
	left := map[string]bool{} // clusters with objects that a policy left there
	read := func(from dynamic.Interface, cluster string) {
		for _, resource := range truthKinds {
			list, err := from.Resource(resource).Namespace(p.ns).List(context.Background(), metav1.ListOptions{})
			if err != nil {
				working = err.Error()
				continue
			}
			for i := range list.Items {
				u := &list.Items[i]
				if u.GetName() == "kube-root-ca.crt" {
					continue
				}
				if cluster != "" {
					left[cluster] = left[cluster] || u.GetLabels()[workv1alpha2.ManagedByKarmadaLabel] == ""
					strip(u)
				}
				out[cluster+" "+u.GetKind()+"/"+u.GetName()] = u
			}
		}
	}
	read(p.control, "")
	for name, c := range p.members {
		if !p.lost[name] {
			read(c, name)
		}
	}
	p.evicted = map[string]bool{}
	of := workv1alpha2.GroupVersion.WithResource("clusterresourcebindings")
	if u, err := p.control.Resource(of).Get(context.Background(), p.ns+"-b-namespace", metav1.GetOptions{}); err == nil {
		tasks, _, _ := unstructured.NestedSlice(u.Object, "spec", "gracefulEvictionTasks")
		for _, task := range tasks {
			p.evicted[fmt.Sprintf("Namespace/%s-b in %v:", p.ns, task.(map[string]any)["fromCluster"])] = true
		}
	}
	for cluster, c := range p.members { // claims of StatefulSets that were there, and what was left, keep the namespace, which a plan says of each
		claims, err := c.Resource(schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}).Namespace(p.ns).List(context.Background(), metav1.ListOptions{})
		p.evicted["Namespace/"+p.ns+" in "+cluster+":"] = left[cluster] || err == nil && len(claims.Items) > 0
	}
	for _, name := range []string{p.ns, p.ns + "-b"} {
		readNamespace := func(from dynamic.Interface, cluster string) {
			u, err := from.Resource(truthNamespaces).Get(context.Background(), name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				return
			case err != nil:
				working = err.Error()
				return
			case u.GetDeletionTimestamp() != nil:
				working = "namespace " + name + " is being deleted in " + cluster
			}
			if cluster != "" {
				strip(u)
			}
			out[cluster+" Namespace/"+name] = u
		}
		readNamespace(p.control, "")
		for cluster, c := range p.members {
			if !p.lost[cluster] {
				readNamespace(c, cluster)
			}
		}
	}
	list, err := p.control.Resource(workv1alpha2.GroupVersion.WithResource("resourcebindings")).Namespace(p.ns).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return out, err.Error()
	}
	bindings := make([]*workv1alpha2.ResourceBinding, len(list.Items))
	leaving := map[string]bool{} // what ends after the grace period of an eviction without a replacement
	for i := range list.Items {
		bindings[i] = &workv1alpha2.ResourceBinding{}
		if err := kruntime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, bindings[i]); err != nil {
			t.Fatal(err)
		}
		for _, task := range bindings[i].Spec.GracefulEvictionTasks {
			leaving[bindings[i].Name+" "+task.FromCluster] = true
		}
	}
	for _, b := range bindings {
		for cluster := range p.members {
			needed := slices.ContainsFunc(b.Spec.Clusters, func(c workv1alpha2.TargetCluster) bool { return c.Name == cluster })
			evicted := leaving[b.Name+" "+cluster]
			for _, by := range b.Spec.RequiredBy {
				if slices.ContainsFunc(by.Clusters, func(c workv1alpha2.TargetCluster) bool { return c.Name == cluster }) {
					needed = needed || !leaving[by.Name+" "+cluster]
					evicted = true
				}
			}
			if evicted && !needed && !preserves(b, cluster) {
				delete(out, cluster+" "+b.Spec.Resource.Kind+"/"+b.Spec.Resource.Name)
			}
		}
		targets := slices.Clone(b.Spec.Clusters)
		for _, by := range b.Spec.RequiredBy {
			targets = append(targets, by.Clusters...)
		}
		for _, target := range targets { // one that has not reported, or that refused an object which is not there any more, gets it yet
			reported := slices.ContainsFunc(b.Status.AggregatedStatus, func(item workv1alpha2.AggregatedStatusItem) bool {
				return item.ClusterName == target.Name && (item.Applied || out[target.Name+" "+b.Spec.Resource.Kind+"/"+b.Spec.Resource.Name] != nil)
			})
			if !reported && !p.lost[target.Name] {
				working = fmt.Sprintf("%s %s is not in %s", b.Spec.Resource.Kind, b.Spec.Resource.Name, target.Name)
			}
		}
	}
	return out, working
}

// preserves reports whether a cluster keeps what it has when a binding leaves it.
func preserves(b *workv1alpha2.ResourceBinding, cluster string) bool {
	where := b.Annotations[workv1alpha2.PreservedWhereRequiredAnnotation] + "," + b.Annotations[workv1alpha2.PreservedWhereLeftAnnotation]
	return b.Spec.PreserveResourcesOnDeletion != nil && *b.Spec.PreserveResourcesOnDeletion || slices.Contains(strings.Split(where, ","), cluster)
}

// strip removes what the control plane and API servers write.
func strip(u *unstructured.Unstructured) {
	manifest.StripOwnership(u)
	for _, annotation := range []string{corev1.LastAppliedConfigAnnotation, "deployment.kubernetes.io/revision"} {
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", annotation)
	}
	for _, field := range []string{"annotations", "labels"} {
		if m, found, _ := unstructured.NestedMap(u.Object, "metadata", field); found && len(m) == 0 {
			unstructured.RemoveNestedField(u.Object, "metadata", field)
		}
	}
}
