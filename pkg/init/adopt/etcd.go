package adopt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/wait"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// etcdOf returns the component that etcd is. One that is not older than that of this project stays.
func etcdOf(s *appsv1.StatefulSet, images Images) Component {
	image := s.Spec.Template.Spec.Containers[0].Image
	c := Component{Role: components.Etcd, Name: s.Name, Image: image, Version: tag(image), Target: images(components.Etcd), workload: s, pod: &s.Spec.Template.Spec}
	if now, then := c.versions(); now != nil && then != nil && now.AtLeast(then) {
		c.Target = c.Image
	}
	if !c.Adopted() && ptr.Deref(s.Spec.Replicas, 1) == 1 {
		c.Notes = []string{"with one member, the API does not answer while it is replaced"}
	}
	return c
}

// versions returns those that the image of a component has, and will have; nil if a tag is none.
func (c *Component) versions() (now, then *version.Version) {
	now, _ = version.ParseSemantic(c.Version)
	then, _ = version.ParseSemantic(tag(c.Target))
	return now, then
}

// etcdRefusals are why etcd cannot be replaced. Data that another minor version has written cannot be read by the one before.
func (c *Component) etcdRefusals() []string {
	s := c.workload.(*appsv1.StatefulSet)
	now, then := c.versions()
	switch {
	case c.Adopted():
		return nil
	case now == nil || then == nil:
		return []string{fmt.Sprintf("the version of %s is not known: its image %s, or %s, has no tag of a release; leave out --etcd", c.Name, c.Image, c.Target)}
	case now.Major() != then.Major() || now.Minor() != then.Minor():
		return []string{fmt.Sprintf("%[1]s has %[2]s, and %[3]s could not go back to it: leave out --etcd, or upgrade it to %[4]d.%[5]d first", c.Name, c.Version, tag(c.Target), then.Major(), then.Minor())}
	case !durable(s):
		return []string{fmt.Sprintf("%s has its data in its pod, or where is not known (--data-dir): a new pod would lose it; leave out --etcd", c.Name)}
	case s.Status.ReadyReplicas < ptr.Deref(s.Spec.Replicas, 1):
		return []string{fmt.Sprintf("%[1]s is not ready: repair it first (kubectl describe statefulset %[1]s -n %[2]s)", s.Name, s.Namespace)}
	}
	return nil
}

// durable reports whether etcd has its data in a volume that outlives its pods.
func durable(s *appsv1.StatefulSet) bool {
	pod := &s.Spec.Template.Spec
	container := &pod.Containers[0]
	dir := lastFlag(container, "--data-dir")
	var volume corev1.VolumeMount
	for _, m := range container.VolumeMounts {
		in := strings.HasPrefix(dir+"/", strings.TrimSuffix(m.MountPath, "/")+"/")
		if in && len(m.MountPath) > len(volume.MountPath) {
			volume = m
		}
	}
	return slices.ContainsFunc(s.Spec.VolumeClaimTemplates, func(c corev1.PersistentVolumeClaim) bool { return c.Name == volume.Name }) ||
		slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
			return v.Name == volume.Name && (v.PersistentVolumeClaim != nil || v.HostPath != nil)
		})
}

// restoreEtcd gives etcd the image that it had.
func (a *Adoption) restoreEtcd(ctx context.Context, was *appsv1.StatefulSet) error {
	pod := &was.Spec.Template.Spec
	_, err := a.replace(ctx, &Component{Role: components.Etcd, Name: was.Name, Target: pod.Containers[0].Image, workload: was, pod: pod})
	return err
}

// awaitAnswer returns when the API of the federation answers for what the aggregated API server stores, and the API server itself.
func (a *Adoption) awaitAnswer(ctx context.Context) error {
	return wait.Until(ctx, wait.Options{Interval: time.Second, Timeout: a.Timeout}, func(ctx context.Context) error {
		return errors.Join(a.plane.List(ctx, &clusterv1alpha1.ClusterList{}, client.Limit(1)), a.plane.List(ctx, &workv1alpha1.WorkList{}, client.Limit(1)))
	})
}
