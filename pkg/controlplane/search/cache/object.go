package cache

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/pkg/domain/search"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/follow"
)

// Object is a cached object. It is read-only.
type Object struct {
	// Namespace and Name are those of the object; Version is its resource version in the cluster.
	Namespace, Name, Version string
	// Labels are those of the object.
	Labels labels.Set
	// data is the object in compressed JSON, without managedFields, and with the name of its cluster; length is that of the JSON.
	data   []byte
	length int32
	// versionAt is where the resource version is in the JSON; 0 if that is not certain.
	versionAt int32
	codec     *codec
}

// Length returns the length of the JSON, in bytes.
func (o *Object) Length() int { return int(o.length) }

// overhead is about what an object takes beside its texts, in bytes.
const overhead = 200

// size returns about how much memory the object takes, in bytes.
func (o *Object) size() int {
	n := overhead + len(o.Namespace) + len(o.Name) + len(o.Version) + cap(o.data)
	for key, value := range o.Labels {
		n += overhead/4 + len(key) + len(value)
	}
	return n
}

// JSON returns the object as the cluster sent it, without managedFields, and with the annotation that names the cluster. It
// belongs to the caller.
func (o *Object) JSON() ([]byte, error) {
	data, err := o.codec.expand(o.data, o.length)
	if err != nil {
		return nil, fmt.Errorf("reading %s/%s from the cache: %w", o.Namespace, o.Name, err)
	}
	return data, nil
}

// WithVersions returns the object of JSON with the versions of several clusters in place of its own.
func (o *Object) WithVersions(cluster string, versions search.Versions) ([]byte, error) {
	data, err := o.JSON()
	if err != nil || o.versionAt == 0 {
		if err == nil {
			data, err = search.WithVersions(data, cluster, versions)
		}
		return data, err
	}
	encoded := versions.Encode()
	out := make([]byte, 0, len(data)+len(encoded))
	out = append(append(out, data[:o.versionAt]...), encoded...)
	return append(out, data[int(o.versionAt)+len(o.Version):]...), nil
}

// Decode returns the object of JSON. It belongs to the caller.
func (o *Object) Decode() (*unstructured.Unstructured, error) {
	data, err := o.JSON()
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("reading %s/%s from the cache: %w", o.Namespace, o.Name, err)
	}
	return out, nil
}

// codec compresses objects. It is safe for concurrent use.
type codec struct{ writers, readers sync.Pool }

// keep returns an object of a cluster to be cached. Labels that did not change are those of old.
func (c *codec) keep(in *unstructured.Unstructured, old *Object, cluster string) (Object, error) {
	u := follow.Clone(in)
	if err := access.CheckQuantities(u); err != nil {
		return Object{}, fmt.Errorf("%s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
	}
	u.SetManagedFields(nil)
	search.Annotate(u, cluster)
	text, err := json.Marshal(u.Object)
	if err != nil {
		return Object{}, fmt.Errorf("encoding: %w", err)
	}
	var data bytes.Buffer
	if err := c.compress(&data, text); err != nil {
		return Object{}, err
	}
	out := Object{
		Namespace: u.GetNamespace(), Name: u.GetName(), Version: u.GetResourceVersion(), Labels: u.GetLabels(),
		data: bytes.Clone(data.Bytes()), length: int32(len(text)), versionAt: versionAt(text, u.GetResourceVersion()), codec: c,
	}
	if old != nil && maps.Equal(old.Labels, out.Labels) {
		out.Labels = old.Labels
	}
	return out, nil
}

// settle copies an object and its key. Texts that many objects have in common are kept once.
func settle(_ types.NamespacedName, o Object) (types.NamespacedName, Object) {
	o.Namespace, o.Name, o.Version = unique.Make(o.Namespace).Value(), strings.Clone(o.Name), strings.Clone(o.Version)
	o.data = bytes.Clone(o.data)
	if o.Labels != nil {
		all := make(labels.Set, len(o.Labels))
		for key, value := range o.Labels {
			all[unique.Make(key).Value()] = strings.Clone(value)
		}
		o.Labels = all
	}
	return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, o
}

// versionAt returns where the resource version of an object is in its JSON, and 0 if there are several places.
func versionAt(text []byte, version string) int32 {
	key := []byte(`"resourceVersion":"`)
	if bytes.Count(text, key) != 1 {
		return 0
	}
	at := bytes.Index(text, key) + len(key)
	if version == "" || !bytes.HasPrefix(text[at:], []byte(version+`"`)) {
		return 0
	}
	return int32(at)
}

func (c *codec) compress(to *bytes.Buffer, data []byte) error {
	w, ok := c.writers.Get().(*flate.Writer)
	if !ok {
		var err error
		if w, err = flate.NewWriter(to, flate.BestSpeed); err != nil {
			return fmt.Errorf("compressing: %w", err)
		}
	}
	w.Reset(to)
	defer c.writers.Put(w)
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("compressing: %w", err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("compressing: %w", err)
	}
	return nil
}

func (c *codec) expand(data []byte, length int32) ([]byte, error) {
	from := bytes.NewReader(data)
	r, ok := c.readers.Get().(io.ReadCloser)
	if !ok {
		r = flate.NewReader(from)
	} else if err := r.(flate.Resetter).Reset(from, nil); err != nil {
		return nil, fmt.Errorf("expanding: %w", err)
	}
	defer c.readers.Put(r)
	out := make([]byte, length)
	if _, err := io.ReadFull(r, out); err != nil {
		return nil, fmt.Errorf("expanding: %w", err)
	}
	return out, nil
}
