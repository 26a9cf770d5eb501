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
	"k8s.io/apimachinery/pkg/runtime"
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
		if err == nil && int64(len(body)) <= limit {
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
	check := quantity.CheckJSON
	switch {
	case strings.Contains(contentType, "json-patch"):
		check = func(body []byte, _ reflect.Type) error { return checkSteps(body) }
	case strings.Contains(contentType, "yaml"):
		converted, err := limit.YAMLToJSON(body)
		if err != nil {
			return fmt.Errorf("reading the request: %w", err)
		}
		body = converted
	}
	if err := check(body, reflect.TypeFor[clusterv1alpha1.Cluster]()); err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	return nil
}

// checkSteps checks a JSON patch. Its values may become any field, and its steps may take a text of another field for a quantity.
func checkSteps(body []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var steps []map[string]any // as the API server decodes them: names have a case
	if err := decoder.Decode(&steps); err != nil {
		return err
	}
	for _, step := range steps {
		if path, ok := step["path"].(string); ok && strings.HasPrefix(path, "/metadata/") {
			continue
		}
		if step["op"] == "copy" || step["op"] == "move" {
			return fmt.Errorf("%v of %v to %v: fields of a Cluster can be copied and moved in its metadata only", step["op"], step["from"], step["path"])
		}
		if err := quantity.CheckAny(step["value"]); err != nil {
			return err
		}
	}
	return nil
}
