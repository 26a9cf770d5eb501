package aggregated

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/karmada-toolkit/karmada/internal/limit"
	"github.com/karmada-toolkit/karmada/internal/quantity"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// checkQuantities refuses writes of Clusters with quantities that take minutes to decode, in any format of objects and
// patches. An agent writes the resource summary of its cluster. limit is how many bytes of a body the server reads.
func checkQuantities(handler http.Handler, negotiator runtime.NegotiatedSerializer, limit int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, ok := genericrequest.RequestInfoFrom(req.Context())
		if !ok || !info.IsResourceRequest || info.Subresource == "proxy" || req.Body == nil {
			handler.ServeHTTP(w, req)
			return
		}
		// What cannot be read, or is over the limit, is for the handler to refuse.
		body, err := io.ReadAll(io.LimitReader(req.Body, limit+1))
		if err == nil && len(body) > 0 && int64(len(body)) <= limit {
			if err := checkBody(body, req.Header.Get("Content-Type")); err != nil {
				responsewriters.ErrorNegotiated(apierrors.NewBadRequest(err.Error()), negotiator, clusterv1alpha1.GroupVersion, w, req)
				return
			}
		}
		req.Body = &readAgain{Reader: io.MultiReader(bytes.NewReader(body), req.Body), Closer: req.Body}
		handler.ServeHTTP(w, req)
	})
}

// readAgain is a body of which some has been read before.
type readAgain struct {
	io.Reader
	io.Closer
}

func checkBody(body []byte, contentType string) error {
	mediaType, _, _ := strings.Cut(contentType, ";")
	var err error
	switch strings.TrimSpace(strings.ToLower(mediaType)) {
	case runtime.ContentTypeProtobuf:
		return nil // of options: Clusters have no such format
	case string(types.JSONPatchType):
		err = checkSteps(body)
	case runtime.ContentTypeYAML, string(types.ApplyYAMLPatchType):
		var converted []byte
		if converted, err = limit.YAMLToJSON(body); err == nil {
			err = quantity.CheckJSON(converted, reflect.TypeFor[clusterv1alpha1.Cluster]())
		}
	default:
		err = quantity.CheckJSON(body, reflect.TypeFor[clusterv1alpha1.Cluster]())
	}
	if err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	return nil
}

// checkSteps checks a JSON patch. Its values may become any field, and its steps may take a text of another field for a quantity.
func checkSteps(body []byte) error {
	var steps []map[string]json.RawMessage // as the API server decodes them: names have a case
	if err := json.Unmarshal(body, &steps); err != nil {
		return err
	}
	for _, step := range steps {
		var op, from, path string
		_, _, _ = json.Unmarshal(step["op"], &op), json.Unmarshal(step["from"], &from), json.Unmarshal(step["path"], &path)
		if strings.HasPrefix(path, "/metadata/") {
			continue
		}
		if op == "copy" || op == "move" {
			return fmt.Errorf("%s of %s to %s: fields of a Cluster can be copied and moved in its metadata only", op, from, path)
		}
		if value := step["value"]; len(value) > 0 {
			if err := quantity.CheckJSON(value, reflect.TypeFor[resource.Quantity]()); err != nil {
				return err
			}
		}
	}
	return nil
}
