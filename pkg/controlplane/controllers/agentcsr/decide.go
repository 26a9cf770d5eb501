package agentcsr

import (
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/member"
	"github.com/karmada-toolkit/karmada/pkg/member/registration/agentcert"
)

// facts are the input of the decision about the certificate request of an agent.
// Objects that do not exist are nil.
type facts struct {
	// name of the cluster whose agent is to get a certificate.
	name string
	csr  *certificatesv1.CertificateSigningRequest
	// description of the cluster in the request, and the error of decoding it.
	description    agentcert.Description
	descriptionErr error
	// cluster of that name.
	cluster *clusterv1alpha1.Cluster
	// member is the Cluster of another name with the id that the request proves.
	member *clusterv1alpha1.Cluster
	// tombstone of a cluster of that name that was abandoned.
	tombstone *corev1.ConfigMap
	// token is the Secret of the bootstrap token that the author used.
	token *corev1.Secret
	// namespace of the credentials.
	namespace *corev1.Namespace
}

// verdict is the decision. The zero value approves.
type verdict struct {
	// reason and message of a denial.
	reason, message string
}

func refuse(reason, format string, args ...any) verdict {
	return verdict{reason: reason, message: fmt.Sprintf(format, args...)}
}

// renewal reports whether the agent itself requests its next certificate.
func (f facts) renewal() bool { return f.csr.Spec.Username == names.AgentUser(f.name) }

// decide returns whether the author of the request may become the agent of the cluster.
// That they may request certificates at all was reviewed before.
func decide(f facts) verdict {
	if f.renewal() {
		return f.decideRenewal()
	}
	if err := member.ValidateName(f.name); err != nil {
		return refuse("InvalidName", "%v", err)
	}
	if why := names.ReservedForAgents(f.name); why != "" {
		return refuse("ReservedName", "the name %q is not possible in Pull mode: %s", f.name, why)
	}
	if f.descriptionErr != nil {
		return refuse("InvalidCluster", "%v", f.descriptionErr)
	}
	if v := f.checkToken(); v != (verdict{}) {
		return v
	}
	if f.cluster != nil {
		return f.decideExisting()
	}
	if f.member != nil {
		return f.refuseMember()
	}
	if f.tombstone != nil && f.tombstone.Data[member.TombstoneCleaned] == "" && !agentcert.Proven(f.tombstone.Data[member.TombstoneID], f.csr) {
		return refuse("NameAbandoned", "a cluster %q was abandoned, and its agent may still come back; choose another name, or give this one away by deleting ConfigMap %s/%s of the control plane",
			f.name, f.tombstone.Namespace, f.tombstone.Name)
	}
	return f.checkNamespace()
}

// decideRenewal decides for an agent that requests its next certificate.
func (f facts) decideRenewal() verdict {
	switch {
	case f.cluster == nil:
		return refuse("ClusterGone", "cluster %q is not registered any more", f.name)
	case f.cluster.Spec.SyncMode != clusterv1alpha1.Pull:
		return refuse("PushMode", "cluster %q is not in Pull mode any more", f.name)
	}
	return verdict{}
}

// decideExisting decides for a cluster that exists.
func (f facts) decideExisting() verdict {
	token := tokenID(f.csr)
	switch {
	case f.cluster.Spec.SyncMode != clusterv1alpha1.Pull:
		return refuse("NameTaken", "the name %q is taken by a cluster in Push mode; choose another, or unjoin that cluster first", f.name)
	case f.cluster.DeletionTimestamp != nil:
		return refuse(agentcert.ReasonBeingRemoved, "cluster %q is being removed; try again when it is gone", f.name)
	case token == "":
		return verdict{} // a user of the control plane
	case f.cluster.Spec.ID == "" && f.cluster.Annotations[agentcert.TokenAnnotation] == token:
		return verdict{} // the same attempt, continued
	case !agentcert.Proven(f.cluster.Spec.ID, f.csr):
		return refuse("NameTaken", "the name %q is taken by another cluster; choose another", f.name)
	}
	return verdict{}
}

// refuseMember refuses another name for a cluster that is a member.
func (f facts) refuseMember() verdict {
	if f.member.DeletionTimestamp != nil {
		return refuse(agentcert.ReasonBeingRemoved, "this cluster is still a member, as cluster %q, which is being removed; try again when it is gone", f.member.Name)
	}
	command := "unregister"
	if f.member.Spec.SyncMode != clusterv1alpha1.Pull {
		command = "unjoin"
	}
	return refuse("MemberAlready", "this cluster is a member already, under another name: cluster %q in %s mode; remove that first, with %q", f.member.Name, f.member.Spec.SyncMode, command+" "+f.member.Name)
}

// checkNamespace refuses namespaces that are not for credentials, because the agent may
// write Secrets there.
func (f facts) checkNamespace() verdict {
	name := agentcert.CredentialsNamespace(f.csr)
	if name == clusterv1alpha1.NamespaceKarmadaCluster {
		return verdict{}
	}
	if strings.HasPrefix(name, "kube-") || name == metav1.NamespaceDefault || names.ReservedNamespace(name) {
		return refuse("ReservedNamespace", "namespace %q of the control plane is not for credentials of clusters", name)
	}
	if f.namespace == nil || f.namespace.Labels[workv1alpha2.SystemLabel] != workv1alpha2.SystemLabelValue {
		return refuse("ForeignNamespace", "namespace %q of the control plane is not for credentials of clusters; make it so with: kubectl create namespace %s; kubectl label namespace %s %s=%s",
			name, name, name, workv1alpha2.SystemLabel, workv1alpha2.SystemLabelValue)
	}
	return verdict{}
}
