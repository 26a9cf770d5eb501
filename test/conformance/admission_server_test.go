package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/crds"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/aggregated/registry"
)

// admissionServer answers like the API server of a control plane.
type admissionServer struct {
	kinds    map[schema.GroupVersionResource]*servedKind
	hooks    *hooks
	clusters *registry.Clusters
}

// newAdmissionServer returns a server of the control plane's kinds with the webhooks that
// handlers serve by path.
func newAdmissionServer(handlers map[string]http.Handler) (*admissionServer, error) {
	definitions, err := crds.All()
	if err != nil {
		return nil, fmt.Errorf("reading the definitions: %w", err)
	}
	clusters, err := newClusters()
	if err != nil {
		return nil, fmt.Errorf("preparing the storage of clusters: %w", err)
	}
	s := &admissionServer{kinds: map[schema.GroupVersionResource]*servedKind{}, hooks: newHooks(handlers), clusters: clusters}
	for _, crd := range definitions {
		if err := s.add(crd); err != nil {
			return nil, fmt.Errorf("%s: %w", crd.Name, err)
		}
	}
	return s, nil
}

func (s *admissionServer) add(crd *apiextensionsv1.CustomResourceDefinition) error {
	for i := range crd.Spec.Versions {
		version := &crd.Spec.Versions[i]
		if !version.Served {
			continue
		}
		k, err := newKind(crd, version)
		if err != nil {
			return fmt.Errorf("version %s: %w", version.Name, err)
		}
		s.kinds[schema.GroupVersionResource{Group: crd.Spec.Group, Version: version.Name, Resource: crd.Spec.Names.Plural}] = k
	}
	return nil
}

// admissionRequest is where an object is posted to.
type admissionRequest struct {
	resource  schema.GroupVersionResource
	namespace string
}

// parsePath understands /apis/group/version[/namespaces/ns]/resource.
func parsePath(path string) (admissionRequest, error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) == 6 && parts[3] == "namespaces" {
		return admissionRequest{schema.GroupVersionResource{Group: parts[1], Version: parts[2], Resource: parts[5]}, parts[4]}, nil
	}
	if len(parts) == 4 {
		return admissionRequest{schema.GroupVersionResource{Group: parts[1], Version: parts[2], Resource: parts[3]}, ""}, nil
	}
	return admissionRequest{}, fmt.Errorf("cannot understand the path %q", path)
}

// Create answers to an object that is posted to a path.
func (s *admissionServer) Create(ctx context.Context, path string, raw []byte) (admissionAnswer, error) {
	req, err := parsePath(path)
	if err != nil {
		return admissionAnswer{}, err
	}
	var obj map[string]any
	if req.resource.Group == clusterv1alpha1.GroupName {
		obj, err = createCluster(ctx, s.clusters, raw)
	} else {
		obj, err = s.createCustom(ctx, req, raw)
	}
	if err != nil {
		return refusal(err)
	}
	obj, err = cleanObject(obj)
	return admissionAnswer{Code: http.StatusCreated, Object: obj}, err
}

// refusal makes an answer of an API error.
func refusal(err error) (admissionAnswer, error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return admissionAnswer{}, err
	}
	st := status.Status()
	out := admissionAnswer{Code: int(st.Code), Reason: string(st.Reason), Message: st.Message, Fields: []string{}}
	if st.Details != nil {
		for _, cause := range st.Details.Causes {
			if cause.Field != "" && !slices.Contains(out.Fields, cause.Field) {
				out.Fields = append(out.Fields, cause.Field)
			}
		}
	}
	slices.Sort(out.Fields)
	return out, nil
}

// createCustom creates a custom resource as the API server does.
func (s *admissionServer) createCustom(ctx context.Context, req admissionRequest, raw []byte) (map[string]any, error) {
	k, ok := s.kinds[req.resource]
	if !ok {
		return nil, apierrors.NewNotFound(req.resource.GroupResource(), "")
	}
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(raw, &obj.Object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if req.namespace != "" {
		obj.SetNamespace(req.namespace)
	}
	k.shape(obj.Object)
	if err := s.hooks.mutate(ctx, req, k, obj); err != nil {
		return nil, err
	}
	k.createStrategy.PrepareForCreate(ctx, obj)
	if errs := k.createStrategy.Validate(ctx, obj); len(errs) > 0 {
		return nil, apierrors.NewInvalid(k.gvk.GroupKind(), obj.GetName(), errs)
	}
	if err := s.hooks.validate(ctx, req, k, obj); err != nil {
		return nil, err
	}
	return obj.Object, nil
}
