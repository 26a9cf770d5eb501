package serviceimport

import (
	"context"
	"errors"
	"fmt"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	multiclusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/multicluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

// importIndex finds the Works with a ServiceImport.
const importIndex = "import.serviceimport"

// ofSlice returns the ServiceImport of an imported slice.
func ofSlice(slice *discoveryv1.EndpointSlice) types.NamespacedName {
	name, derived := strings.CutPrefix(slice.Labels[discoveryv1.LabelServiceName], services.DerivedService(""))
	if !derived || slice.Labels[discoveryv1.LabelManagedBy] != services.ImportedSlice {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: slice.Namespace, Name: name}
}

// report writes the status of a ServiceImport, and has it written in its clusters.
func (r *reconciler) report(ctx context.Context, in *multiclusterv1alpha1.ServiceImport) error {
	key := client.ObjectKeyFromObject(in)
	list, imports := &discoveryv1.EndpointSliceList{}, &workv1alpha1.WorkList{}
	err := errors.Join(
		r.client.List(ctx, list, client.InNamespace(in.Namespace), client.UnsafeDisableDeepCopy,
			client.MatchingLabels{discoveryv1.LabelServiceName: services.DerivedService(in.Name), discoveryv1.LabelManagedBy: services.ImportedSlice}),
		r.client.List(ctx, imports, client.MatchingFields{importIndex: key.String()}, client.UnsafeDisableDeepCopy),
	)
	if err != nil {
		return fmt.Errorf("listing slices and works of serviceimport %s: %w", key, err)
	}
	want := services.ImportStatus(list.Items)
	_, err = r.status.Put(ctx, in, func(s *multiclusterv1alpha1.ServiceImportStatus) { *s = want })
	errs := []error{err}
	for i := range imports.Items {
		work := &imports.Items[i]
		if work.DeletionTimestamp != nil {
			continue
		}
		next, changed, err := services.WithStatus(work, want)
		if err == nil && changed {
			_, err = r.works.Put(ctx, work, next)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
