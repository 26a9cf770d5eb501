package agentcsr

import (
	"context"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"github.com/karmada-toolkit/karmada/internal/patch"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
)

// A token registers one Cluster. It is reserved for a name before the Cluster is
// created, so that two requests cannot use it for two names; then it is bound to the
// UID of the Cluster that was created, and deleted with it. The reservation is released
// when another request gets the name.

// tokenID returns the id of the bootstrap token of the author of a request, or "".
func tokenID(csr *certificatesv1.CertificateSigningRequest) string {
	if id, ok := strings.CutPrefix(csr.Spec.Username, bootstrapapi.BootstrapUserPrefix); ok {
		return id
	}
	return ""
}

// reusable reports whether the token registers any number of clusters.
func (f facts) reusable() bool {
	return f.token != nil && f.token.Annotations[registration.ReusableTokenAnnotation] == "true"
}

// boundTo returns the UID of the Cluster that the token was bound to, or "".
func (f facts) boundTo() types.UID {
	return types.UID(f.token.Annotations[registration.TokenClusterUIDAnnotation])
}

// reserved reports whether the token is reserved for a name and not bound yet.
func (f facts) reserved() bool {
	return f.token.Annotations[registration.TokenRequestAnnotation] != "" && f.boundTo() == ""
}

// checkToken refuses a token that was used for another cluster, or for one that is
// gone.
func (f facts) checkToken() verdict {
	id := tokenID(f.csr)
	if id == "" {
		return verdict{}
	}
	if f.token == nil {
		return refuse("TokenGone", "token %s does not exist any more; make another with \"token create\"", id)
	}
	used := f.token.Annotations[registration.TokenClusterAnnotation]
	switch {
	case used == "" || f.reusable():
		return verdict{}
	case used != f.name:
		return refuse("TokenUsed", "token %s was used to register cluster %q, and is good for that one only; make another with \"token create\"", id, used)
	case f.cluster == nil && !f.reserved(), f.cluster != nil && f.boundTo() != "" && f.boundTo() != f.cluster.UID:
		return refuse("TokenUsed", "token %s was used to register a cluster %q that is gone, and ended with it; make another with \"token create\"", id, used)
	}
	return verdict{}
}

// reserveToken records in a token the name that it is used for.
func (a *approver) reserveToken(ctx context.Context, f facts) error {
	if f.token == nil || f.reusable() || f.token.Annotations[registration.TokenClusterAnnotation] != "" {
		return nil
	}
	return a.changeToken(ctx, f, func(annotations map[string]string) {
		annotations[registration.TokenClusterAnnotation] = f.name
		annotations[registration.TokenRequestAnnotation] = f.csr.Name
	}, nil)
}

// bindToken records in a token the Cluster that it was used for, as its owner.
func (a *approver) bindToken(ctx context.Context, f facts) error {
	if f.token == nil || f.reusable() || f.boundTo() == f.cluster.UID {
		return nil
	}
	return a.changeToken(ctx, f, func(annotations map[string]string) {
		annotations[registration.TokenClusterAnnotation] = f.name
		annotations[registration.TokenClusterUIDAnnotation] = string(f.cluster.UID)
		delete(annotations, registration.TokenRequestAnnotation)
	}, &metav1.OwnerReference{APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: "Cluster", Name: f.cluster.Name, UID: f.cluster.UID})
}

// releaseToken releases a token that is reserved for a request which is denied.
func (a *approver) releaseToken(ctx context.Context, f facts) error {
	if f.token == nil || f.token.Annotations[registration.TokenRequestAnnotation] != f.csr.Name || f.boundTo() != "" {
		return nil
	}
	return a.changeToken(ctx, f, func(annotations map[string]string) {
		delete(annotations, registration.TokenClusterAnnotation)
		delete(annotations, registration.TokenRequestAnnotation)
	}, nil)
}

// changeToken updates the annotations of a token, and adds an owner. It fails if the
// token has changed since it was read.
func (a *approver) changeToken(ctx context.Context, f facts, change func(map[string]string), owner *metav1.OwnerReference) error {
	locked := patch.Locked(f.token)
	if f.token.Annotations == nil {
		f.token.Annotations = map[string]string{}
	}
	change(f.token.Annotations)
	if owner != nil && !slices.ContainsFunc(f.token.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == owner.UID }) {
		f.token.OwnerReferences = append(f.token.OwnerReferences, *owner)
	}
	if err := a.client.Patch(ctx, f.token, locked); err != nil {
		return fmt.Errorf("recording the use of a bootstrap token: %w", err)
	}
	return nil
}
