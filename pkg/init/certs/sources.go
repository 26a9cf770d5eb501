package certs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/karmada-toolkit/karmada/internal/pki"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/write"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
)

// base returns the name of a file without its directory.
func (c *content) base() string {
	if c.Kind != KindFile {
		return ""
	}
	return filepath.Base(c.Name)
}

// objectContents are contents of one object, which is updated as a whole.
type objectContents struct {
	place Place
	since *time.Time
	*holder
	out []*content
}

func newObjectContents(c client.Client, o client.Object, scheme *runtime.Scheme) *objectContents {
	kind := "Object"
	if gvk, err := apiutil.GVKForObject(o, scheme); err == nil {
		kind = gvk.Kind
	}
	before := o.DeepCopyObject().(client.Object)
	return &objectContents{
		place: Place{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}, since: new(o.GetCreationTimestamp().UTC()),
		holder: &holder{save: func(ctx context.Context) error {
			return c.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(write.FieldManager))
		}},
	}
}

// add adds a content unless it has no certificates and keys.
func (o *objectContents) add(key string, data []byte, pem bool, set func([]byte)) {
	place := o.place
	place.Key = key
	c := &content{Place: place, data: data, set: set, holder: o.holder, pem: pem, since: o.since}
	if len(c.pieces()) > 0 {
		o.out = append(o.out, c)
	}
}

// secretContents returns the contents of the Secrets that options choose. pem forbids kubeconfigs in them.
func secretContents(ctx context.Context, c client.Client, pem bool, options ...client.ListOption) ([]*content, error) {
	list := &corev1.SecretList{}
	if err := c.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("listing the Secrets: %w", err)
	}
	var out []*content
	for i := range list.Items {
		s := &list.Items[i]
		if len(s.Data[stateKey]) > 0 || s.Type == corev1.SecretTypeServiceAccountToken || strings.HasPrefix(string(s.Type), "helm.sh/") {
			continue
		}
		o := newObjectContents(c, s, c.Scheme())
		for _, key := range sortedKeys(s.Data) {
			o.add(key, s.Data[key], pem, func(data []byte) {
				s.Data[key] = data
				if _, ok := s.Annotations[components.RenewAfterAnnotation]; ok && !pem {
					s.Annotations[components.RenewAfterAnnotation] = components.RenewAfter(s.Data)
				}
			})
		}
		out = append(out, o.out...)
	}
	return out, nil
}

// controlPlaneContents returns what is in the objects of a control plane, and what could not be read.
func controlPlaneContents(ctx context.Context, c client.Client) ([]*content, []error) {
	var out []*content
	var errs []error
	add := func(what string, contents []*content, err error) {
		out = append(out, contents...)
		if err != nil {
			errs = append(errs, fmt.Errorf("reading %s: %w", what, err))
		}
	}
	contents, err := clusterInfo(ctx, c)
	add("cluster-info", contents, err)
	for _, list := range []client.ObjectList{
		&apiregistrationv1.APIServiceList{}, &admissionregistrationv1.MutatingWebhookConfigurationList{},
		&admissionregistrationv1.ValidatingWebhookConfigurationList{}, &apiextensionsv1.CustomResourceDefinitionList{},
	} {
		contents, err := bundles(ctx, c, list)
		add("webhooks and APIServices", contents, err)
	}
	contents, err = secretContents(ctx, c, true, client.InNamespace(clusterv1alpha1.NamespaceKarmadaCluster))
	add("the credentials of clusters", contents, err)
	return out, errs
}

// clusterInfo returns where clusters that register find the authorities.
func clusterInfo(ctx context.Context, c client.Client) ([]*content, error) {
	info := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespacePublic, Name: registration.ClusterInfoName}, info)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	o := newObjectContents(c, info, c.Scheme())
	const key = registration.ClusterInfoKey
	o.add(key, []byte(info.Data[key]), false, func(data []byte) { info.Data[key] = string(data) })
	return o.out, nil
}

// bundles returns the authorities of the servers that the objects of a list name.
func bundles(ctx context.Context, c client.Client, list client.ObjectList) ([]*content, error) {
	if err := c.List(ctx, list); err != nil {
		return nil, err
	}
	var out []*content
	add := func(o client.Object, bundles map[string]*[]byte) {
		contents := newObjectContents(c, o, c.Scheme())
		for _, key := range sortedKeys(bundles) {
			at := bundles[key]
			contents.add(key, *at, true, func(data []byte) { *at = data })
		}
		out = append(out, contents.out...)
	}
	switch list := list.(type) {
	case *apiregistrationv1.APIServiceList:
		for i := range list.Items {
			add(&list.Items[i], map[string]*[]byte{"caBundle": &list.Items[i].Spec.CABundle})
		}
	case *admissionregistrationv1.MutatingWebhookConfigurationList:
		for i := range list.Items {
			at := map[string]*[]byte{}
			for j := range list.Items[i].Webhooks {
				at[list.Items[i].Webhooks[j].Name+" caBundle"] = &list.Items[i].Webhooks[j].ClientConfig.CABundle
			}
			add(&list.Items[i], at)
		}
	case *admissionregistrationv1.ValidatingWebhookConfigurationList:
		for i := range list.Items {
			at := map[string]*[]byte{}
			for j := range list.Items[i].Webhooks {
				at[list.Items[i].Webhooks[j].Name+" caBundle"] = &list.Items[i].Webhooks[j].ClientConfig.CABundle
			}
			add(&list.Items[i], at)
		}
	case *apiextensionsv1.CustomResourceDefinitionList:
		for i := range list.Items {
			if conversion := list.Items[i].Spec.Conversion; conversion != nil && conversion.Webhook != nil && conversion.Webhook.ClientConfig != nil {
				add(&list.Items[i], map[string]*[]byte{"caBundle": &conversion.Webhook.ClientConfig.CABundle})
			}
		}
	}
	return out, nil
}

// maxFile is how large a file with certificates may be, in bytes.
const maxFile = 1 << 20

// fileContents returns the contents of files, and of those in directories whose names are those of certificates and kubeconfigs. Of a
// directory or file that does not exist there are none.
func fileContents(paths ...string) ([]*content, error) {
	var out []*content
	for _, root := range paths {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case !entry.Type().IsRegular() || path != root && !isCertificateFile(entry.Name()):
				return nil
			}
			c, err := fileContent(path)
			if err == nil && len(c.pieces()) > 0 {
				out = append(out, c)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("reading the certificates in %s: %w", root, err)
		}
	}
	return out, nil
}

// isCertificateFile reports whether a file can have certificates by its name.
func isCertificateFile(file string) bool {
	return slices.Contains([]string{".crt", ".key", ".kubeconfig", ".config"}, filepath.Ext(file)) || file == "kubeconfig"
}

func fileContent(path string) (*content, error) {
	info, err := os.Stat(path)
	if err != nil || info.Size() > maxFile {
		return &content{}, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := &content{Place: Place{Kind: KindFile, Name: path}, data: data, since: new(info.ModTime().UTC())}
	c.set = func([]byte) {}
	c.holder = &holder{save: func(context.Context) error { return pki.WriteFile(path, c.data, info.Mode().Perm()) }}
	return c, nil
}
