package services

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
)

// Side is what one cluster provides to a MultiClusterService, or gets of others.
type Side struct {
	Cluster string
	// From are the clusters whose slices a consumer gets; empty for providers.
	From []string
	// Slices, Endpoints and Ready count the slices, their endpoints and those that are
	// ready.
	Slices, Endpoints, Ready int
	// Problem is why something is missing; empty if nothing is.
	Problem string
}

// Account returns what the providers and the consumers of a MultiClusterService have, in
// order of their names. service is nil if it does not exist; works are those with the labels of
// the MultiClusterService.
func Account(mcs *networkingv1alpha1.MultiClusterService, service *corev1.Service, clusters Clusters, works []*workv1alpha1.Work) (providers, consumers []Side) {
	in := map[string][]*workv1alpha1.Work{}
	for _, w := range works {
		if cluster, err := names.ClusterOfExecutionNamespace(w.Namespace); err == nil && w.DeletionTimestamp == nil {
			in[cluster] = append(in[cluster], w)
		}
	}
	provided := map[string]int{}
	for _, cluster := range sets.List(Providers(mcs, clusters)) {
		side := provider(cluster, service, clusters, in[cluster])
		provided[cluster] = side.Slices
		providers = append(providers, side)
	}
	for _, cluster := range sets.List(Consumers(mcs, clusters)) {
		consumers = append(consumers, consumer(cluster, clusters, in[cluster], provided))
	}
	return providers, consumers
}

func provider(cluster string, service *corev1.Service, clusters Clusters, works []*workv1alpha1.Work) Side {
	side := Side{Cluster: cluster, Problem: clusters.Unusable(cluster)}
	marked := false
	for _, w := range works {
		if Marks(w).Name != "" {
			marked = true
		} else if Collected(w) {
			side.add(w)
		}
	}
	switch {
	case side.Problem != "":
	case service == nil:
		side.Problem = "the Service does not exist in the control plane"
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		side.Problem = "the Service has the type ExternalName, which has no endpoints"
	case !marked:
		side.Problem = "the cluster is not marked as a provider yet"
	case side.Slices == 0 && clustercondition.Flaps(clusters[cluster]) != "":
		side.Problem = "no slice was collected: the cluster is " + clustercondition.Flaps(clusters[cluster]) + ", and gets no new workloads"
	case side.Slices == 0:
		side.Problem = "no slice was collected: the Service has no endpoints there, or the agent of the cluster runs without the feature gate MultiClusterService"
	case side.Ready == 0:
		side.Problem = "no endpoint is ready"
	}
	return side
}

func consumer(cluster string, clusters Clusters, works []*workv1alpha1.Work, provided map[string]int) Side {
	side := Side{Cluster: cluster, Problem: clusters.Unusable(cluster)}
	got, notApplied := map[string]int{}, ""
	for _, w := range works {
		from := w.Annotations[ProvisionClusterAnnotation]
		if from == "" {
			continue
		}
		got[from]++
		side.add(w)
		if c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied); c == nil || c.Status != "True" {
			notApplied = fmt.Sprintf("work %s/%s is not applied", w.Namespace, w.Name)
			if c != nil {
				notApplied += ": " + c.Message
			}
		}
	}
	var missing []string
	for from, n := range provided {
		if from != cluster && got[from] < n {
			missing = append(missing, from)
		}
	}
	slices.Sort(missing)
	side.From = sets.List(sets.KeySet(got))
	switch {
	case side.Problem != "":
	case notApplied != "":
		side.Problem = notApplied
	case len(missing) > 0:
		side.Problem = "slices are missing of " + strings.Join(missing, ", ")
		for _, from := range missing {
			if !clusters.Ready(from) {
				side.Problem += ": " + from + " is not ready"
				break
			}
		}
	}
	return side
}

func (s *Side) add(w *workv1alpha1.Work) {
	s.Slices++
	var slice struct {
		Endpoints []discoveryv1.Endpoint `json:"endpoints"`
	}
	if len(w.Spec.Workload.Manifests) != 1 || json.Unmarshal(w.Spec.Workload.Manifests[0].Raw, &slice) != nil {
		return
	}
	s.Endpoints += len(slice.Endpoints)
	for _, e := range slice.Endpoints {
		if ptr.Deref(e.Conditions.Ready, true) {
			s.Ready++
		}
	}
}
