package extension

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

var (
	_ rest.Patcher             = (*Status)(nil)
	_ rest.ResetFieldsStrategy = (*Status)(nil)
	_ rest.Storage             = (*Status)(nil)
	_ rest.TableConvertor      = (*Status)(nil)
)

// StatusRules are how the status of objects is changed.
type StatusRules interface {
	rest.RESTUpdateStrategy
	rest.ResetFieldsStrategy
}

// Status is the subresource status of a resource.
type Status struct{ store *genericregistry.Store }

// NewStatus returns the subresource status of the objects in a store.
func NewStatus(store *genericregistry.Store, rules StatusRules) *Status {
	own := *store
	own.UpdateStrategy, own.ResetFieldsStrategy = rules, rules
	return &Status{store: &own}
}

// New implements rest.Storage.
func (s *Status) New() runtime.Object { return s.store.New() }

// Destroy implements rest.Storage. The storage of the objects frees what they share.
func (s *Status) Destroy() {}

// Get implements rest.Getter.
func (s *Status) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return s.store.Get(ctx, name, options)
}

// Update implements rest.Updater. A status never creates an object.
func (s *Status) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return s.store.Update(ctx, name, objInfo, createValidation, updateValidation, false, options)
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (s *Status) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.store.GetResetFields()
}

// ConvertToTable implements rest.TableConvertor.
func (s *Status) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return s.store.ConvertToTable(ctx, object, options)
}

// ResetFields returns top level fields that a write does not change, so that its writer does not come to own them.
func ResetFields(version schema.GroupVersion, names ...string) map[fieldpath.APIVersion]*fieldpath.Set {
	set := fieldpath.NewSet()
	for _, name := range names {
		set.Insert(fieldpath.MakePathOrDie(name))
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(version.String()): set}
}

// Age returns the cell of a table that tells the age of an object.
func Age(now, created metav1.Time) string {
	if created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Duration(now.UnixNano() - created.UnixNano()))
}
