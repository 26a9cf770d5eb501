package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/ptr"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/member/orphan"
	"github.com/karmada-toolkit/karmada/pkg/member/registration/agentcert"
)

// agent returns the cluster whose agent makes the request, and whether an agent
// makes it.
func agent(ctx context.Context) (cluster string, ok bool) {
	user, ok := genericrequest.UserFrom(ctx)
	if !ok || user == nil {
		return "", false
	}
	cluster, ok = names.ClusterOfAgentUser(user.GetName())
	return cluster, ok || slices.Contains(user.GetGroups(), names.AgentGroup)
}

// List implements rest.Lister. An agent sees its own cluster.
func (c *Clusters) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	list, err := c.Store.List(ctx, visible(ctx, options))
	return c.view(ctx, list, err)
}

// Watch implements rest.Watcher. An agent sees its own cluster.
func (c *Clusters) Watch(ctx context.Context, options *metainternalversion.ListOptions) (watch.Interface, error) {
	seen, err := c.ids.credentials.seen(ctx)
	if err != nil {
		return nil, err
	}
	events, err := c.Store.Watch(ctx, visible(ctx, options))
	if err != nil || seen {
		return events, err
	}
	return hiding(events), nil
}

// visible narrows down what is listed to what the requester may see.
func visible(ctx context.Context, options *metainternalversion.ListOptions) *metainternalversion.ListOptions {
	cluster, ok := agent(ctx)
	if !ok {
		return options
	}
	out := &metainternalversion.ListOptions{}
	if options != nil {
		out = options.DeepCopy()
	}
	own := fields.OneTermEqualSelector("metadata.name", cluster)
	if out.FieldSelector != nil {
		own = fields.AndSelectors(out.FieldSelector, own)
	}
	out.FieldSelector = own
	return out
}

// checkAgent refuses what an agent must not write: other clusters, what decides
// what is sent to its cluster, and references to the credentials of others, which
// the proxy would hand over. A nil old is a creation. With loopback, the cluster may
// be on the control plane's own machine.
func checkAgent(ctx context.Context, updated, old *clusterv1alpha1.Cluster, loopback bool) error {
	name, ok := agent(ctx)
	if !ok {
		return nil
	}
	forbid := func(format string, args ...any) error {
		return apierrors.NewForbidden(clusterv1alpha1.Resource("clusters"), updated.Name, fmt.Errorf(format, args...))
	}
	if updated.Name != name {
		return forbid("an agent may write its own cluster only")
	}
	if old == nil {
		return forbid("an agent does not register its cluster itself; use \"register\"")
	}
	for _, ref := range []*clusterv1alpha1.LocalSecretReference{updated.Spec.SecretRef, updated.Spec.ImpersonatorSecretRef} {
		if ref != nil && !ownSecret(*ref, old) {
			return forbid("an agent may refer to the Secrets of its own cluster only, not to %s/%s", ref.Namespace, ref.Name)
		}
	}
	if err := errors.Join(kept(updated, old), checkAccess(&updated.Spec, &old.Spec, loopback)); err != nil {
		return forbid("%w", err)
	}
	return nil
}

func ownSecret(ref clusterv1alpha1.LocalSecretReference, c *clusterv1alpha1.Cluster) bool {
	namespace := cmp.Or(c.Annotations[agentcert.NamespaceAnnotation], clusterv1alpha1.NamespaceKarmadaCluster)
	return ref.Namespace == namespace && (ref.Name == names.CredentialsSecret(c.Name) || ref.Name == names.ImpersonatorSecret(c.Name))
}

// kept returns what an agent changed although only the control plane may.
func kept(updated, old *clusterv1alpha1.Cluster) error {
	same := equality.Semantic.DeepEqual
	switch {
	case updated.Spec.SyncMode != old.Spec.SyncMode:
		return errors.New("an agent may not change spec.syncMode")
	case old.Spec.ID != "" && updated.Spec.ID != old.Spec.ID:
		return errors.New("an agent may not change spec.id: the name is of another cluster")
	case updated.Spec.Provider != old.Spec.Provider, updated.Spec.Region != old.Spec.Region,
		updated.Spec.Zone != old.Spec.Zone, !same(updated.Spec.Zones, old.Spec.Zones):
		return errors.New("an agent may not change spec.provider, spec.region and spec.zones: policies choose clusters by them; an administrator of the control plane may")
	case !same(updated.Spec.ResourceModels, old.Spec.ResourceModels):
		return errors.New("an agent may not change spec.resourceModels: the scheduler chooses clusters by them; an administrator of the control plane may")
	case !same(updated.Spec.Taints, old.Spec.Taints):
		return errors.New("an agent may not change spec.taints")
	case !same(updated.Finalizers, old.Finalizers):
		return errors.New("an agent may not change metadata.finalizers")
	case !same(updated.OwnerReferences, old.OwnerReferences):
		return errors.New("an agent may not change metadata.ownerReferences")
	case !same(updated.Labels, old.Labels):
		return errors.New("an agent may not change metadata.labels: policies choose clusters by them")
	case !maps.Equal(ours(updated.Annotations), ours(old.Annotations)):
		return errors.New("an agent may not change annotations of karmada.io")
	}
	return nil
}

const (
	// maxAgentCluster is how large a Cluster may become by what its agent writes, in bytes: etcd stores 1.5 MiB, so that what
	// administrators and controllers write always fits.
	maxAgentCluster = 768 << 10
	// maxConditions, maxAPIs and maxEntries limit lists and maps that an agent writes, maxToken the texts of conditions that are words.
	maxConditions, maxAPIs, maxEntries, maxToken = 64, 20_000, 1024, 1024
)

// limitAgent refuses what an agent writes beyond the limits, in a Cluster or its status, where it is more than before.
func limitAgent(ctx context.Context, updated, old *clusterv1alpha1.Cluster) field.ErrorList {
	if _, ok := agent(ctx); !ok {
		return nil
	}
	var out field.ErrorList
	before := agentLists(old)
	for i, list := range agentLists(updated) {
		if list.count > list.limit && list.count > before[i].count {
			out = append(out, field.TooMany(field.NewPath(list.path), list.count, list.limit))
		}
	}
	for i := range updated.Status.Conditions {
		if c := &updated.Status.Conditions[i]; len(c.Type) > maxToken || len(c.Reason) > maxToken {
			out = append(out, field.TooLong(field.NewPath("status", "conditions").Index(i), "", maxToken))
		}
	}
	if len(out) > 0 {
		return out
	}
	if size := sizeOf(updated); size > maxAgentCluster && size > sizeOf(old) {
		out = append(out, field.TooLong(field.NewPath("status"), "", maxAgentCluster))
	}
	return out
}

// agentList is a list or map of a Cluster that its agent may write.
type agentList struct {
	path         string
	count, limit int
}

func agentLists(c *clusterv1alpha1.Cluster) []agentList {
	apis, resources := len(c.Status.APIEnablements), 0
	for i := range c.Status.APIEnablements {
		resources += len(c.Status.APIEnablements[i].Resources)
	}
	summary := ptr.Deref(c.Status.ResourceSummary, clusterv1alpha1.ResourceSummary{})
	return []agentList{
		{"metadata.annotations", len(c.Annotations), maxEntries}, {"metadata.managedFields", len(c.ManagedFields), maxEntries},
		{"spec.proxyHeader", len(c.Spec.ProxyHeader), maxEntries},
		{"status.apiEnablements", apis, maxEntries}, {"status.apiEnablements[*].resources", resources, maxAPIs},
		{"status.conditions", len(c.Status.Conditions), maxConditions}, {"status.remedyActions", len(c.Status.RemedyActions), maxConditions},
		{"status.resourceSummary.allocatable", len(summary.Allocatable), maxEntries}, {"status.resourceSummary.allocating", len(summary.Allocating), maxEntries},
		{"status.resourceSummary.allocated", len(summary.Allocated), maxEntries},
		{"status.resourceSummary.allocatableModelings", len(summary.AllocatableModelings), maxEntries},
	}
}

// sizeOf returns the size of a Cluster in etcd, in bytes.
func sizeOf(c *clusterv1alpha1.Cluster) int {
	data, _ := json.Marshal(c) // it was decoded from JSON
	return len(data)
}

// maxConditionMessage is the longest message of a condition that an agent writes, in
// bytes.
const maxConditionMessage = 4 << 10

// rewordConditions makes the messages that an agent reports about its cluster safe to
// read: without control characters, and with no command but the control plane's.
func rewordConditions(c *clusterv1alpha1.Cluster) {
	for i := range c.Status.Conditions {
		condition := &c.Status.Conditions[i]
		if condition.Type == clusterv1alpha1.ClusterConditionOrphanedObjects && condition.Status == metav1.ConditionTrue {
			condition.Message = orphan.Message(c.Name, condition.Message)
			continue
		}
		condition.Message = plaintext.Line(condition.Message, maxConditionMessage)
	}
}

// ours are the annotations that mean something to the control plane.
func ours(annotations map[string]string) map[string]string {
	out := maps.Clone(annotations)
	maps.DeleteFunc(out, func(key, _ string) bool {
		domain, _, _ := strings.Cut(key, "/")
		return domain != "karmada.io" && !strings.HasSuffix(domain, ".karmada.io")
	})
	return out
}
