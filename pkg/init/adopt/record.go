package adopt

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/apis/crds"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
)

const (
	// recordSecret has what an adoption changes, as it was, under recordKey, until it is finished.
	recordSecret = "karmada-adoption"
	recordKey    = "record.json.gz"
	// maxRecord is the size of a decompressed record in bytes.
	maxRecord = 64 << 20
)

// record is what an adoption changes, as it was.
type record struct {
	Deployments []appsv1.Deployment                                      `json:"deployments"`
	Etcd        []appsv1.StatefulSet                                     `json:"etcd,omitempty"`
	CRDs        []apiextensionsv1.CustomResourceDefinition               `json:"crds"`
	Mutating    []admissionregistrationv1.MutatingWebhookConfiguration   `json:"mutating"`
	Validating  []admissionregistrationv1.ValidatingWebhookConfiguration `json:"validating"`
	// Limited is whether agents had limits beyond their roles.
	Limited bool `json:"limited,omitempty"`
}

// record stores what an adoption changes, unless that was done.
func (a *Adoption) record(ctx context.Context, p *Plan) (string, error) {
	r, err := a.load(ctx)
	if client.IgnoreNotFound(err) != nil {
		return "", err
	}
	known := err == nil
	if known && (!a.Etcd || len(r.Etcd) > 0) {
		return "kept", nil
	}
	if !known {
		r = &record{}
		if err := r.read(ctx, a.plane); err != nil {
			return "", err
		}
	}
	for i := range p.Components {
		switch o := p.Components[i].workload.(type) {
		case *appsv1.StatefulSet:
			r.Etcd = append(r.Etcd, *o)
		case *appsv1.Deployment:
			if !known {
				r.Deployments = append(r.Deployments, *o)
			}
		}
	}
	content, err := r.encode()
	if err != nil {
		return "", err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: recordSecret}, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{recordKey: content}}
	if known {
		err = a.host.Update(ctx, secret)
	} else {
		err = a.host.Create(ctx, secret)
	}
	if err != nil {
		return "", fmt.Errorf("storing the way back: %w", err)
	}
	return fmt.Sprintf("the way back is in Secret %s/%s", a.Namespace, recordSecret), nil
}

// read reads what is in the control plane.
func (r *record) read(ctx context.Context, plane client.Client) error {
	ours, err := crds.All()
	if err != nil {
		return err
	}
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := plane.List(ctx, list); err != nil {
		return fmt.Errorf("reading the APIs of the control plane: %w", err)
	}
	for _, crd := range list.Items {
		if slices.ContainsFunc(ours, func(o *apiextensionsv1.CustomResourceDefinition) bool { return o.Name == crd.Name }) {
			r.CRDs = append(r.CRDs, crd)
		}
	}
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfigurationList{}, &admissionregistrationv1.ValidatingWebhookConfigurationList{}
	if err := errors.Join(plane.List(ctx, mutating), plane.List(ctx, validating)); err != nil {
		return fmt.Errorf("reading the webhooks of the control plane: %w", err)
	}
	switch err := plane.Get(ctx, client.ObjectKeyFromObject(limits()[0]), limits()[0]); {
	case err == nil:
		r.Limited = true
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("reading the limits of agents: %w", err)
	}
	for _, c := range mutating.Items {
		if slices.Contains(webhookConfigurations[:], c.Name) {
			r.Mutating = append(r.Mutating, c)
		}
	}
	for _, c := range validating.Items {
		if slices.Contains(webhookConfigurations[:], c.Name) {
			r.Validating = append(r.Validating, c)
		}
	}
	return nil
}

func (r *record) encode() ([]byte, error) {
	for i := range r.CRDs {
		r.CRDs[i].ManagedFields = nil
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if err := errors.Join(json.NewEncoder(z).Encode(r), z.Close()); err != nil {
		return nil, fmt.Errorf("encoding the way back: %w", err)
	}
	return out.Bytes(), nil
}

// load returns the record.
func (a *Adoption) load(ctx context.Context) (*record, error) {
	secret := &corev1.Secret{}
	if err := a.host.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: recordSecret}, secret); err != nil {
		return nil, err
	}
	r := &record{}
	z, err := gzip.NewReader(bytes.NewReader(secret.Data[recordKey]))
	if err == nil {
		err = json.NewDecoder(io.LimitReader(z, maxRecord)).Decode(r)
	}
	if err != nil {
		return nil, fmt.Errorf("decoding Secret %s/%s: %w", a.Namespace, recordSecret, err)
	}
	return r, nil
}

// recorded returns the record, or an error if there is none.
func (a *Adoption) recorded(ctx context.Context) (*record, error) {
	r, err := a.load(ctx)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no Secret %s in namespace %s: the control plane was not adopted, or that is finished", recordSecret, a.Namespace)
	}
	return r, err
}

// Rollback makes the control plane what it was before, and waits for its components. Objects that were written meanwhile stay.
func (a *Adoption) Rollback(ctx context.Context) error {
	r, err := a.recorded(ctx)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go a.tracker.Run(ctx)
	if err := a.step(ctx, "webhooks", func() (string, error) { return "as before", r.restoreWebhooks(ctx, a.plane) }); err != nil {
		return err
	}
	if err := r.restoreLimits(ctx, a.plane); err != nil {
		return err
	}
	if err := a.step(ctx, "crds", func() (string, error) { return "as before", r.restoreCRDs(ctx, a.plane) }); err != nil {
		return err
	}
	back := func(name string, do func() error) error {
		if err := a.step(ctx, name, func() (string, error) { return "as before", do() }); err != nil {
			return fmt.Errorf("%s: %w; run the command again", name, err)
		}
		return nil
	}
	for i := range r.Etcd {
		if err := back(r.Etcd[i].Name, func() error { return a.restoreEtcd(ctx, &r.Etcd[i]) }); err != nil {
			return err
		}
	}
	for i := range slices.Backward(r.Deployments) {
		if err := back(r.Deployments[i].Name, func() error { return a.restore(ctx, &r.Deployments[i]) }); err != nil {
			return err
		}
	}
	return nil
}

// restore gives a Deployment the pods that it had. Its replicas stay.
func (a *Adoption) restore(ctx context.Context, was *appsv1.Deployment) error {
	d := &appsv1.Deployment{}
	if err := a.host.Get(ctx, client.ObjectKeyFromObject(was), d); err != nil {
		return err
	}
	d.Spec.Template, d.Spec.Strategy = was.Spec.Template, was.Spec.Strategy
	if err := a.host.Update(ctx, d); err != nil {
		return err
	}
	return a.await(ctx, d.Name)
}

func (r *record) restoreWebhooks(ctx context.Context, plane client.Client) error {
	for i := range r.Mutating {
		c := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := plane.Get(ctx, client.ObjectKeyFromObject(&r.Mutating[i]), c); err != nil {
			return err
		}
		c.Webhooks = r.Mutating[i].Webhooks
		if err := plane.Update(ctx, c); err != nil {
			return err
		}
	}
	for i := range r.Validating {
		c := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		if err := plane.Get(ctx, client.ObjectKeyFromObject(&r.Validating[i]), c); err != nil {
			return err
		}
		c.Webhooks = r.Validating[i].Webhooks
		if err := plane.Update(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// limits are those of agents; the first is their admission policy.
func limits() []client.Object { return registration.Limits(nil) }

// restoreLimits removes the limits of agents, unless they were there. With them, the registration of Karmada cannot write roles.
func (r *record) restoreLimits(ctx context.Context, plane client.Client) error {
	if r.Limited {
		return nil
	}
	for _, o := range limits() {
		if err := plane.Delete(ctx, o); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing the limits of agents: %w", err)
		}
	}
	return nil
}

// restoreCRDs writes the APIs of the federation as they were. Objects of those that know only the former names of purge modes get them again.
func (r *record) restoreCRDs(ctx context.Context, plane client.Client) error {
	var kinds []schema.GroupVersionKind
	for i := range r.CRDs {
		text, err := json.Marshal(r.CRDs[i].Spec)
		if err != nil {
			return err
		}
		for _, kind := range purgingKinds() {
			if kind.Kind == r.CRDs[i].Spec.Names.Kind && bytes.Contains(text, []byte(`"Immediately"`)) && !bytes.Contains(text, []byte(`"Directly"`)) {
				kinds = append(kinds, kind)
			}
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := plane.Get(ctx, client.ObjectKeyFromObject(&r.CRDs[i]), crd); err != nil {
			return err
		}
		crd.Spec = r.CRDs[i].Spec
		if err := plane.Update(ctx, crd); err != nil {
			return err
		}
	}
	_, err := renamePurgeModes(ctx, plane, kinds, former(), false)
	return err
}

// generatorRole is the ClusterRole, and its binding, of the user by whom Karmada's "register" may do everything. Whoever had a bootstrap
// token may have its certificate; here nobody needs it.
const generatorRole = "system:karmada:agent-rbac-generator"

// Finish deletes the way back, the user of Karmada's registration that may do everything, and what the hooks of its chart left.
func (a *Adoption) Finish(ctx context.Context) error {
	r, err := a.recorded(ctx)
	if err != nil {
		return err
	}
	p, err := discover(ctx, a.host, a.Namespace, a.Images, a.Etcd)
	if err != nil {
		return err
	}
	var release string
	for i := range r.Deployments {
		was := componentOf(&r.Deployments[i], a.Images)
		release = cmp.Or(release, r.Deployments[i].Annotations[helmRelease])
		if slices.ContainsFunc(p.Components, func(is Component) bool { return is.Name == was.Name && is.Image == was.Image && !is.Adopted() }) {
			return errors.New("not all components are adopted: run the command without --finish first, or go back with --rollback")
		}
	}
	if release != "" {
		if err := a.removeHooks(ctx, release); err != nil {
			return err
		}
	}
	role := metav1.ObjectMeta{Name: generatorRole}
	for _, o := range []client.Object{&rbacv1.ClusterRoleBinding{ObjectMeta: role}, &rbacv1.ClusterRole{ObjectMeta: role}} {
		if err := a.plane.Delete(ctx, o); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting the rights of Karmada's registration, %s: %w", generatorRole, err)
		}
	}
	return a.host.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: recordSecret}})
}

// removeHooks deletes what the hooks of Karmada's chart leave: a ServiceAccount that may write everything in the host cluster, and
// ConfigMaps. Its ClusterRole stays if another release of this name has it.
func (a *Adoption) removeHooks(ctx context.Context, release string) error {
	account := release + "-hook-job"
	objects := []client.Object{&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: account}}}
	binding := &rbacv1.ClusterRoleBinding{}
	err := a.host.Get(ctx, client.ObjectKey{Name: account}, binding)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the rights of the hooks of the chart: %w", err)
	}
	if err == nil && !slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return s.Namespace != a.Namespace || s.Name != account }) {
		objects = append(objects, binding, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: account}})
	}
	maps := &corev1.ConfigMapList{}
	if err := a.host.List(ctx, maps, client.InNamespace(a.Namespace)); err != nil {
		return fmt.Errorf("listing the ConfigMaps of the hooks of the chart: %w", err)
	}
	for i := range maps.Items {
		name, ours := strings.CutPrefix(maps.Items[i].Name, release+"-")
		if ours && (name == "config" || name == "static-resources" || strings.HasPrefix(name, "crds-")) {
			objects = append(objects, &maps.Items[i])
		}
	}
	for _, o := range objects {
		if err := a.host.Delete(ctx, o); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting what the hooks of the chart left, %s: %w", o.GetName(), err)
		}
	}
	return nil
}
