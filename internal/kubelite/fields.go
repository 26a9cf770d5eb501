package kubelite

import (
	"context"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/admission"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// fieldsPluginName is the name of the admission plugin that removes managed fields.
const fieldsPluginName = "WorkManagedFields"

// fieldsPlugin removes the managed fields of the bindings and Works that controllers of a control plane create, like the admission policy
// managedfields.karmada.io, which other API servers need. That one encodes and decodes the whole object to do so.
type fieldsPlugin struct{ *admission.Handler }

// addFieldsPlugin adds the plugin to those that are on, before the admission policies.
func addFieldsPlugin(o *genericoptions.AdmissionOptions) {
	o.Plugins.Register(fieldsPluginName, func(io.Reader) (admission.Interface, error) {
		return fieldsPlugin{admission.NewHandler(admission.Create)}, nil
	})
	o.RecommendedPluginOrder = slices.Insert(slices.Clone(o.RecommendedPluginOrder), 0, fieldsPluginName)
}

// Admit implements admission.MutationInterface.
func (fieldsPlugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	controllers := []string{names.ComponentUser("controller-manager"), names.ComponentUser("all-in-one")}
	if a.GetResource().Group != workv1alpha2.GroupName || a.GetSubresource() != "" || !slices.Contains(controllers, a.GetUserInfo().GetName()) {
		return nil
	}
	accessor, err := meta.Accessor(a.GetObject())
	if err != nil {
		return err
	}
	accessor.SetManagedFields(nil)
	return nil
}
