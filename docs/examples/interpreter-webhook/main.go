// Command interpreter-webhook interprets objects of the kind Workflow of
// example.io for the control plane: the desired number of replicas and the
// health. webhook.yaml registers it.
//
//	go run ./docs/examples/interpreter-webhook -cert tls.crt -key tls.key
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
)

func main() {
	address := flag.String("listen", ":8443", "address to listen on")
	cert := flag.String("cert", "tls.crt", "certificate")
	key := flag.String("key", "tls.key", "key of the certificate")
	flag.Parse()
	server := &http.Server{Addr: *address, Handler: http.HandlerFunc(serve), ReadHeaderTimeout: 5 * time.Second}
	if err := server.ListenAndServeTLS(*cert, *key); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func serve(w http.ResponseWriter, r *http.Request) {
	var c configv1alpha1.ResourceInterpreterContext
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<20)).Decode(&c); err != nil || c.Request == nil {
		http.Error(w, "want a ResourceInterpreterContext with a request", http.StatusBadRequest)
		return
	}
	response := answer(c.Request)
	response.UID = c.Request.UID
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(configv1alpha1.ResourceInterpreterContext{Response: response}) // the client has closed the connection
}

// workflow has the fields of the kind that are interpreted.
type workflow struct {
	Spec struct {
		Workers *int32 `json:"workers"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
	} `json:"status"`
}

func answer(r *configv1alpha1.ResourceInterpreterRequest) *configv1alpha1.ResourceInterpreterResponse {
	var obj workflow
	if err := json.Unmarshal(r.Object.Raw, &obj); err != nil {
		return refuse(http.StatusUnprocessableEntity, err.Error())
	}
	ok := &configv1alpha1.ResourceInterpreterResponse{Successful: true}
	switch r.Operation {
	case configv1alpha1.InterpreterOperationInterpretReplica:
		ok.Replicas = obj.Spec.Workers
		if ok.Replicas == nil {
			ok.Replicas = new(int32(1))
		}
	case configv1alpha1.InterpreterOperationReviseReplica:
		// "add" sets the field whether it is there or not.
		ok.Patch = fmt.Appendf(nil, `[{"op":"add","path":"/spec/workers","value":%d}]`, *r.DesiredReplicas)
		ok.PatchType = new(configv1alpha1.PatchTypeJSONPatch)
	case configv1alpha1.InterpreterOperationInterpretHealth:
		ok.Healthy = new(obj.Status.Phase == "Running" || obj.Status.Phase == "Succeeded")
	default:
		return refuse(http.StatusNotImplemented, fmt.Sprintf("operation %s is not served", r.Operation))
	}
	return ok
}

func refuse(code int32, message string) *configv1alpha1.ResourceInterpreterResponse {
	return &configv1alpha1.ResourceInterpreterResponse{Status: &configv1alpha1.RequestStatus{Code: code, Message: message}}
}
