package components

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/podsecurity"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

// PurgePod is the name of the pod that removes the data of an etcd.
const PurgePod = "karmada-purge-data"

// Purge is where the data of an etcd is that is to be removed.
type Purge struct {
	// Namespace of the pod that removes it.
	Namespace string
	// Node and Path of the data.
	Node, Path string
	// Image of the control plane.
	Image       string
	PullPolicy  corev1.PullPolicy
	PullSecrets []corev1.LocalObjectReference
}

// PurgeDataPod returns a pod that removes the data of etcd from the disk of its
// node. It can write nothing but that directory, as the pod of etcd.
func PurgeDataPod(p Purge) *corev1.Pod {
	const volume = "etcd-data"
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: PurgePod, Labels: map[string]string{BootstrapLabel: AppDefaults, "app": PurgePod}},
		Spec: corev1.PodSpec{
			NodeName: p.Node, RestartPolicy: corev1.RestartPolicyNever,
			AutomountServiceAccountToken: new(bool), EnableServiceLinks: new(bool),
			Tolerations:      []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			ImagePullSecrets: p.PullSecrets,
			SecurityContext:  &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}, RunAsUser: new(int64(0))},
			Volumes: []corev1.Volume{{Name: volume, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{
				Path: p.Path, Type: new(corev1.HostPathDirectoryOrCreate),
			}}}},
			Containers: []corev1.Container{{
				Name: PurgePod, Image: p.Image, ImagePullPolicy: p.PullPolicy,
				Command:                  []string{"/bin/karmada", names.RemoveEtcdDataCommand, etcdDir},
				VolumeMounts:             []corev1.VolumeMount{{Name: volume, MountPath: etcdDir}},
				SecurityContext:          podsecurity.Container(),
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			}},
		},
	}
}
