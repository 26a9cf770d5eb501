// Package serviceimport creates the Services of ServiceImports in the control plane.
package serviceimport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/patch"
	"github.com/karmada-toolkit/karmada/internal/status"
	multiclusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/multicluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

// Component is the name of the controller.
const Component = "service-import-controller"

const (
	// workers is the number of ServiceImports that are reconciled at the same time.
	workers = 3
)

// derivedFrom is the annotation of a derived Service with the name of its ServiceImport.
// A Service without it is not deleted with the ServiceImport.
const derivedFrom = services.DerivedFromAnnotation

type reconciler struct {
	client client.Client
	store  templates.Reader
	events *events.Recorder
	works  *works.Writer
	status *status.Writer[*multiclusterv1alpha1.ServiceImport, *multiclusterv1alpha1.ServiceImportStatus]
}

// Setup adds the controller to the manager.
func Setup(ctx context.Context, e *env.Env) error {
	r := &reconciler{
		client: e.Client, store: e.Store, events: e.Recorder(Component), works: e.Works(),
		status: status.For(e.Client, e.Live, e.Clock,
			func(i *multiclusterv1alpha1.ServiceImport) *multiclusterv1alpha1.ServiceImportStatus {
				return &i.Status
			}),
	}
	if err := e.Index(ctx, &workv1alpha1.Work{}, importIndex, controllers.IndexKey(services.ImportIn)); err != nil {
		return err
	}
	return e.Controller(Component, workers, workers).
		For(&multiclusterv1alpha1.ServiceImport{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&workv1alpha1.Work{}, controllers.EnqueueKey(services.ImportIn), builder.WithPredicates(controllers.Created())).
		Watches(&discoveryv1.EndpointSlice{}, controllers.EnqueueKey(ofSlice), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WatchesRawSource(templates.Source{Store: e.Store, Kinds: []schema.GroupKind{serviceKind().GroupKind()}, Requests: ofDerived}).
		Complete(r)
}

func serviceKind() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("Service") }

// ofDerived returns the ServiceImport of a derived Service.
func ofDerived(_ context.Context, e templates.Event) []reconcile.Request {
	obj := e.Object()
	name, derived := strings.CutPrefix(obj.GetName(), services.DerivedService(""))
	if !derived {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}}}
}

// Reconcile creates, updates or deletes the Service of one ServiceImport.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	existing, err := r.service(ctx, types.NamespacedName{Namespace: req.Namespace, Name: services.DerivedService(req.Name)})
	if err != nil {
		return reconcile.Result{}, err
	}
	in := &multiclusterv1alpha1.ServiceImport{}
	err = r.client.Get(ctx, req.NamespacedName, in)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, r.delete(ctx, req.Name, existing)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("getting serviceimport %s: %w", req, err)
	}
	next := services.Derive(in, existing)
	if next == nil {
		return reconcile.Result{}, nil
	}
	statusErr := r.report(ctx, in)
	wrote := false
	if err = foreign(in.Name, existing); err == nil {
		wrote, err = r.write(ctx, in.Name, existing, next)
	}
	if e := services.DerivedEvent(in.Name, err); err != nil {
		r.events.Warning(in, e.Reason, e.Message)
	} else if wrote {
		r.events.Normal(in, e.Reason, e.Message)
	}
	if statusErr == nil && (apierrors.IsInvalid(err) || errors.Is(err, errForeign)) {
		err = reconcile.TerminalError(err) // a change of the ServiceImport or of the Service ends it
	}
	return reconcile.Result{}, errors.Join(err, statusErr)
}

// service returns a Service, or nil.
func (r *reconciler) service(ctx context.Context, key types.NamespacedName) (*corev1.Service, error) {
	obj, err := r.store.Get(ctx, serviceKind(), key.Namespace, key.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading service %s: %w", key, err)
	}
	out := &corev1.Service{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, out); err != nil {
		return nil, fmt.Errorf("decoding service %s: %w", key, err)
	}
	return out, nil
}

// errForeign is the error of a Service that has the name of a derived one and is not.
var errForeign = errors.New("exists and selects pods, so it is not derived from a ServiceImport: rename or delete it")

// foreign returns an error if the Service with the name of a derived one is a user's. A derived Service has no selector,
// also one that another implementation made.
func foreign(name string, existing *corev1.Service) error {
	if existing == nil || existing.Annotations[derivedFrom] == name || len(existing.Spec.Selector) == 0 {
		return nil
	}
	return fmt.Errorf("service %s/%s %w", existing.Namespace, existing.Name, errForeign)
}

func (r *reconciler) delete(ctx context.Context, name string, existing *corev1.Service) error {
	if existing == nil || existing.Annotations[derivedFrom] != name {
		return nil
	}
	err := r.client.Delete(ctx, existing, client.Preconditions{UID: &existing.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting service %s/%s: %w", existing.Namespace, existing.Name, err)
	}
	return nil
}

// write writes what differs. Labels and annotations of others, such as those of policies,
// stay.
func (r *reconciler) write(ctx context.Context, name string, existing, next *corev1.Service) (bool, error) {
	addresses := next.Status.LoadBalancer
	created := existing == nil
	if created {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, derivedFrom, name)
		if err := r.client.Create(ctx, next); err != nil {
			return false, fmt.Errorf("creating service %s/%s: %w", next.Namespace, next.Name, err)
		}
		existing = next.DeepCopy()
	}
	wanted := existing.DeepCopy()
	metav1.SetMetaDataAnnotation(&wanted.ObjectMeta, derivedFrom, name)
	wanted.Spec.Type, wanted.Spec.Ports = next.Spec.Type, ports(existing.Spec.Ports, next.Spec.Ports)
	wanted.Spec.Selector = nil
	metadata := !maps.Equal(existing.Annotations, wanted.Annotations)
	change, differs, err := patch.Diff(&corev1.Service{ObjectMeta: existing.ObjectMeta, Spec: existing.Spec}, &corev1.Service{ObjectMeta: wanted.ObjectMeta, Spec: wanted.Spec})
	target := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: next.Namespace, Name: next.Name}}
	if err == nil && (differs || metadata) {
		err = r.client.Patch(ctx, target, change)
	}
	if err == nil {
		wanted.Status.LoadBalancer = addresses
		differs, err = r.addresses(ctx, target, existing, wanted, differs)
	}
	if err != nil {
		return false, fmt.Errorf("patching service %s/%s: %w", next.Namespace, next.Name, err)
	}
	return created || differs, nil
}

// addresses patches the addresses of a Service. It reports whether anything was written.
func (r *reconciler) addresses(ctx context.Context, target, existing, wanted *corev1.Service, wrote bool) (bool, error) {
	change, differs, err := patch.Diff(&corev1.Service{Status: existing.Status}, &corev1.Service{Status: wanted.Status})
	if err != nil || !differs {
		return wrote, err
	}
	return true, errors.Join(err, r.client.Status().Patch(ctx, target, change))
}

// ports returns the wanted ports with the defaults that the API server set for them.
func ports(existing, wanted []corev1.ServicePort) []corev1.ServicePort {
	out := make([]corev1.ServicePort, len(wanted))
	for i, p := range wanted {
		p.Protocol = cmp.Or(p.Protocol, corev1.ProtocolTCP)
		for _, e := range existing {
			if e.Name == p.Name && e.Port == p.Port && e.Protocol == p.Protocol {
				p.TargetPort, p.NodePort = e.TargetPort, e.NodePort
			}
		}
		out[i] = p
	}
	return out
}
