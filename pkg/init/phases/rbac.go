package phases

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// RBAC is the phase that writes the roles of users and of the components.
const RBAC = "rbac"

func rbac() Phase {
	return Phase{
		Name: RBAC, Doc: "Write the roles of users and of the components", Needs: []string{APIServer},
		controlPlane: rbacObjects, run: writeObjects,
	}
}

func rbacObjects(in *Inputs) ([]client.Object, error) {
	return slices.Concat(components.SystemNamespaces(in.Namespace), components.FederationRBAC(), components.ComponentRBAC(in.Namespace)), nil
}
