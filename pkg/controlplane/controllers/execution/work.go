package execution

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/internal/status"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/execution"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// workState is what is kept of a Work between two reconciliations. Only the worker that reconciles the Work uses it.
type workState struct {
	uid types.UID
	// generation is that of the manifests of objects, and digest their hash.
	generation int64
	digest     uint64
	objects    []*object
	// removed are objects of earlier manifests that are still to be deleted.
	removed []*object

	// finalized reports that the finalizer was removed, and leaving is when an agent first observed the deletion.
	finalized bool
	leaving   time.Time

	written status.Written[*workv1alpha1.WorkStatus]
	// dirtySince is when the status first differed from what is written.
	dirtySince time.Time
	// published are the failures of the interpreter that were published, by reason and object.
	published map[string]string
}

// object is one manifest of a Work.
type object struct {
	gvk schema.GroupVersionKind
	key types.NamespacedName
	gvr schema.GroupVersionResource
	// kind is nil until the resource of the kind is known.
	kind     *kind
	applied  execution.Applied
	observed execution.Observed
	// incarnation is that of the member for which applied and observed were recorded; 0 before the first.
	incarnation uint64
}

// contested returns a line for each field that another field manager in the member changes again after each write, and for each
// node port instead of which the member has another one.
func (s *workState) contested() (fields, ports []string) {
	for _, o := range s.objects {
		name := o.gvk.Kind + " " + strings.TrimPrefix(o.key.String(), "/")
		for _, f := range o.applied.Contested() {
			fields = append(fields, fmt.Sprintf("%s of %s by %q", f.Path, name, f.Manager))
		}
		for _, line := range o.applied.NodePorts() {
			ports = append(ports, line+" ("+name+")")
		}
	}
	return fields, ports
}

// parse sets the objects to the manifests of the Work. What is known of an object that has another manifest now is kept.
func (r *runner) parse(work *workv1alpha1.Work, s *workState) error {
	digest := r.hasher.Manifests(work.Spec.Workload.Manifests)
	if s.generation == work.Generation && s.digest == digest && s.objects != nil {
		return nil
	}
	objects := make([]*object, len(work.Spec.Workload.Manifests))
	for i := range objects {
		o, err := identify(work.Spec.Workload.Manifests[i].Raw)
		if err != nil {
			return fmt.Errorf("reading manifest %d of work %s/%s: %w", i, work.Namespace, work.Name, err)
		}
		objects[i] = o
	}
	for _, o := range objects {
		// It may have failed before because it exists.
		o.applied = execution.Unknown(meta.IsStatusConditionFalse(work.Status.Conditions, workv1alpha1.WorkApplied))
		for _, old := range s.objects {
			if old.gvk == o.gvk && old.key == o.key {
				o.applied, o.observed, o.incarnation = old.applied.Outdated(), old.observed, old.incarnation
				o.gvr, o.kind, old.kind = old.gvr, old.kind, nil
			}
		}
	}
	s.removed = removed(work, s, objects)
	r.release(work.Name, s)
	s.objects, s.generation, s.digest = objects, work.Generation, digest
	return nil
}

// removed returns the objects that a Work had, as far as is known or listed in its status, and that are not among its objects any more.
// Another version of a kind is the same object.
func removed(work *workv1alpha1.Work, s *workState, objects []*object) []*object {
	had := slices.Concat(s.removed, s.objects)
	for i := range work.Status.ManifestStatuses {
		id := &work.Status.ManifestStatuses[i].Identifier
		had = append(had, &object{
			gvk: schema.GroupVersionKind{Group: id.Group, Version: id.Version, Kind: id.Kind}, key: types.NamespacedName{Namespace: id.Namespace, Name: id.Name},
		})
	}
	var out []*object
	for _, o := range had {
		same := func(other *object) bool { return other.gvk.GroupKind() == o.gvk.GroupKind() && other.key == o.key }
		if !slices.ContainsFunc(objects, same) && !slices.ContainsFunc(out, same) {
			out = append(out, &object{gvk: o.gvk, key: o.key})
		}
	}
	return out
}

// resolve finds the resource of the kind of an object, and has the kind observed. It drops what is known of the object if the member was
// restored since.
func (r *runner) resolve(m *access.Member, work string, o *object) error {
	if now := m.Incarnation().Number; o.incarnation < now {
		if o.incarnation > 0 {
			o.applied, o.observed = execution.Unknown(true), o.observed.Outdated()
		}
		o.incarnation = now
	}
	if o.kind != nil {
		return nil
	}
	mapping, err := m.Mapping(o.gvk)
	if err != nil {
		return fmt.Errorf("finding the resource of %s: %w", o.gvk, err)
	}
	o.gvr = mapping.Resource
	o.kind = r.acquire(o.gvr, o.gvk, work)
	return nil
}

func identify(raw []byte) (*object, error) {
	var m metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	gv, err := schema.ParseGroupVersion(m.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	return &object{gvk: gv.WithKind(m.Kind), key: types.NamespacedName{Namespace: m.Namespace, Name: m.Name}}, nil
}

// statusObjects returns the objects as they are in the status of the Work.
func (s *workState) statusObjects() []execution.Object {
	out := make([]execution.Object, len(s.objects))
	for i, o := range s.objects {
		out[i] = execution.Object{GVK: o.gvk, Key: o.key, Observed: o.observed}
	}
	return out
}

// isNews reports whether a failure of an object has another message than the one that was published last.
func (s *workState) isNews(reason, object, message string) bool {
	key := reason + object
	if s.published[key] == message {
		return false
	}
	if s.published == nil {
		s.published = map[string]string{}
	}
	s.published[key] = message
	return true
}
