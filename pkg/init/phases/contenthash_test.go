package phases

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/credentials"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
)

// installation returns the templates of pods and the Secrets of an installation with all addons, with the certificates that there are.
func installation(t *testing.T, compact bool, have map[string][]byte) (map[string]corev1.PodTemplateSpec, map[string]map[string][]byte, map[string][]byte) {
	t.Helper()
	c := config.New()
	c.Compact, c.Etcd.StorageMode = compact, components.StorageEmptyDir
	estimator := components.EstimatorWorkload("member1")
	c.Certificates.Servers = []string{components.MetricsAdapter, components.Search, estimator}
	if err := c.Complete(nil, "karmadactl", nil); err != nil {
		t.Fatal(err)
	}
	creds, err := credentials.Make(&c, have, hostcluster.Addresses{Server: "https://192.0.2.1:32443"}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	creds.Internal[estimator] = []byte("member1")
	in := &Inputs{Config: ComponentsConfig(&c, &hostcluster.Facts{}, creds)}
	chosen, err := Chosen(&c)
	if err != nil {
		t.Fatal(err)
	}
	addons := Addons([]string{components.Descheduler, components.MetricsAdapter, components.Search, components.Estimator}, []string{"member1"})
	templates, secrets := map[string]corev1.PodTemplateSpec{}, map[string]map[string][]byte{}
	for _, p := range append(chosen, addons...) {
		objects, err := p.Host(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			switch o := o.(type) {
			case *corev1.Secret:
				secrets[o.Name] = o.Data
			case *appsv1.Deployment:
				templates[o.Name] = o.Spec.Template
			case *appsv1.StatefulSet:
				templates[o.Name] = o.Spec.Template
			}
		}
	}
	return templates, secrets, creds.Data
}

// hashOf returns the hash of pods by their template and the Secrets alone.
func hashOf(t *testing.T, template corev1.PodTemplateSpec, secrets map[string]map[string][]byte) string {
	t.Helper()
	for _, v := range template.Spec.Volumes {
		if v.Secret == nil {
			continue
		}
		data, ok := secrets[v.Secret.SecretName]
		for _, item := range v.Secret.Items {
			_, found := data[item.Key]
			ok = ok && found
		}
		if !ok {
			t.Errorf("%s mounts keys of Secret %s that it does not have", template.Spec.Containers[0].Name, v.Secret.SecretName)
		}
	}
	return components.ContentHash(template.Spec.Containers[0].Name, components.SecretFiles(template.Spec.Volumes, func(name string) map[string][]byte { return secrets[name] }))
}

func TestContentHash_IsThatOfTheSecrets(t *testing.T) {
	for _, compact := range []bool{false, true} {
		templates, secrets, _ := installation(t, compact, nil)
		want := []string{
			components.APIServer, components.Etcd, components.KubeControllerManager,
			components.Descheduler, components.MetricsAdapter, components.Search, components.EstimatorWorkload("member1"),
		}
		if compact {
			want = append(want, components.AllInOne)
		} else {
			want = append(want, components.CompactParts()...)
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(templates))); diff != "" {
			t.Error(diff)
		}
		for name, template := range templates {
			if got := hashOf(t, template, secrets); got != template.Annotations[components.ContentHashAnnotation] {
				t.Errorf("the hash of %s is %s, the annotations are %v", name, got, template.Annotations)
			}
		}
	}
}

// All certificates but the authorities are new: of those, only what processes read once restarts pods.
func TestContentHash_OfRenewedCertificates(t *testing.T) {
	for _, compact := range []bool{false, true} {
		before, _, data := installation(t, compact, nil)
		kept := map[string][]byte{}
		for _, name := range []string{"ca.crt", "ca.key", "etcd-ca.crt", "etcd-ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", components.ServiceAccountKey + ".key"} {
			kept[name] = data[name]
		}
		after, _, _ := installation(t, compact, kept)
		var restarted []string
		for name := range before {
			if before[name].Annotations[components.ContentHashAnnotation] != after[name].Annotations[components.ContentHashAnnotation] {
				restarted = append(restarted, name)
			}
		}
		slices.Sort(restarted)
		if diff := cmp.Diff([]string{components.APIServer, components.KubeControllerManager}, restarted); diff != "" {
			t.Error(diff)
		}
	}
}
