package phases

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/patch"
	apicrds "github.com/karmada-toolkit/karmada/pkg/apis/crds"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// stuckAfter is how long a new API may take to be established; the API server needs
// less, but processes an API whose names it accepted only once: when it is ended between the
// two, that API is never established.
const stuckAfter = 15 * time.Second

// unaccepted makes an API like one that was just written. The API server leaves
// those alone whose accepted names are the desired ones, whatever their conditions.
const unaccepted = `{"status":{"conditions":[],"acceptedNames":{"plural":"","singular":"","kind":"","listKind":"","shortNames":[],"categories":[]}}}`

func crdObjects(in *Inputs) ([]client.Object, error) {
	objects, err := definitions(in)
	if err != nil {
		return nil, err
	}
	return append(components.SystemNamespaces(in.System()), objects...), nil
}

// definitions are the APIs of the federation: those that are built in, or the user's.
func definitions(in *Inputs) ([]client.Object, error) {
	if in.CRDs == nil {
		return components.CRDs(in.WebhookURL(), in.Certificates.CABundle())
	}
	all := apicrds.ConvertedBy(in.CRDs, in.WebhookURL(), in.Certificates.CABundle())
	out := make([]client.Object, len(all))
	for i := range all {
		out[i] = all[i]
	}
	return out, nil
}

// awaitCRDs waits until the APIs of the federation are established.
func awaitCRDs(ctx context.Context, s *State, p Phase) (string, error) {
	cp, in, err := s.controlPlaneAndInputs(ctx)
	if err != nil {
		return "", err
	}
	objects, err := definitions(in)
	if err != nil {
		return "", err
	}
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = o.GetName()
	}
	e := &establishing{client: cp, now: s.Now, left: names, since: s.Now()}
	if err := s.wait(ctx, s.Config.Timeout(), p.Name, "the APIs to be established", e.check); err != nil {
		return "", fmt.Errorf("the APIs are not established: %w", err)
	}
	return "", nil
}

// establishing waits for APIs.
type establishing struct {
	client client.Client
	now    func() time.Time
	// left are the names of those that are not established, since when they were last
	// pushed, or first read.
	left  []string
	since time.Time
}

// check reads those that are left, and has the API server process those that are stuck again.
func (e *establishing) check(ctx context.Context) error {
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
		if err := e.client.Status().Patch(ctx, crd, patch.Merge(json.RawMessage(unaccepted))); err != nil {
			return fmt.Errorf("having the API server process %s again: %w", name, err)
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
