package federatedhpa

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/autoscaling"
)

// Reasons of events beside those of the contract.
const (
	eventClustersLeftOut = "ClustersLeftOut"
	eventAnotherScaler   = "AnotherScaler"
	eventMissingRequests = "MissingRequests"
)

// maxText is the limit of the length of a message. That of an event is 1024.
const maxText = 1000

// target is the scale target of an object with its clusters.
type target struct {
	template *unstructured.Unstructured
	scale    *autoscalingv1.Scale
	resource schema.GroupVersionResource
	clusters []*clusterv1alpha1.Cluster
	// leftOut are the clusters that are not read, with the reason.
	leftOut []string
}

// pass evaluates an object and writes the results. The error is that of the pass.
func (r *reconciler) pass(ctx context.Context, cached *autoscalingv1alpha1.FederatedHPA, s *state) error {
	obj := cached.DeepCopy()
	obj.Status = *r.status.Current(cached, &s.written).DeepCopy()
	t, v := r.find(ctx, obj)
	if v == nil {
		v = r.evaluate(ctx, obj, s, t)
		if v.Rescale {
			r.rescale(ctx, obj, t, v)
		}
		s.history = v.History
	}
	clean(v)
	r.publish(ctx, obj, t, v)
	_, err := r.status.Write(ctx, cached, &s.written, func(status *autoscalingv2.HorizontalPodAutoscalerStatus) { *status = v.Report.Status })
	if err != nil {
		r.events.Warning(obj, "FailedUpdateStatus", err.Error())
	}
	return errors.Join(v.Err, err)
}

// find reads the target of an object and its clusters, or returns the verdict that it cannot.
func (r *reconciler) find(ctx context.Context, obj *autoscalingv1alpha1.FederatedHPA) (*target, *autoscaling.Verdict) {
	fail := func(stage autoscaling.Stage, err error) (*target, *autoscaling.Verdict) {
		return nil, autoscaling.Fail(obj, r.clock.Now(), stage, err)
	}
	ref := obj.Spec.ScaleTargetRef
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return fail(autoscaling.Version, err)
	}
	t := &target{}
	if t.template, err = r.template(ctx, gv.WithKind(ref.Kind), obj.Namespace, ref.Name); err != nil {
		return fail(autoscaling.Template, err)
	}
	binding := &workv1alpha2.ResourceBinding{}
	var found []*workv1alpha2.ResourceBinding
	err = r.reader.Get(ctx, types.NamespacedName{Namespace: obj.Namespace, Name: names.Binding(ref.Kind, ref.Name)}, binding)
	if err == nil {
		found = append(found, binding)
	} else if !apierrors.IsNotFound(err) {
		return fail(autoscaling.FindBinding, err)
	}
	if binding, err = autoscaling.Binding(obj.Namespace, ref, t.template.GetLabels(), found); err != nil {
		return fail(autoscaling.FindBinding, err)
	}
	var unready []string
	t.clusters, unready, err = autoscaling.Clusters(binding, func(name string) (*clusterv1alpha1.Cluster, error) {
		cluster := &clusterv1alpha1.Cluster{}
		return cluster, r.reader.Get(ctx, types.NamespacedName{Name: name}, cluster)
	})
	if err != nil {
		return fail(autoscaling.FindClusters, err)
	}
	for _, name := range unready {
		t.leftOut = append(t.leftOut, name+" (not ready)")
		r.observe.leftOut(name)
	}
	mapping, err := r.members.mapper.RESTMapping(schema.GroupKind{Group: gv.Group, Kind: ref.Kind}, gv.Version)
	if err != nil {
		return fail(autoscaling.Mapping, err)
	}
	t.resource = mapping.Resource
	if t.scale, err = templates.Scale(ctx, r.client, t.template); err != nil {
		return fail(autoscaling.TemplateScale, err)
	}
	return t, nil
}

func (r *reconciler) evaluate(ctx context.Context, obj *autoscalingv1alpha1.FederatedHPA, s *state, t *target) *autoscaling.Verdict {
	now, current := r.clock.Now(), t.scale.Spec.Replicas
	if !s.resumed {
		s.history, s.resumed = autoscaling.Resume(obj, current, now), true
	}
	found := r.members.read(ctx, t.clusters, t.resource, types.NamespacedName{Namespace: obj.Namespace, Name: t.template.GetName()})
	f := autoscaling.Facts{Now: now, HPA: obj, Settings: r.settings, History: s.history, Current: current}
	for i, answer := range found {
		if answer.err != nil {
			t.leftOut = append(t.leftOut, fmt.Sprintf("%s (%v)", t.clusters[i].Name, answer.err))
			r.observe.leftOut(t.clusters[i].Name)
			continue
		}
		f.Members = append(f.Members, answer.member)
	}
	selector, err := validation.ParseLabelSelector(autoscaling.Selector(f.Members))
	if err == nil && !autoscaling.Bounded(obj, current) {
		f.Metrics = r.fetch(ctx, obj, selector)
	}
	if err != nil || selector.Empty() { // it makes no other FederatedHPA ambiguous
		selector = nil
	}
	f.Others = r.others(obj, s, selector)
	return autoscaling.Evaluate(f)
}

// rescale writes the replicas of a verdict to the template.
func (r *reconciler) rescale(ctx context.Context, obj *autoscalingv1alpha1.FederatedHPA, t *target, v *autoscaling.Verdict) {
	logger := log.FromContext(ctx).WithValues("target", klog.KObj(t.template), "from", t.scale.Spec.Replicas, "to", v.Replicas, "reason", v.Reason)
	logger.Info("Scaling template", "FederatedHPA", klog.KObj(obj))
	v.Rescaled(templates.SetReplicas(ctx, r.client, t.template, t.scale, v.Replicas))
}

// clean limits the texts of a verdict, parts of which are from members.
func clean(v *autoscaling.Verdict) {
	for i := range v.Report.Events {
		v.Report.Events[i].Message = plaintext.Line(v.Report.Events[i].Message, maxText)
	}
	for i := range v.Report.Status.Conditions {
		v.Report.Status.Conditions[i].Message = plaintext.Line(v.Report.Status.Conditions[i].Message, maxText)
	}
}

// publish records the events of a pass. A failure that lasts is recorded once.
func (r *reconciler) publish(ctx context.Context, obj *autoscalingv1alpha1.FederatedHPA, t *target, v *autoscaling.Verdict) {
	warned := false
	warn := func(reason, message string) {
		warned = true
		r.events.Warning(obj, reason, message)
	}
	for _, e := range v.Report.Events {
		if e.Type == corev1.EventTypeWarning {
			warn(e.Reason, e.Message)
		} else {
			r.events.Normal(obj, e.Reason, e.Message)
		}
	}
	if t != nil && len(t.leftOut) > 0 {
		warn(eventClustersLeftOut, plaintext.Line("left out "+strings.Join(t.leftOut, ", "), maxText))
	}
	if e, ok := errors.AsType[*autoscaling.MissingRequestError](v.Err); ok {
		warn(eventMissingRequests, plaintext.Line(fmt.Sprintf("container %s of pods in cluster %s has no request for %s, so that no cluster scales by this metric: "+
			"set the request in the template, or in the override policy that removes it", e.Container, e.Cluster, e.Resource), maxText))
	}
	if name := r.anotherScaler(ctx, obj); name != "" {
		warn(eventAnotherScaler, fmt.Sprintf("HorizontalPodAutoscaler %q scales the same target: delete one of the two", name))
	}
	if !warned {
		r.events.Recovered(obj)
	}
}

// anotherScaler returns the name of a HorizontalPodAutoscaler with the same target, if there is one.
func (r *reconciler) anotherScaler(ctx context.Context, obj *autoscalingv1alpha1.FederatedHPA) string {
	list, err := r.hpas(ctx, obj.Namespace)
	if err != nil {
		log.FromContext(ctx).V(2).Info("Cannot list HorizontalPodAutoscalers", "problem", err.Error())
		return ""
	}
	same := func(h *unstructured.Unstructured) bool {
		ref, _, _ := unstructured.NestedStringMap(h.Object, "spec", "scaleTargetRef")
		return autoscaling.SameTarget(autoscalingv2.CrossVersionObjectReference{Kind: ref["kind"], Name: ref["name"], APIVersion: ref["apiVersion"]}, obj.Spec.ScaleTargetRef)
	}
	if i := slices.IndexFunc(list, same); i >= 0 {
		return list[i].GetName()
	}
	return ""
}
