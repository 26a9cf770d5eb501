package preflight

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
)

// etcdChecks are about the data of etcd.
type etcdChecks struct{ Deps }

// checkStorage checks that etcd has storage for its data.
func (c etcdChecks) checkStorage(ctx context.Context) ([]string, error) {
	if c.Config.Etcd.External.Used() {
		return nil, nil
	}
	switch c.Config.Etcd.StorageMode {
	case components.StorageHostPath:
		if _, _, err := c.Facts.EtcdNode(&c.Config.Etcd); err != nil {
			return []string{err.Error()}, nil //nolint:nilerr // it is a finding
		}
		return c.checkDataPath(ctx)
	case components.StoragePVC:
		return c.checkClaims(ctx)
	}
	return nil, nil
}

// checkDataPath checks that no other control plane has its data in the directory.
func (c etcdChecks) checkDataPath(ctx context.Context) ([]string, error) {
	sets, err := c.Host.AppsV1().StatefulSets(metav1.NamespaceAll).List(ctx, components.Installed())
	if err != nil {
		return nil, hostcluster.ConnectionError(err)
	}
	for i := range sets.Items {
		set := &sets.Items[i]
		if set.Namespace == c.Config.APIServer.Namespace {
			continue
		}
		for _, v := range set.Spec.Template.Spec.Volumes {
			if v.HostPath != nil && v.HostPath.Path == c.Config.Etcd.DataPath {
				return []string{fmt.Sprintf("the control plane in namespace %s keeps its data in %s: choose another directory with --etcd-data", set.Namespace, v.HostPath.Path)}, nil
			}
		}
	}
	return nil, nil
}

// checkClaims checks that there is a StorageClass, or a volume for each member.
func (c etcdChecks) checkClaims(ctx context.Context) ([]string, error) {
	e := &c.Config.Etcd
	if c.Facts.Etcd != nil {
		return nil, nil // its claims are there
	}
	_, err := c.Host.StorageV1().StorageClasses().Get(ctx, e.StorageClass, metav1.GetOptions{})
	if err == nil || !apierrors.IsNotFound(err) {
		return nil, hostcluster.ConnectionError(err)
	}
	volumes, err := c.Host.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, hostcluster.ConnectionError(err)
	}
	size := resource.MustParse(e.PVCSize)
	fit := int32(0)
	for i := range volumes.Items {
		v := &volumes.Items[i]
		capacity := v.Spec.Capacity[corev1.ResourceStorage]
		if v.Spec.StorageClassName == e.StorageClass && capacity.Cmp(size) >= 0 && slices.Contains(v.Spec.AccessModes, corev1.ReadWriteOnce) {
			fit++
		}
	}
	if fit < e.Replicas {
		return []string{fmt.Sprintf("there is no StorageClass %q, and %d of %d PersistentVolumes of that class with at least %s: make them, or choose another class with --storage-classes-name", e.StorageClass, fit, e.Replicas, e.PVCSize)}, nil
	}
	return nil, nil
}

// checkChange finds changes that etcd cannot do once it has data.
func (c etcdChecks) checkChange(context.Context) ([]string, error) {
	old := c.Facts.Etcd
	if old == nil || c.Config.Etcd.External.Used() {
		return nil, nil
	}
	var out []string
	if n := c.Config.Etcd.Replicas; old.Spec.Replicas != nil && *old.Spec.Replicas != n {
		out = append(out, fmt.Sprintf("etcd has %d members, not %d: init cannot change their number; keep --etcd-replicas=%d, or run deinit first", *old.Spec.Replicas, n, *old.Spec.Replicas))
	}
	have := components.StorageEmptyDir
	if len(old.Spec.VolumeClaimTemplates) > 0 {
		have = components.StoragePVC
	}
	for _, v := range old.Spec.Template.Spec.Volumes {
		if v.HostPath != nil {
			have = components.StorageHostPath
		}
	}
	if want := c.Config.Etcd.StorageMode; have != want {
		out = append(out, fmt.Sprintf("etcd keeps its data in storage mode %s, not %s: init cannot move it; keep --etcd-storage-mode=%s, or run deinit first", have, want, have))
	}
	return out, nil
}
