package installer

import (
	"context"
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stuckAfter is how long a new API may take to be established; the API server needs
// less, but looks at an API that it took in only once: when it is ended between the
// two, that API is never established.
const stuckAfter = 15 * time.Second

// unaccepted makes an API like one that was just written. The API server leaves
// those alone whose accepted names are those asked for, whatever their conditions.
const unaccepted = `{"status":{"conditions":[],"acceptedNames":{"plural":"","singular":"","kind":"","listKind":"","shortNames":[],"categories":[]}}}`

// definitions writes the APIs of the federation and waits until they are
// established.
func (s *state) definitions(ctx context.Context) error {
	result, err := s.applyControlPlane(ctx, phaseCRDs)
	if err != nil {
		return err
	}
	cp, err := s.controlPlane()
	if err != nil {
		return err
	}
	_, cfg, err := s.credentials()
	if err != nil {
		return err
	}
	objects, err := s.crds(cfg)
	if err != nil {
		return err
	}
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = o.GetName()
	}
	e := &establishing{client: cp, now: s.Now, left: names, since: s.Now()}
	if err := s.poll(ctx, s.limit(), phaseCRDs, "the APIs to be established", e.look); err != nil {
		return fmt.Errorf("the APIs are not established: %w", err)
	}
	s.Progress.Done(phaseCRDs, result)
	return nil
}

// establishing waits for APIs.
type establishing struct {
	client client.Client
	now    func() time.Time
	// left are the names of those that are not established, since when they were last
	// pushed, or first looked at.
	left  []string
	since time.Time
}

// look asks for those that are left, and has the API server look again at those that
// are stuck.
func (e *establishing) look(ctx context.Context) error {
	var left []string
	stuck := e.now().Sub(e.since) > stuckAfter
	for _, name := range e.left {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := e.client.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
			return err
		}
		if established(crd) {
			continue
		}
		left = append(left, name)
		if !stuck {
			continue
		}
		push := client.RawPatch(types.MergePatchType, []byte(unaccepted))
		if err := e.client.Status().Patch(ctx, crd, push); err != nil {
			return fmt.Errorf("having the API server look at %s again: %w", name, err)
		}
		e.since = e.now()
	}
	if e.left = left; len(left) > 0 {
		return fmt.Errorf("%s", strings.Join(left, ", "))
	}
	return nil
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}
