package estimate

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
)

// Template identifies a pod template without the label by which a Deployment distinguishes its ReplicaSets.
type Template [sha256.Size]byte

// TemplateOf returns the identity of a pod template.
func TemplateOf(t *corev1.PodTemplateSpec) (Template, error) {
	copied := *t
	if _, ok := t.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; ok {
		copied.Labels = maps.Clone(t.Labels)
		delete(copied.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	}
	data, err := json.Marshal(copied)
	if err != nil {
		return Template{}, fmt.Errorf("encoding a pod template: %w", err)
	}
	return sha256.Sum256(data), nil
}

// Deployment has the fields of a Deployment by which its pods are found.
type Deployment struct {
	UID      types.UID
	Selector labels.Selector
	Template Template
}

// DeploymentOf returns the fields of a Deployment by which its pods are found.
func DeploymentOf(d *appsv1.Deployment) (Deployment, error) {
	selector, err := validation.LabelSelector(d.Spec.Selector)
	if err != nil {
		return Deployment{}, fmt.Errorf("reading the selector: %w", err)
	}
	template, err := TemplateOf(&d.Spec.Template)
	return Deployment{UID: d.UID, Selector: selector, Template: template}, err
}

// ReplicaSet has the fields of a ReplicaSet by which it is found as that of a Deployment. Owner is the UID of its
// controller.
type ReplicaSet struct {
	Name       string
	UID, Owner types.UID
	Created    time.Time
	Template   Template
}

// ReplicaSetOf returns the fields of a ReplicaSet by which it is found.
func ReplicaSetOf(rs *appsv1.ReplicaSet) (ReplicaSet, error) {
	template, err := TemplateOf(&rs.Spec.Template)
	return ReplicaSet{
		Name: rs.Name, UID: rs.UID, Owner: controllerOf(rs.OwnerReferences), Created: rs.CreationTimestamp.Time, Template: template,
	}, err
}

// WaitingPod has the fields of a pod that no node accepts. Owner is the UID of its controller.
type WaitingPod struct {
	Owner  types.UID
	Labels map[string]string
	// Since is when it was found to be unschedulable.
	Since time.Time
}

// WaitingPodOf returns the fields of a pod that no node accepts. It reports false for other pods.
func WaitingPodOf(p *corev1.Pod) (WaitingPod, bool) {
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return WaitingPod{Owner: controllerOf(p.OwnerReferences), Labels: p.Labels, Since: c.LastTransitionTime.Time}, true
		}
	}
	return WaitingPod{}, false
}

func controllerOf(owners []metav1.OwnerReference) types.UID {
	for i := range owners {
		if owners[i].Controller != nil && *owners[i].Controller {
			return owners[i].UID
		}
	}
	return ""
}

// Unschedulable returns how many pods of the current ReplicaSet of a Deployment have been unschedulable for longer
// than the threshold; a negative threshold is 0. sets and pods are those of the namespace.
func Unschedulable(d *Deployment, sets []ReplicaSet, pods []WaitingPod, threshold time.Duration, now time.Time) int32 {
	sets = slices.DeleteFunc(slices.Clone(sets), func(rs ReplicaSet) bool { return rs.Owner != d.UID || rs.Template != d.Template })
	if len(sets) == 0 {
		return 0
	}
	current := slices.MinFunc(sets, func(a, b ReplicaSet) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name)) })
	count := int32(0)
	for i := range pods {
		p := &pods[i]
		if p.Owner == current.UID && d.Selector.Matches(labels.Set(p.Labels)) && p.Since.Add(max(threshold, 0)).Before(now) {
			count++
		}
	}
	return count
}
