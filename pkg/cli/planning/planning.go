// Package planning is what commands share that show what changes would do: reading the control plane and manifests, computing effects, and
// printing them.
package planning

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// Effects reads the control plane, and returns what the changes do after the manifests were applied. Warnings of admission are passed to
// a function. Templates that the changes name are read if a policy may select them, or they are of a kind of the manifests.
func (s *Source) Effects(ctx context.Context, settings Settings, manifests []*unstructured.Unstructured, warn func(string), changes ...plan.Change) (*plan.Effects, error) {
	contents, err := s.Contents(ctx, plan.Kinds(manifests))
	if err != nil {
		return nil, err
	}
	world, err := World(contents, settings)
	if err != nil {
		return nil, err
	}
	var all []plan.Change
	apply := plan.NewManifests(warn)
	for _, u := range manifests {
		all = append(all, apply.Apply(u))
	}
	return plan.Plan(world, append(all, changes...))
}

// World returns the world of contents with the settings. The error is that something was not read which no plan can do without, or that
// the settings are invalid. What else was not read is a note of the plan.
func World(contents *snapshot.Contents, settings Settings) (*plan.World, error) {
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
	world, err := plan.NewWorld(contents)
	if err != nil {
		return nil, err
	}
	return world, settings.apply(world)
}
