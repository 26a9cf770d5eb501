package access

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/karmada-toolkit/karmada/internal/quantity"
)

// CheckQuantities returns an error that is quantity.ErrRange for an object of a kind of Kubernetes with a quantity that its type
// would take long to decode: those of other kinds are not decoded. Whoever keeps or decodes objects of a member calls it.
func CheckQuantities(u *unstructured.Unstructured) error {
	return quantity.CheckTree(u.Object, scheme.Scheme.AllKnownTypes()[u.GroupVersionKind()])
}
