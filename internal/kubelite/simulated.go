package kubelite

import (
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// reasonNotImplemented is the reason of the answer to requests that need a real container.
const reasonNotImplemented metav1.StatusReason = "NotImplemented"

// missing returns what a simulated pod lacks for a subresource, or nothing for one that needs no container.
func missing(subresource string) string {
	switch subresource {
	case "log":
		return "logs"
	case "exec", "attach":
		return "processes"
	case "portforward", "proxy":
		return "ports"
	default:
		return ""
	}
}

// refuseContainers answers requests for the containers of pods on simulated nodes, which would end in an error about
// the address of the node. Others, those for pods that do not exist or have no node among them, are for api.
func refuseContainers(api http.Handler, client kubernetes.Interface) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || !info.IsResourceRequest || info.APIGroup != "" || info.Resource != "pods" || missing(info.Subresource) == "" {
			api.ServeHTTP(w, r)
			return
		}
		if !hasNode(r.Context(), client, info.Namespace, info.Name) {
			api.ServeHTTP(w, r)
			return
		}
		err := &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Reason: reasonNotImplemented,
			Message: "simulated pods have no " + missing(info.Subresource) + "; use --runtime kind",
			Details: &metav1.StatusDetails{Kind: info.Resource, Name: info.Name},
		}}
		responsewriters.ErrorNegotiated(err, legacyscheme.Codecs, corev1.SchemeGroupVersion, w, r)
	})
}

func hasNode(ctx context.Context, client kubernetes.Interface, namespace, name string) bool {
	pod, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	return err == nil && pod.Spec.NodeName != ""
}
