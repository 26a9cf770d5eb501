package components

import (
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

const etcdVolume = "etcd-data"

// aloneGracePeriod is how long an etcd of one member may take to stop, in seconds. It waits for watches to end for longer, while nobody
// can write; what it has acknowledged is on its disk.
const aloneGracePeriod = 1

// EtcdStatefulSet returns the store. Its members start at the same time and find
// each other before they are ready, so that any number comes up; they speak TLS to
// each other under names, so that their addresses may change.
func EtcdStatefulSet(c *Config) (*appsv1.StatefulSet, error) {
	w := c.Workloads[Etcd]
	p := pod{
		name: Etcd, command: mergeArgs(c.etcdCommand(), w.ExtraArgs),
		ports: []corev1.ContainerPort{port("client", etcdClientPort), port("server", etcdPeerPort), port("metrics", etcdProbePort)},
		env:   []corev1.EnvVar{podField("POD_NAME", "metadata.name"), podField("POD_IP", "status.podIP")},
		probe: probe{scheme: corev1.URISchemeHTTP, port: etcdProbePort, live: "/livez", ready: "/readyz"},
		root:  true,
		mounts: []mount{{
			Volume: secretVolume(etcdCertSecret, c.Name(etcdCertSecret), []string{"etcd-ca.crt", "etcd-server.crt", "etcd-server.key"}),
			path:   pkiDir, readOnly: true, content: c.Certificates.etcd(),
		}},
	}
	s := &appsv1.StatefulSet{
		ObjectMeta: c.workloadMeta(p),
		Spec: appsv1.StatefulSetSpec{
			Replicas:            &w.Replicas,
			ServiceName:         c.Name(Etcd),
			PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector:            &metav1.LabelSelector{MatchLabels: c.selector(p)},
		},
	}
	if c.Etcd.PodManagement != "" {
		s.Spec.PodManagementPolicy = c.Etcd.PodManagement
	}
	var labels map[string]string
	if c.Labels == nil { // others may change, what is made from templates of claims may not
		labels = c.labels(ClaimDefaults)
	}
	volume, claims, err := c.Etcd.storage(labels)
	if err != nil {
		return nil, err
	}
	s.Spec.VolumeClaimTemplates = claims
	s.Spec.Template = c.template(p)
	if w.Replicas == 1 && c.Etcd.StorageMode != StorageEmptyDir {
		s.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(aloneGracePeriod))
	}
	if c.Etcd.ContentHash != "" {
		s.Spec.Template.Annotations[ContentHashAnnotation] = c.Etcd.ContentHash
	}
	if volume != nil {
		s.Spec.Template.Spec.Volumes = append(s.Spec.Template.Spec.Volumes, *volume)
	}
	container := &s.Spec.Template.Spec.Containers[0]
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: etcdVolume, MountPath: etcdDir})
	if c.Etcd.StorageMode == StorageHostPath && len(c.Etcd.NodeSelector) > 0 {
		selector := map[string]string{}
		maps.Copy(selector, w.NodeSelector)
		maps.Copy(selector, c.Etcd.NodeSelector)
		s.Spec.Template.Spec.NodeSelector = selector
	}
	return s, nil
}

func (c *Config) etcdCommand() []string {
	var cluster []string
	for i, host := range c.EtcdHosts(c.Workloads[Etcd].Replicas) {
		cluster = append(cluster, fmt.Sprintf("%s-%d=https://%s:%d", c.Name(Etcd), i, host, etcdPeerPort))
	}
	own := fmt.Sprintf("https://$(POD_NAME).%s", c.Host(Etcd))
	ip := c.IPv6.podIP()
	return []string{
		"/usr/local/bin/etcd",
		"--name=$(POD_NAME)",
		fmt.Sprintf("--listen-peer-urls=https://%s:%d", ip, etcdPeerPort),
		fmt.Sprintf("--listen-client-urls=https://%s:%d,https://localhost:%d", ip, etcdClientPort, etcdClientPort),
		fmt.Sprintf("--listen-metrics-urls=http://%s:%d", ip, etcdProbePort),
		fmt.Sprintf("--advertise-client-urls=%s:%d", own, etcdClientPort),
		"--initial-cluster=" + strings.Join(cluster, ","),
		"--initial-cluster-state=new",
		"--client-cert-auth=true",
		"--cert-file=" + pkiFile("etcd-server.crt"),
		"--key-file=" + pkiFile("etcd-server.key"),
		"--trusted-ca-file=" + pkiFile("etcd-ca.crt"),
		"--data-dir=" + etcdDir,
		"--initial-cluster-token=etcd-cluster",
		fmt.Sprintf("--initial-advertise-peer-urls=%s:%d", own, etcdPeerPort),
		"--peer-client-cert-auth=true",
		"--peer-trusted-ca-file=" + pkiFile("etcd-ca.crt"),
		"--peer-key-file=" + pkiFile("etcd-server.key"),
		"--peer-cert-file=" + pkiFile("etcd-server.crt"),
	}
}

// storage returns the volume of the data, or the template of claims for it.
func (e *EtcdConfig) storage(labels map[string]string) (*corev1.Volume, []corev1.PersistentVolumeClaim, error) {
	switch e.StorageMode {
	case StoragePVC:
		if e.Claim != nil {
			meta := metav1.ObjectMeta{Name: etcdVolume, Labels: e.Claim.Labels, Annotations: e.Claim.Annotations}
			return nil, []corev1.PersistentVolumeClaim{{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, ObjectMeta: meta, Spec: e.Claim.Spec}}, nil
		}
		size, err := resource.ParseQuantity(e.Size)
		if err != nil {
			return nil, nil, fmt.Errorf("the size of etcd's volume %q: %w", e.Size, err)
		}
		return nil, []corev1.PersistentVolumeClaim{{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
			ObjectMeta: metav1.ObjectMeta{Name: etcdVolume, Labels: labels},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				VolumeMode:       new(corev1.PersistentVolumeFilesystem),
				StorageClassName: &e.StorageClass,
				Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
			},
		}}, nil
	case StorageHostPath:
		return &corev1.Volume{Name: etcdVolume, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{
			Path: e.DataPath, Type: new(corev1.HostPathDirectoryOrCreate),
		}}}, nil, nil
	default:
		return &corev1.Volume{Name: etcdVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}, nil, nil
	}
}

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
				SecurityContext:          kube.ContainerSecurity(),
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			}},
		},
	}
}
