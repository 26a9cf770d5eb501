// Package names computes the names of the objects that the control plane creates.
// The names are part of the API: other programs compute them too.
package names

import (
	"errors"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// ErrNotExecutionNamespace is returned for a namespace that belongs to no
// cluster.
var ErrNotExecutionNamespace = errors.New("the execution space name is in wrong format")

// alphabet is what decimal hashes are written in, so that no word appears in a
// name by accident.
const alphabet = "bcdfghjklmnpqrstvwxz2456789"

// Encode writes each byte of s as a letter or digit that forms no words.
func Encode(s string) string {
	out := make([]byte, len(s))
	for i := range len(s) {
		out[i] = alphabet[int(s[i])%len(alphabet)]
	}
	return string(out)
}

// Hash returns the encoded decimal FNV-1a-32 hash of s.
func Hash(s string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s))
	return Encode(strconv.FormatUint(uint64(h.Sum32()), 10))
}

// Binding returns the name of the binding of a template.
func Binding(kind, name string) string {
	return strings.ToLower(dots(name) + "-" + kind)
}

// SuffixedBinding returns the name of the binding of a template when Binding, which
// leaves out the API group and case, names that of another one.
func SuffixedBinding(group, kind, name string) string {
	groupKind := kind
	if group != "" {
		groupKind += "." + group
	}
	return Binding(kind, name) + "-" + Hash(groupKind+"/"+name)
}

// Work returns the name of the Work that carries an object. The namespace is
// empty for cluster-scoped objects.
func Work(kind, name, namespace string) string {
	name = strings.ToLower(dots(name))
	key := name + "-" + kind
	if namespace != "" {
		key = namespace + "-" + key
	}
	return name + "-" + Hash(strings.ToLower(key))
}

// Policy returns the name of the policy that apply and promote make for an
// object. gvk is written "<group>/<version>, Kind=<Kind>".
func Policy(gvk, namespace, name string) string {
	return strings.ToLower(dots(name) + "-" + Hash(namespace+gvk))
}

// ExecutionNamespace returns the namespace with the Works of a cluster.
func ExecutionNamespace(cluster string) string {
	return clusterv1alpha1.ExecutionSpacePrefix + cluster
}

// ClusterOfExecutionNamespace returns the cluster that an execution namespace
// belongs to, or ErrNotExecutionNamespace.
func ClusterOfExecutionNamespace(namespace string) (string, error) {
	cluster, ok := strings.CutPrefix(namespace, clusterv1alpha1.ExecutionSpacePrefix)
	if !ok || cluster == "" {
		return "", ErrNotExecutionNamespace
	}
	return cluster, nil
}

// DependedByKey returns the end of the label that names a binding which needs an
// attached one.
func DependedByKey(namespace, name string) string {
	return Hash(namespace + "/" + name)
}

// ReservedNamespace reports whether a namespace belongs to the control plane, so
// that nothing in it is propagated.
func ReservedNamespace(namespace string) bool {
	return namespace == clusterv1alpha1.NamespaceKarmadaSystem ||
		namespace == clusterv1alpha1.NamespaceKarmadaCluster ||
		strings.HasPrefix(namespace, clusterv1alpha1.ExecutionSpacePrefix)
}

// SkippedByDefault reports whether nothing of a namespace is propagated: it is reserved, or matches the default of
// --skipped-propagating-namespaces of karmada-controller-manager.
func SkippedByDefault(namespace string) bool {
	return ReservedNamespace(namespace) || strings.HasPrefix(namespace, "kube-")
}

// InsightRole is the ClusterRole that lets users of one namespace read what decides about their objects.
const InsightRole = "karmada-insight"

// Reasons of the events about certificates that end soon, and the annotations that have the common name and the end of one. They are about
// the namespace karmada-system.
const (
	CertificateEnding   = "CertificateEnding"
	CertificateEnded    = "CertificateEnded"
	CertificateSubject  = "certificate.karmada.io/subject"
	CertificateNotAfter = "certificate.karmada.io/not-after"
)

// The webhook configurations of the control plane.
const (
	MutatingWebhooks   = "mutating-config"
	ValidatingWebhooks = "validating-config"
)

func dots(name string) string { return strings.ReplaceAll(name, ":", ".") }

// Users as which the parts of a control plane authenticate. Each has the rights of
// the ClusterRole of the same name.
const (
	// ComponentUserPrefix begins the user of every component.
	ComponentUserPrefix = "system:karmada:"
	// WebhookClientUser is the common name of the client certificate that the API
	// server presents to the webhook server. It has no rights in the control plane.
	WebhookClientUser = ComponentUserPrefix + "apiserver-webhook-client"
)

// ComponentUser returns the user of a component by the name of its role, such as
// "controller-manager".
func ComponentUser(role string) string { return ComponentUserPrefix + role }

// FailoverState is the name of the ConfigMap in the namespace karmada-system that stores
// the state of failover.
const FailoverState = "karmada-failover"

// RemoveEtcdDataCommand is the command of the control plane's program that removes
// the data of an etcd from a directory.
const RemoveEtcdDataCommand = "remove-etcd-data"

// Commands of the control plane's program that a Helm release runs.
const (
	// ReleaseCertificatesCommand makes and renews the Secrets of a release.
	ReleaseCertificatesCommand = "release-certificates"
	// ReleaseResourcesCommand writes the static resources of a release into its control plane.
	ReleaseResourcesCommand = "release-resources"
	// AwaitResourcesCommand returns when they are there.
	AwaitResourcesCommand = "await-resources"
)

// The ConfigMap with the release of the static resources of a control plane, and its keys.
const (
	VersionConfigMap = "karmada-version"
	VersionKey       = "karmadaVersion"
	SettingsKey      = "settings"
)

// ReadersGroup is the group as whose member the role search reads the control plane for members of system:masters.
const ReadersGroup = "system:karmada:readers"

// SystemLabels returns the labels of objects that the control plane creates for its
// own use.
func SystemLabels() map[string]string {
	return map[string]string{workv1alpha2.SystemLabel: workv1alpha2.SystemLabelValue}
}

// SystemNamespaces returns the sorted names of the namespaces of the control plane's
// own objects: karmada-system, karmada-cluster, and those given.
func SystemNamespaces(more ...string) []string {
	out := append([]string{clusterv1alpha1.NamespaceKarmadaSystem, clusterv1alpha1.NamespaceKarmadaCluster}, more...)
	slices.Sort(out)
	return slices.Compact(out)
}
