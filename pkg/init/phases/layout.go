package phases

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// AllInOne returns the components whose rights the pods with all roles have: none if there are no such pods. While an installation
// changes to the other layout, they work until they are removed.
func (in *Inputs) AllInOne() []string {
	if in.Compact || in.AllInOneRuns {
		return components.CompactParts()
	}
	return nil
}

// partition returns the objects that are written first, and the Services that lead to other pods until those of the phase are ready.
func (s *State) partition(objects []client.Object) (first, last []client.Object) {
	for _, o := range objects {
		service, ok := o.(*corev1.Service)
		if ok && s.Facts != nil && s.Facts.Selects(service) {
			last = append(last, o)
		} else {
			first = append(first, o)
		}
	}
	return first, last
}

// removeOtherLayout deletes the Deployments of the layout that is not wanted, and the rights of those that have all roles.
func removeOtherLayout(ctx context.Context, s *State, _ Phase) (string, error) {
	in, err := s.Inputs()
	if err != nil {
		return "", err
	}
	removed := s.Facts.Obsolete(s.Config)
	for _, workload := range removed {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: in.Name(workload)}}
		if err := s.Host.Delete(ctx, d, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("deleting Deployment %s: %w", client.ObjectKeyFromObject(d), err)
		}
	}
	if len(removed) == 0 {
		return "as wanted", nil
	}
	text := strings.Join(removed, ", ") + " removed"
	if !in.AllInOneRuns || in.Compact {
		return text, nil
	}
	cp, err := s.ControlPlane(ctx)
	if err != nil {
		return "", err
	}
	_, err = s.apply(ctx, cp, components.ComponentRBAC(in.System()))
	return text, err
}
