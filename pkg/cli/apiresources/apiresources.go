// Package apiresources holds kubectl's commands api-resources and api-versions, on
// the control plane or a member.
package apiresources

import (
	"github.com/spf13/cobra"
	upstream "k8s.io/kubectl/pkg/cmd/apiresources"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

// NewResourcesCommand returns the command api-resources.
func NewResourcesCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	cmd := e.Adapt(upstream.NewCmdAPIResources(access, e.Escaped()))
	access.AddFlags(cmd).AddScopeFlags(cmd)
	return access.Check(cmd)
}

// NewVersionsCommand returns the command api-versions.
func NewVersionsCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	cmd := e.Adapt(upstream.NewCmdAPIVersions(access, e.Escaped()))
	access.AddFlags(cmd).AddScopeFlags(cmd)
	return access.Check(cmd)
}
