package member

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

// Left is an object that the control plane put into a member.
type Left struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Work that it came with.
	Work string `json:"work"`
}

func (l Left) String() string {
	if l.Namespace == "" {
		return l.Kind + " " + l.Name
	}
	return l.Kind + " " + l.Namespace + "/" + l.Name
}

// leftovers are the objects of a member, in the order of their kinds and names.
type leftovers []Left

// lines describes the objects, a line for each kind.
func (l leftovers) lines() []string {
	const most = 10
	byKind := map[string][]string{}
	var kinds []string
	for _, one := range l {
		if byKind[one.Kind] == nil {
			kinds = append(kinds, one.Kind)
		}
		byKind[one.Kind] = append(byKind[one.Kind], strings.TrimPrefix(one.String(), one.Kind+" "))
	}
	var out []string
	for _, kind := range kinds {
		objects := byKind[kind]
		more := ""
		if len(objects) > most {
			objects, more = objects[:most], fmt.Sprintf(" and %d more", len(objects)-most)
		}
		out = append(out, "in the member: "+kind+" "+strings.Join(objects, ", ")+more)
	}
	return out
}

// inventory returns what the control plane put into a member and does not want
// kept there.
func inventory(ctx context.Context, controlPlane client.Client, cluster string) (leftovers, error) {
	works := &workv1alpha1.WorkList{}
	if err := controlPlane.List(ctx, works, client.InNamespace(names.ExecutionNamespace(cluster))); err != nil {
		return nil, fmt.Errorf("listing the works of cluster %q: %w", cluster, err)
	}
	var out leftovers
	for i := range works.Items {
		work := &works.Items[i]
		if ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false) {
			continue
		}
		for _, m := range work.Spec.Workload.Manifests {
			obj := &metav1.PartialObjectMetadata{}
			if err := json.Unmarshal(m.Raw, obj); err != nil || obj.Kind == "" {
				continue
			}
			out = append(out, Left{APIVersion: obj.APIVersion, Kind: obj.Kind, Namespace: obj.Namespace, Name: obj.Name, Work: work.Name})
		}
	}
	slices.SortFunc(out, func(a, b Left) int { return strings.Compare(a.String()+a.APIVersion, b.String()+b.APIVersion) })
	return out, nil
}
