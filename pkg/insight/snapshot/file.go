package snapshot

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/limit"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
)

// FileVersion is the version of the format of files.
const FileVersion = "v1"

// fileKind is the kind of files.
const fileKind = "FederationSnapshot"

// maxFile is the maximum length of a file in bytes.
const maxFile = 256 << 20

// file are Contents as they are stored.
type file struct {
	Kind          string            `json:"kind"`
	SchemaVersion string            `json:"schemaVersion"`
	Time          time.Time         `json:"time"`
	Namespace     string            `json:"namespace,omitempty"`
	Gaps          []string          `json:"gaps,omitempty"`
	Kinds         []fileKindEntry   `json:"kinds"`
	Objects       []json.RawMessage `json:"objects"`
}

type fileKindEntry struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced,omitempty"`
}

// Write writes contents as JSON. Secret values are HMACs with a key that is not kept: equal values of one file have equal hashes. Users in URLs
// are masked.
func (c *Contents) Write(out io.Writer) error {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	hash := func(_ []string, value any) string {
		mac := hmac.New(sha256.New, key)
		_, _ = fmt.Fprint(mac, value)
		return base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	f := file{Kind: fileKind, SchemaVersion: FileVersion, Time: c.Now, Namespace: c.Namespace, Kinds: []fileKindEntry{}}
	for _, g := range c.Gaps {
		f.Gaps = append(f.Gaps, g.String())
	}
	for _, k := range c.Kinds {
		f.Kinds = append(f.Kinds, fileKindEntry{k.GroupVersion().String(), k.Kind, k.Namespaced})
	}
	scheme := kube.NewScheme()
	add := func(o runtime.Object) error {
		u, err := stored(scheme, o)
		if err != nil {
			return err
		}
		if w, ok := o.(*workv1alpha1.Work); ok && hasSecret(w) {
			return nil // its values are not stored
		}
		text, err := json.Marshal(manifest.Masked(u, hash).Object)
		f.Objects = append(f.Objects, text)
		return err
	}
	if err := errors.Join(each(c.Clusters, add), each(c.Policies, add), each(c.Overrides, add), each(c.TaintPolicies, add), each(c.Quotas, add),
		each(c.Customizations, add), each(c.Webhooks, add), each(c.Related, add), each(c.Templates, add), each(c.Bindings, add), each(c.Works, add)); err != nil {
		return fmt.Errorf("encoding the snapshot: %w", err)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", " ")
	return encoder.Encode(f)
}

func each[T runtime.Object](objects []T, do func(runtime.Object) error) error {
	for _, o := range objects {
		if err := do(o); err != nil {
			return err
		}
	}
	return nil
}

// stored returns an object with its kind and without managed fields.
func stored(scheme *runtime.Scheme, o runtime.Object) (*unstructured.Unstructured, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		kinds, _, err := scheme.ObjectKinds(o)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		u = &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(text, &u.Object); err != nil { // with the types of numbers that can be copied
			return nil, err
		}
		u.SetGroupVersionKind(kinds[0])
		u.SetManagedFields(nil)
	}
	return u, nil
}

var secret = corev1.SchemeGroupVersion.WithKind("Secret").GroupKind()

// hasSecret reports whether a Work delivers a Secret, or something that cannot be decoded.
func hasSecret(w *workv1alpha1.Work) bool {
	return slices.ContainsFunc(w.Spec.Workload.Manifests, func(m workv1alpha1.Manifest) bool {
		u := &unstructured.Unstructured{}
		return json.Unmarshal(m.Raw, &u.Object) != nil || u.GroupVersionKind().GroupKind() == secret
	})
}

// errVersion is that a file has another format.
var errVersion = errors.New("it is no snapshot of this version of the command: take it again with \"snapshot\"")

// Read reads what Write wrote. The error is that it is none, or of another version.
func Read(in io.Reader) (*Contents, error) {
	text, err := limit.Read("the snapshot", in, maxFile)
	if err != nil {
		return nil, err
	}
	f := file{}
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("decoding the snapshot: %w", err)
	}
	if f.Kind != fileKind || f.SchemaVersion != FileVersion {
		return nil, fmt.Errorf("kind %q, schemaVersion %q, want %q, %q: %w", f.Kind, f.SchemaVersion, fileKind, FileVersion, errVersion)
	}
	c := &Contents{Now: f.Time, Namespace: f.Namespace, Hashed: true}
	for _, g := range f.Gaps {
		what, cause, _ := strings.Cut(g, ": ")
		c.Gaps = append(c.Gaps, Gap{what, errors.New(cause)})
	}
	for _, k := range f.Kinds {
		c.Kinds = append(c.Kinds, Kind{schema.FromAPIVersionAndKind(k.APIVersion, k.Kind), k.Namespaced})
	}
	for i, text := range f.Objects {
		u := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(text, &u.Object); err != nil {
			return nil, fmt.Errorf("decoding objects[%d] of the snapshot: %w", i, err)
		}
		object, err := Typed(u)
		if err != nil {
			return nil, fmt.Errorf("objects[%d] of the snapshot: %w", i, err)
		}
		c.add(object)
	}
	slices.SortFunc(c.Clusters, func(a, b *clusterv1alpha1.Cluster) int { return strings.Compare(a.Name, b.Name) })
	c.sort()
	return c, nil
}

func (c *Contents) add(object runtime.Object) {
	switch o := object.(type) {
	case *clusterv1alpha1.Cluster:
		c.Clusters = append(c.Clusters, o)
	case policyv1alpha1.Policy:
		c.Policies = append(c.Policies, o)
	case policyv1alpha1.OverridePolicyObject:
		c.Overrides = append(c.Overrides, o)
	case *policyv1alpha1.ClusterTaintPolicy:
		c.TaintPolicies = append(c.TaintPolicies, o)
	case *policyv1alpha1.FederatedResourceQuota:
		c.Quotas = append(c.Quotas, o)
	case *configv1alpha1.ResourceInterpreterCustomization:
		c.Customizations = append(c.Customizations, o)
	case *configv1alpha1.ResourceInterpreterWebhookConfiguration:
		c.Webhooks = append(c.Webhooks, o)
	case workv1alpha2.Binding:
		c.Bindings = append(c.Bindings, o)
	case *workv1alpha1.Work:
		c.Works = append(c.Works, o)
	case *unstructured.Unstructured:
		if slices.Contains(relatedKinds(), o.GroupVersionKind()) {
			c.Related = append(c.Related, o)
			return
		}
		c.Templates = append(c.Templates, o)
	}
}

// Typed returns an object of the type of u if it is of a kind that decides what clusters get, and u itself if it is a template. The
// error is that it is no such object.
func Typed(u *unstructured.Unstructured) (runtime.Object, error) {
	into := newObject(u.GroupVersionKind())
	if into == nil {
		return u, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		return nil, fmt.Errorf("decoding %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return into, nil
}

// newObject returns an empty object of a kind that decides what clusters get; nil for other kinds.
func newObject(kind schema.GroupVersionKind) runtime.Object {
	for group, objects := range map[schema.GroupVersion][]runtime.Object{
		policyv1alpha1.GroupVersion: {
			&policyv1alpha1.PropagationPolicy{}, &policyv1alpha1.ClusterPropagationPolicy{}, &policyv1alpha1.OverridePolicy{}, &policyv1alpha1.ClusterOverridePolicy{},
			&policyv1alpha1.ClusterTaintPolicy{}, &policyv1alpha1.FederatedResourceQuota{},
		},
		configv1alpha1.GroupVersion:  {&configv1alpha1.ResourceInterpreterCustomization{}, &configv1alpha1.ResourceInterpreterWebhookConfiguration{}},
		clusterv1alpha1.GroupVersion: {&clusterv1alpha1.Cluster{}},
		workv1alpha1.GroupVersion:    {&workv1alpha1.Work{}},
		workv1alpha2.GroupVersion:    {&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}},
	} {
		for _, o := range objects {
			if group == kind.GroupVersion() && reflect.TypeOf(o).Elem().Name() == kind.Kind {
				return o
			}
		}
	}
	return nil
}
