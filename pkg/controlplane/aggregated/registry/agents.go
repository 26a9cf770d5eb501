package registry

import (
	"context"
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
	"k8s.io/apimachinery/pkg/watch"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

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
	return c.Store.List(ctx, visible(ctx, options))
}

// Watch implements rest.Watcher. An agent sees its own cluster.
func (c *Clusters) Watch(ctx context.Context, options *metainternalversion.ListOptions) (watch.Interface, error) {
	return c.Store.Watch(ctx, visible(ctx, options))
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
	namespace := c.Annotations[agentcert.NamespaceAnnotation]
	if namespace == "" {
		namespace = clusterv1alpha1.NamespaceKarmadaCluster
	}
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
