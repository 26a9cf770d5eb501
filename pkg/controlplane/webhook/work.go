package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
)

// workGlance is a Work with its manifests undecoded.
type workGlance struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec *struct {
		Workload *struct {
			Manifests *[]json.RawMessage `json:"manifests"`
		} `json:"workload"`
	} `json:"spec"`
}

// workMutator gives Works an id and brings their manifests into the shape that
// members get. Manifests that controllers have brought into shape are not
// decoded again.
type workMutator struct {
	kind  schema.GroupVersionKind
	newID func() string
}

// Handle implements admission.Handler.
func (m *workMutator) Handle(_ context.Context, req admission.Request) admission.Response {
	var work workGlance
	if err := json.Unmarshal(req.Object.Raw, &work); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding Work: %w", err))
	}
	if err := checkKind[workv1alpha1.Work](work.TypeMeta, m.kind); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	id := work.Metadata.Labels[workv1alpha2.WorkPermanentIDLabel]
	if id == "" {
		id = m.newID()
	}
	steps := labelStep(work.Metadata.Labels, workv1alpha2.WorkPermanentIDLabel, func() string { return id })
	more, err := workloadSteps(&work, id)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return patched(append(steps, more...))
}

// workloadSteps returns the steps that bring the manifests into shape.
func workloadSteps(work *workGlance, id string) ([]operation, error) {
	empty := map[string]any{}
	switch {
	case work.Spec == nil:
		return []operation{{Op: "add", Path: "/spec", Value: map[string]any{"workload": empty}}}, nil
	case work.Spec.Workload == nil:
		return []operation{{Op: "add", Path: "/spec/workload", Value: empty}}, nil
	case work.Spec.Workload.Manifests == nil:
		return nil, nil
	case len(*work.Spec.Workload.Manifests) == 0:
		return []operation{{Op: "remove", Path: "/spec/workload/manifests"}}, nil
	}
	var steps []operation
	for i, raw := range *work.Spec.Workload.Manifests {
		if inShape(raw, id) {
			continue
		}
		shaped, err := shapeManifest(raw, id)
		if err != nil {
			return nil, fmt.Errorf("manifest %d: %w", i, err)
		}
		if shaped != nil {
			steps = append(steps, operation{Op: "replace", Path: "/spec/workload/manifests/" + strconv.Itoa(i), Value: shaped})
		}
	}
	return steps, nil
}

// shapeManifest prunes a manifest and keeps its books. It returns nil when that
// changes nothing.
func shapeManifest(raw []byte, id string) (json.RawMessage, error) {
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	before, err := json.Marshal(obj.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	if err := manifest.Prune(obj); err != nil {
		return nil, err
	}
	manifest.Bookkeep(obj, id)
	after, err := json.Marshal(obj.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	if bytes.Equal(before, after) {
		return nil, nil
	}
	return after, nil
}

// header is the part of a manifest that shows whether it is in shape.
type header struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        *struct {
		Annotations map[string]string `json:"annotations"`
		Labels      map[string]string `json:"labels"`
		serverSet
	} `json:"metadata"`
	Status json.RawMessage `json:"status"`
}

// serverSet is the metadata that an API server sets, and manifests do not carry.
type serverSet struct {
	CreationTimestamp          any `json:"creationTimestamp"`
	DeletionTimestamp          any `json:"deletionTimestamp"`
	DeletionGracePeriodSeconds any `json:"deletionGracePeriodSeconds"`
	Generation                 any `json:"generation"`
	ManagedFields              any `json:"managedFields"`
	ResourceVersion            any `json:"resourceVersion"`
	SelfLink                   any `json:"selfLink"`
	UID                        any `json:"uid"`
	OwnerReferences            any `json:"ownerReferences"`
	Finalizers                 any `json:"finalizers"`
}

// none reports whether nothing is set.
func (s *serverSet) none() bool {
	for _, value := range []any{
		s.CreationTimestamp, s.DeletionTimestamp, s.DeletionGracePeriodSeconds, s.Generation, s.ManagedFields,
		s.ResourceVersion, s.SelfLink, s.UID, s.OwnerReferences, s.Finalizers,
	} {
		if value != nil {
			return false
		}
	}
	return true
}

// inShape reports whether a manifest surely needs nothing. Kinds of which more than
// metadata is pruned are decoded.
func inShape(raw []byte, id string) bool {
	var h header
	if json.Unmarshal(raw, &h) != nil || h.Metadata == nil || h.Status != nil {
		return false
	}
	return h.Metadata.none() && h.Metadata.Labels[workv1alpha2.WorkPermanentIDLabel] == id &&
		booked(h.Metadata.Annotations, h.Metadata.Labels) && cleanKind(raw, &h)
}

// cleanKind reports whether a manifest of a kind that is pruned further has surely
// nothing of what goes.
func cleanKind(raw []byte, h *header) bool {
	switch h.Kind {
	case "Deployment":
		return !has(h.Metadata.Annotations, "deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history")
	case "PersistentVolumeClaim":
		return !has(h.Metadata.Annotations, "volume.kubernetes.io/selected-node")
	case "Service":
		return !bytes.Contains(raw, []byte(`"clusterIP`))
	case "Secret":
		return !bytes.Contains(raw, []byte("service-account-token"))
	case "ServiceAccount":
		return !bytes.Contains(raw, []byte(`"secrets"`))
	case "Job":
		return false
	}
	return true
}

func has(m map[string]string, keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { _, ok := m[key]; return ok })
}

// booked reports whether the annotations that list annotations and labels are
// right.
func booked(annotations, labels map[string]string) bool {
	return has(annotations, workv1alpha2.ManagedAnnotation) && has(annotations, workv1alpha2.ManagedLabels) &&
		annotations[workv1alpha2.ManagedAnnotation] == joined(annotations) && annotations[workv1alpha2.ManagedLabels] == joined(labels)
}

// joined returns the sorted keys of m, joined by commas.
func joined(m map[string]string) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ",")
}
