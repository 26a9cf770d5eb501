// Command hostile is a member cluster that answers every request but the one for its
// health with a body without end. It prints the Secret and the Cluster to apply, and
// serves until it is ended.
package main

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
)

const manifests = `apiVersion: v1
kind: Secret
metadata: {name: hostile, namespace: karmada-cluster}
data: {caBundle: %[1]s}
stringData: {token: none}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: hostile}
spec:
  id: hostile
  syncMode: Push
  apiEndpoint: %[2]s
  secretRef: {namespace: karmada-cluster, name: hostile}
  impersonatorSecretRef: {namespace: karmada-cluster, name: hostile}
`

func main() {
	chunk := strings.Repeat(" ", 64<<10)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			_, _ = io.WriteString(w, "ok")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		for {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	}))
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	fmt.Printf(manifests, base64.StdEncoding.EncodeToString(ca), server.URL)
	select {}
}
