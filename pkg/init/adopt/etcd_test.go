package adopt

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// withEtcd is a control plane whose roles are adopted, and whose etcd has an image and a number of ready members.
func withEtcd(image string, ready int32, change ...func(*appsv1.Deployment)) []client.Object {
	objects := installed("v9", append(change, func(d *appsv1.Deployment) {
		c := &d.Spec.Template.Spec.Containers[0]
		c.Image = images(programOf(&d.Spec.Template.Spec, 0))
	})...)
	for _, o := range objects {
		if s, is := o.(*appsv1.StatefulSet); is {
			c := &s.Spec.Template.Spec.Containers[0]
			c.Image, c.Command = image, append(c.Command, "--data-dir=/var/lib/etcd/data")
			c.VolumeMounts = []corev1.VolumeMount{{Name: "certs", MountPath: "/var"}, {Name: "data", MountPath: "/var/lib/etcd"}}
			s.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}}}
			s.Spec.Replicas, s.Status = new(int32(1)), appsv1.StatefulSetStatus{Replicas: 1, ReadyReplicas: ready, UpdatedReplicas: 1, AvailableReplicas: ready}
		}
	}
	return objects
}

func etcdImages(role string) string {
	if role == components.Etcd {
		return "registry.example/etcd:3.6.8-0"
	}
	return images(role)
}

func TestDiscover_Etcd(t *testing.T) {
	lost := withEtcd("mirror.example/etcd:3.6.0-0", 1)
	for _, o := range lost {
		if s, is := o.(*appsv1.StatefulSet); is {
			s.Spec.Template.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
		}
	}
	chart := func(d *appsv1.Deployment) {
		d.Labels, d.Annotations = map[string]string{components.ManagedByLabel: "Helm"}, map[string]string{helmRelease: "karmada"}
	}
	argo := func(d *appsv1.Deployment) { d.Annotations = map[string]string{"argocd.argoproj.io/tracking-id": "a"} }
	for name, tc := range map[string]struct {
		objects []client.Object
		want    string
		stays   bool
	}{
		"older":                   {withEtcd("mirror.example/etcd:3.6.0-0", 1), "", false},
		"the same, from a mirror": {withEtcd("mirror.example/etcd:3.6.8-0", 1), "", true},
		"newer":                   {withEtcd("mirror.example/etcd:3.7.0-0", 1), "", true},
		"an older minor version":  {withEtcd("mirror.example/etcd:3.5.21-0", 1), "etcd has 3.5.21-0, and 3.6.8-0 could not go back to it: leave out --etcd, or upgrade it to 3.6 first", false},
		"no version":              {withEtcd("mirror.example/etcd:latest", 1), "has no tag of a release; leave out --etcd", false},
		"not ready":               {withEtcd("mirror.example/etcd:3.6.0-0", 0), "etcd is not ready: repair it first", false},
		"a release, upgraded":     {withEtcd("mirror.example/etcd:3.6.0-0", 1, chart), "", false},
		"Argo CD":                 {withEtcd("mirror.example/etcd:3.6.0-0", 1, argo), "Argo CD writes", false},
		"Argo CD, the same":       {withEtcd("mirror.example/etcd:3.6.8-0", 1, argo), "", true},
		"emptyDir":                {lost, "has its data in its pod", false},
		"external":                {installed("v1.18.0")[:4], "there is no etcd in namespace karmada-system: leave out --etcd", false},
	} {
		m := memory.New(t, tc.objects...)
		p, err := discover(t.Context(), m.Client, namespace, etcdImages, true)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Err(); tc.want == "" && got != nil || tc.want != "" && (got == nil || !strings.Contains(got.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, got, tc.want)
		}
		if last := p.Components[len(p.Components)-1]; last.Role == components.Etcd && last.Adopted() != tc.stays {
			t.Errorf("%s: %+v", name, last)
		}
	}
}

// TestRollback_Etcd adds etcd to a record that there is, replaces it last, and goes back.
func TestRollback_Etcd(t *testing.T) {
	const before = "mirror.example/etcd:3.6.0-0"
	host, plane := memory.New(t, withEtcd(before, 1)...), plane(t)
	a := newAdoption(t, host, plane)
	a.Images = etcdImages
	image := func() string {
		return memory.Get[*appsv1.StatefulSet](host, memory.Key(namespace, "etcd")).Spec.Template.Spec.Containers[0].Image
	}
	for _, etcd := range []bool{false, true} {
		a.Etcd = etcd
		p, err := discover(t.Context(), host.Client, namespace, a.Images, etcd)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"the way back is in Secret", "kept"} {
			if text, err := a.record(t.Context(), p); err != nil || !strings.Contains(text, want) {
				t.Errorf("%q, %v, want %q", text, err, want)
			}
		}
		go a.tracker.Run(t.Context())
		for i := range p.Components {
			if _, err := a.replace(t.Context(), &p.Components[i]); err != nil {
				t.Fatal(err)
			}
		}
		if got := image(); etcd != (got == etcdImages(components.Etcd)) {
			t.Errorf("--etcd=%t: %s", etcd, got)
		}
	}
	if r, err := a.load(t.Context()); err != nil || len(r.Etcd) != 1 || len(r.Deployments) != 5 || len(r.CRDs) == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if err := a.Rollback(t.Context()); err != nil || image() != before {
		t.Errorf("%s, %v", image(), err)
	}
}
