package webhook

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpreter/lua"
)

// customizationCheck validates customizations together with those that exist. They
// are few and change seldom, so they are read from the API server, where none is
// missed.
type customizationCheck struct{ reader client.Reader }

func (c *customizationCheck) check(ctx context.Context, _ *admission.Request, obj, _ *configv1alpha1.ResourceInterpreterCustomization) error {
	var all configv1alpha1.ResourceInterpreterCustomizationList
	if err := c.reader.List(ctx, &all); err != nil {
		return failure{fmt.Errorf("listing the customizations: %w", err)}
	}
	return validation.ValidateCustomization(obj, all.Items, lua.Check)
}
