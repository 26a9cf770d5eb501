// Package planning is what commands share that show what changes would do: reading the control plane, and printing effects.
package planning

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/insight/plan"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
)

// Source is the control plane that is read.
type Source struct {
	// Client has no limit of requests.
	Client client.Client
	Mapper meta.RESTMapper
	env    *env.Env
	access *env.Access
}

// Connect connects to the control plane.
func Connect(ctx context.Context, e *env.Env, access *env.Access) (*Source, error) {
	c, err := access.UnlimitedClient(ctx)
	if err != nil {
		return nil, err
	}
	return &Source{Client: c, Mapper: c.RESTMapper(), env: e, access: access}, nil
}

// Contents reads what decides what each cluster gets, and the objects of further kinds.
func (s *Source) Contents(ctx context.Context, further []schema.GroupKind) (*snapshot.Contents, error) {
	namespace, _, err := s.access.Namespace()
	if err != nil {
		return nil, err
	}
	defer s.env.Waiting(func() string { return "the control plane to answer" })()
	reader := &snapshot.Reader{ControlPlane: s.Client, Mapper: s.Mapper, Namespace: namespace, Now: s.env.Now}
	return reader.Contents(ctx, further)
}

// World returns the world of contents. The error is that something was not read which no plan can do without. What else was not read is a
// note of the plan.
func World(contents *snapshot.Contents) (*plan.World, error) {
	needed := []string{snapshot.Clusters, snapshot.Policies, snapshot.ClusterPolicies, snapshot.Overrides, snapshot.ClusterOverrides, "ResourceBindings", "ClusterResourceBindings"}
	var missing []string
	forbidden := true
	for _, g := range contents.Gaps {
		if slices.Contains(needed, g.What) {
			missing = append(missing, g.String())
			forbidden = forbidden && apierrors.IsForbidden(g.Err)
		}
	}
	switch {
	case len(missing) > 0 && forbidden:
		return nil, fmt.Errorf("a plan needs what you may not read; ask for the ClusterRole %s:\n  %s", names.InsightRole, strings.Join(missing, "\n  "))
	case len(missing) > 0:
		return nil, fmt.Errorf("a plan needs what could not be read:\n  %s", strings.Join(missing, "\n  "))
	}
	return plan.NewWorld(contents)
}
