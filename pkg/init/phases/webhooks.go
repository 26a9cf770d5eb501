package phases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ssa "github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/write"
)

func webhookConfigurations(in *Inputs) ([]client.Object, error) {
	args := in.Workloads[components.ControllerManager].ExtraArgs
	return components.WebhookConfigurations(in.WebhookURL(), in.Certificates.CABundle(), components.FlagValues(args, "--feature-gates")), nil
}

// writeWebhooks registers the webhooks, and deletes what an earlier version registered and this one does not.
func writeWebhooks(ctx context.Context, _ *State, cp client.Client, objects []client.Object) (ssa.ChangeSet, error) {
	mutating := schema.GroupKind{Group: admissionregistrationv1.GroupName, Kind: "MutatingAdmissionPolicy"}
	if _, err := cp.RESTMapper().RESTMapping(mutating, "v1"); meta.IsNoMatchError(err) { // Kubernetes before 1.36
		objects = slices.DeleteFunc(objects, mutates)
	}
	changes, err := write.Apply(ctx, cp, objects)
	if err != nil {
		return changes, err
	}
	deleted, err := write.Prune(ctx, cp, objects, components.PrunedWebhookConfigurations()...)
	return append(changes, deleted...), err
}

// mutates reports whether an object is a MutatingAdmissionPolicy or its binding.
func mutates(o client.Object) bool {
	switch o.(type) {
	case *admissionregistrationv1.MutatingAdmissionPolicy, *admissionregistrationv1.MutatingAdmissionPolicyBinding:
		return true
	}
	return false
}

// awaitReplacedAPIServer waits for an API server that identifies itself, which is what the webhook server answers: where one of an
// earlier version runs, that is replaced first.
func awaitReplacedAPIServer(ctx context.Context, s *State, p Phase) error {
	if len(s.Facts.Certificates) == 0 || len(s.Facts.Certificates[components.WebhookClient+".crt"]) > 0 {
		return nil
	}
	if !s.Config.Runs(APIServer) {
		return fmt.Errorf("the API server does not identify itself to the webhook server yet; run the phase %s as well", APIServer)
	}
	key := client.ObjectKey{Namespace: s.Config.APIServer.Namespace, Name: (&components.Config{Names: s.Config.Names}).Name(components.APIServer)}
	return s.wait(ctx, s.Config.Timeout(), p.Name, "the API server to be replaced", func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := s.Host.Get(ctx, key, d); err != nil {
			return err
		}
		return replacedAPIServer(d)
	})
}

// replacedAPIServer returns nil when all pods of the API server identify themselves
// to webhooks.
func replacedAPIServer(d *appsv1.Deployment) error {
	configured := slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Command, func(arg string) bool { return strings.HasPrefix(arg, components.AdmissionConfigFlag+"=") })
	})
	status := &d.Status
	switch {
	case !configured || status.ObservedGeneration < d.Generation:
		return errors.New("it is not configured yet")
	case status.UpdatedReplicas < ptr.Deref(d.Spec.Replicas, 1) || status.AvailableReplicas < status.UpdatedReplicas || status.Replicas > status.UpdatedReplicas:
		return fmt.Errorf("%d of %d pods are replaced", min(status.UpdatedReplicas, status.AvailableReplicas), ptr.Deref(d.Spec.Replicas, 1))
	}
	return nil
}
