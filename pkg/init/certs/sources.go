package certs

import (
	"context"
	"encoding/base64"
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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

func newObjectContents(c client.Client, o client.Object) *objectContents {
	kind := "Object"
	if gvk, err := c.GroupVersionKindFor(o); err == nil {
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
		o := newObjectContents(c, s)
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

// readControlPlane returns what is in the objects of a control plane.
func readControlPlane(ctx context.Context, c client.Client) *inventory {
	out := &inventory{}
	add := func(what string, contents []*content, err error) {
		out.contents = append(out.contents, contents...)
		if err != nil {
			out.gaps = append(out.gaps, fmt.Errorf("reading %s: %w", what, err))
		}
	}
	contents, err := clusterInfo(ctx, c)
	add("cluster-info", contents, err)
	for _, gvk := range []schema.GroupVersionKind{
		apiregistrationv1.SchemeGroupVersion.WithKind("APIService"), admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"),
		admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"), apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
	} {
		contents, err := bundles(ctx, c, gvk)
		add("each "+gvk.Kind, contents, err)
	}
	contents, err = secretContents(ctx, c, true, client.InNamespace(clusterv1alpha1.NamespaceKarmadaCluster))
	add("the credentials of clusters", contents, err)
	return out
}

// clusterInfo returns where clusters that register find the authorities.
func clusterInfo(ctx context.Context, c client.Client) ([]*content, error) {
	info := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespacePublic, Name: registration.ClusterInfoName}, info)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	o := newObjectContents(c, info)
	const key = registration.ClusterInfoKey
	o.add(key, []byte(info.Data[key]), false, func(data []byte) { info.Data[key] = string(data) })
	return o.out, nil
}

// bundles returns the authorities of the servers that the objects of a kind name.
func bundles(ctx context.Context, c client.Client, gvk schema.GroupVersionKind) ([]*content, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	if err := c.List(ctx, list); err != nil {
		return nil, err
	}
	var out []*content
	for i := range list.Items {
		o := newObjectContents(c, &list.Items[i])
		addBundles(o, list.Items[i].Object, "")
		out = append(out, o.out...)
	}
	return out, nil
}

// addBundles adds the fields caBundle in a value. Each has the name of the webhook that it is of, if it has one.
func addBundles(o *objectContents, value any, of string) {
	switch value := value.(type) {
	case []any:
		for _, v := range value {
			addBundles(o, v, of)
		}
	case map[string]any:
		if name, ok := value["name"].(string); ok {
			of = name + " "
		}
		for _, key := range sortedKeys(value) {
			text, ok := value[key].(string)
			if !ok || key != "caBundle" {
				addBundles(o, value[key], of)
				continue
			}
			if data, err := base64.StdEncoding.DecodeString(text); err == nil {
				o.add(of+key, data, true, func(data []byte) { value[key] = base64.StdEncoding.EncodeToString(data) })
			}
		}
	}
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
