package hostcluster

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

// groupsLister is the part of a discovery client that lists API groups.
type groupsLister interface {
	ServerGroups() (*metav1.APIGroupList, error)
}

// RefuseControlPlane returns an error when a server is itself a control plane of a
// federation: it runs no pods, and what it holds would be propagated.
func RefuseControlPlane(server string, api groupsLister) error {
	groups, err := api.ServerGroups()
	if err != nil {
		return fmt.Errorf("reading the APIs of the host cluster: %w", err)
	}
	if isControlPlane(groups) {
		return fmt.Errorf("%s: %w; name the host cluster with --kubeconfig and --context (is $KUBECONFIG still that of a control plane?)", server, member.ErrIsControlPlane)
	}
	return nil
}

// isControlPlane reports whether a server with these API groups is a control plane.
// The Cluster API may be away with its server; that of policies is the API
// server's own.
func isControlPlane(groups *metav1.APIGroupList) bool {
	return slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool {
		return g.Name == clusterv1alpha1.GroupName || g.Name == policyv1alpha1.GroupName
	})
}
