package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/resource"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/domain/interpreter/lua"
)

// validate returns, for a dry run on the client, the errors that admission would return
// for the objects, and prints its warnings.
func validate(e *env.Env, infos []*resource.Info) error {
	j := &validation.Judge{Compile: lua.Check}
	var errs []error
	for _, info := range infos {
		obj, ok := info.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		kind := obj.GetKind()
		warnings, err := j.New(obj)
		for _, w := range warnings {
			e.Say("Warning: %s %q: %s", kind, info.Name, w)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %q (%s) would be refused: %w", kind, info.Name, info.Source, err))
			continue
		}
		var c configv1alpha1.ResourceInterpreterCustomization
		if kind == "ResourceInterpreterCustomization" && runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &c) == nil {
			j.Customizations = append(j.Customizations, c)
		}
	}
	return utilerrors.NewAggregate(errs)
}
