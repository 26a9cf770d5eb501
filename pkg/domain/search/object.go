package search

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// Annotate names the cluster of an object in an answer.
func Annotate(object metav1.Object, cluster string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[clusterv1alpha1.CacheSourceAnnotation] = cluster
	object.SetAnnotations(annotations)
}

// Located is an object with its cluster.
type Located[T any] struct {
	Cluster string
	Object  T
}

// One returns the only object of a name. It returns an error NotFound if there is none, and a Conflict that names the
// clusters if several have one.
func One[T any](resource schema.GroupResource, name string, found []Located[T]) (Located[T], error) {
	switch len(found) {
	case 0:
		return Located[T]{}, apierrors.NewNotFound(resource, name)
	case 1:
		return found[0], nil
	}
	clusters := make([]string, 0, len(found))
	for _, f := range found {
		clusters = append(clusters, f.Cluster)
	}
	slices.Sort(clusters)
	return Located[T]{}, apierrors.NewConflict(resource, name,
		fmt.Errorf("ambiguous objects in clusters [%s]", strings.Join(clusters, ", ")))
}
