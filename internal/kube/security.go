package kube

import corev1 "k8s.io/api/core/v1"

// PodUser is the user and group that containers run as: nonroot of distroless images.
const PodUser = 65532

// PodSecurity returns the security context of a pod: an unprivileged user, and the system
// calls that the container runtime allows by default.
func PodSecurity() *corev1.PodSecurityContext {
	return &corev1.PodSecurityContext{
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		RunAsNonRoot:   new(true), RunAsUser: new(int64(PodUser)), RunAsGroup: new(int64(PodUser)), FSGroup: new(int64(PodUser)),
	}
}

// ContainerSecurity returns the security context of a container: no privileges, and a
// read-only root file system. NET_BIND_SERVICE stays because the programs in the
// images of Kubernetes carry that file capability and cannot start without it.
func ContainerSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(bool),
		ReadOnlyRootFilesystem:   new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_BIND_SERVICE"}},
	}
}
