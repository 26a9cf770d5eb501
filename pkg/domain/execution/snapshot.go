package execution

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	"github.com/karmada-toolkit/karmada/internal/resourceversion"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Snapshot is an object of a member as JSON, which takes a tenth of the memory of the
// decoded object.
type Snapshot struct {
	UID     types.UID
	Version string
	// Hash is that of the object without its status and without the metadata that
	// changes with every write.
	Hash uint64
	// Work is the Work that the annotations of the object name.
	Work types.NamespacedName

	generation      int64
	content, status []byte
}

// Hasher takes snapshots. Hashes of different Hashers cannot be compared.
type Hasher struct{ seed maphash.Seed }

// NewHasher returns a Hasher.
func NewHasher() Hasher { return Hasher{maphash.MakeSeed()} }

// Manifests returns the hash of manifests.
func (h Hasher) Manifests(manifests []workv1alpha1.Manifest) uint64 {
	var hash maphash.Hash
	hash.SetSeed(h.seed)
	for i := range manifests {
		_, _ = hash.Write(manifests[i].Raw)
		_ = hash.WriteByte(0)
	}
	return hash.Sum64()
}

// Snapshot returns the snapshot of an object.
func (h Hasher) Snapshot(obj *unstructured.Unstructured) (Snapshot, error) {
	annotations := obj.GetAnnotations()
	out := Snapshot{
		UID: obj.GetUID(), Version: obj.GetResourceVersion(), generation: obj.GetGeneration(),
		Work: types.NamespacedName{
			Namespace: annotations[workv1alpha2.WorkNamespaceAnnotation],
			Name:      annotations[workv1alpha2.WorkNameAnnotation],
		},
	}
	fields := make(map[string]any, len(obj.Object))
	for key, value := range obj.Object {
		switch key {
		case "status":
			status, err := json.Marshal(value)
			if err != nil {
				return Snapshot{}, fmt.Errorf("encoding the status: %w", err)
			}
			out.status = status
		case "metadata":
			fields[key] = stableMetadata(value)
		default:
			fields[key] = value
		}
	}
	content, err := json.Marshal(fields)
	if err != nil {
		return Snapshot{}, fmt.Errorf("encoding the object: %w", err)
	}
	out.content, out.Hash = content, maphash.Bytes(h.seed, content)
	return out, nil
}

// stableMetadata returns metadata without the fields that change with every write.
func stableMetadata(value any) any {
	metadata, ok := value.(map[string]any)
	if !ok {
		return value
	}
	out := make(map[string]any, len(metadata))
	for key, v := range metadata {
		switch key {
		case "managedFields", "resourceVersion", "generation":
		default:
			out[key] = v
		}
	}
	return out
}

// Object returns the decoded object.
func (s *Snapshot) Object() (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(s.content); err != nil {
		return nil, fmt.Errorf("decoding the object: %w", err)
	}
	obj.SetResourceVersion(s.Version)
	if s.generation != 0 {
		obj.SetGeneration(s.generation)
	}
	if s.status == nil {
		return obj, nil
	}
	var status any
	if err := utiljson.Unmarshal(s.status, &status); err != nil {
		return nil, fmt.Errorf("decoding the status: %w", err)
	}
	obj.Object["status"] = status
	return obj, nil
}

// SameStatus reports whether two snapshots have the same generation and status.
func (s *Snapshot) SameStatus(other *Snapshot) bool {
	return s.generation == other.generation && bytes.Equal(s.status, other.status)
}

// Share makes the snapshot share the content with an earlier one, where only the status changed.
func (s *Snapshot) Share(old *Snapshot) {
	if old != nil && old.Hash == s.Hash {
		s.content = old.content
	}
}

// Size returns the approximate size of the snapshot in bytes.
func (s *Snapshot) Size() int {
	const overhead = 256
	return overhead + len(s.content) + len(s.status)
}

// View is what is observed of an object in its cluster.
type View struct {
	// Snapshot is nil if the object was not observed.
	Snapshot *Snapshot
	// Synced reports whether the first list was complete before the snapshot was taken: without a snapshot, the object did not exist then.
	Synced bool
	// Version is the resource version up to which all objects of the kind were observed before the snapshot was taken; empty before the first
	// list.
	Version string
	// Started is the time since when the kind is observed.
	Started time.Time
}

// gone reports whether an object is gone of which this version existed.
func (v View) gone(version string) bool {
	return v.Snapshot == nil && v.Synced && v.Version != "" && !resourceversion.Newer(version, v.Version)
}

// maxText is the limit of a text from a member, in bytes.
const maxText = 1024

// Text returns text from a member, such as an error, in a form fit for events and conditions.
func Text(s string) string { return plaintext.Line(s, maxText) }
