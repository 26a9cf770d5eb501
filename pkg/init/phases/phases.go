// Package phases are the parts of an installation: each writes its objects and waits for them, can be run again, and removes them.
package phases

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ssa "github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/write"
)

// Phase is a part of an installation that can be run again alone.
type Phase struct {
	// Name is also the value of --only and --skip-phases.
	Name string
	// Doc is one line.
	Doc string
	// Needs are the phases that must be done first; all others may run at the same
	// time.
	Needs []string
	// Workload is the workload in the host cluster that the phase waits for; empty means none. The phase runs if the configuration
	// installs it.
	Workload string

	// before is called before objects are written; nil means that there is nothing to do.
	before func(context.Context, *State, Phase) error
	// rights are the objects in the control plane that the pods of the workload need, host those in the host cluster, and controlPlane
	// those in the control plane that need the workload. A phase without one of them has none there.
	rights, host, controlPlane objects
	// write writes the objects in the control plane; nil means that only those are written that are not as wanted.
	write func(context.Context, *State, client.Client, []client.Object) (ssa.ChangeSet, error)
	// ready waits for what was written, and returns what is reported before the changes; nil means that nothing is waited for.
	ready func(context.Context, *State, Phase) (string, error)
	// hint is the next step when a server refuses an object as invalid.
	hint string
}

type objects func(*Inputs) ([]client.Object, error)

// Host returns the objects of the phase in the host cluster.
func (p Phase) Host(in *Inputs) ([]client.Object, error) {
	out, err := p.host.of(in)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(in.Workloads)) {
		if budget := components.DisruptionBudget(in.Config, name); budget != nil && slices.ContainsFunc(out, func(o client.Object) bool { return isWorkload(o, in.Name(name)) }) {
			out = append(out, budget)
		}
	}
	return out, write.Stamp(out)
}

// isWorkload reports whether an object has pods, and a name.
func isWorkload(o client.Object, name string) bool {
	switch o.(type) {
	case *appsv1.Deployment, *appsv1.StatefulSet:
		return o.GetName() == name
	}
	return false
}

// Rights returns the objects of the phase in the control plane that its workload needs.
func (p Phase) Rights(in *Inputs) ([]client.Object, error) { return p.rights.of(in) }

// ControlPlane returns the objects of the phase in the control plane that need its workload, or all that it has there if it has none.
func (p Phase) ControlPlane(in *Inputs) ([]client.Object, error) { return p.controlPlane.of(in) }

func (o objects) of(in *Inputs) ([]client.Object, error) {
	if o == nil {
		return nil, nil
	}
	return o(in)
}

// Apply writes what is not as wanted, and waits for the workload.
func (p Phase) Apply(ctx context.Context, s *State) (ssa.ChangeSet, error) {
	if p.before != nil {
		if err := p.before(ctx, s, p); err != nil {
			return nil, err
		}
	}
	changes, err := p.writeControlPlane(ctx, s, p.rights)
	if err != nil {
		return changes, err
	}
	if s.Host != nil && p.host != nil {
		in, err := s.Inputs()
		if err != nil {
			return changes, err
		}
		objects, err := p.Host(in)
		if err != nil {
			return changes, err
		}
		first, last := s.partition(objects)
		written, err := s.apply(ctx, s.Host, first)
		if changes = append(changes, written...); err != nil {
			return changes, err
		}
		if p.Workload != "" {
			if err := s.workloadReady(ctx, p.Name, p.Workload); err != nil {
				return changes, err
			}
		}
		written, err = s.apply(ctx, s.Host, last)
		if changes = append(changes, written...); err != nil {
			return changes, err
		}
	}
	written, err := p.writeControlPlane(ctx, s, p.controlPlane)
	return append(changes, written...), err
}

func (p Phase) writeControlPlane(ctx context.Context, s *State, wanted objects) (ssa.ChangeSet, error) {
	if wanted == nil {
		return nil, nil
	}
	in, err := s.Inputs()
	if err != nil {
		return nil, err
	}
	objects, err := wanted(in)
	if err != nil || len(objects) == 0 {
		return nil, err
	}
	cp, err := s.ControlPlane(ctx)
	if err != nil {
		return nil, err
	}
	if p.write != nil {
		changes, err := p.write(ctx, s, cp, objects)
		s.Outcome.add(changes)
		return changes, err
	}
	return s.apply(ctx, cp, objects)
}

// Ready waits until what the phase installed works, and returns what is reported of it.
func (p Phase) Ready(ctx context.Context, s *State) (string, error) {
	switch {
	case p.ready != nil:
		return p.ready(ctx, s, p)
	case p.Workload != "":
		return "ready, ", nil
	}
	return "", nil
}

// Remove deletes the objects of the phase, first those that need its workload, but not its rights. What is gone already is no error.
func (p Phase) Remove(ctx context.Context, s *State) error {
	in, err := s.Inputs()
	if err != nil {
		return err
	}
	inControlPlane, err := p.ControlPlane(in)
	if err != nil {
		return err
	}
	if len(inControlPlane) > 0 {
		cp, err := s.ControlPlane(ctx)
		if err != nil {
			return err
		}
		if err := Delete(ctx, cp, inControlPlane); err != nil {
			return err
		}
	}
	onHost, err := p.host.of(in)
	if err != nil || s.Host == nil {
		return err
	}
	return Delete(ctx, s.Host, onHost)
}

// Delete deletes objects in reverse order. What is gone already is no error.
func Delete(ctx context.Context, in client.Client, objects []client.Object) error {
	var errs []error
	for _, o := range slices.Backward(objects) {
		if _, ok := o.(*corev1.Namespace); ok { // others may have objects there
			continue
		}
		if err := in.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("deleting %T %s: %w", o, client.ObjectKeyFromObject(o), err))
		}
	}
	return errors.Join(errs...)
}
