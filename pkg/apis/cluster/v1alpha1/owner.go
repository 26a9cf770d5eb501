package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// OtherOwner returns the name of a Cluster other than the named one that owns an
// object, or "" when there is none.
func OtherOwner(obj metav1.Object, cluster string) string {
	for _, owner := range obj.GetOwnerReferences() {
		gv, err := schema.ParseGroupVersion(owner.APIVersion)
		if err == nil && gv.Group == GroupName && owner.Kind == "Cluster" && owner.Name != cluster {
			return owner.Name
		}
	}
	return ""
}
