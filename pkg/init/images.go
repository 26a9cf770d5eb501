package installer

import (
	"slices"
	"strings"

	"github.com/karmada-toolkit/karmada/internal/version"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

func defaultImage(component, release string) string {
	return karmadaRegistry + "/" + component + ":" + release
}

// kubeRegistry returns where Kubernetes' own images come from.
func (i Images) kubeRegistry() string {
	if i.KubeRegistry != "" {
		return i.KubeRegistry
	}
	switch strings.ToLower(i.MirrorCountry) {
	case "cn":
		return chinaKubeRegistry
	case "global":
		return kubeRegistry
	}
	if i.PrivateRegistry != "" {
		return i.PrivateRegistry
	}
	return kubeRegistry
}

// Image returns the image of a component, by the name of its workload.
func (o *Options) Image(name string) string {
	set := ""
	for _, c := range o.named() {
		if c.name == name {
			set = c.Image
		}
	}
	release := version.Get().Release()
	switch {
	case name == components.Etcd && set == "":
		return o.Images.kubeRegistry() + "/etcd:" + etcdTag
	case name == components.APIServer && set == "":
		return o.Images.kubeRegistry() + "/kube-apiserver:" + o.Images.KubeTag
	case name == components.KubeControllerManager && set == "":
		return o.Images.kubeRegistry() + "/kube-controller-manager:" + o.Images.KubeTag
	case set == "", set == defaultImage(name, release) && o.Images.PrivateRegistry != "":
		if o.Images.PrivateRegistry != "" {
			return o.Images.PrivateRegistry + "/" + name + ":" + release
		}
		return defaultImage(name, release)
	}
	return set
}

// ImageList returns the images that an installation needs, each once, sorted.
func (o *Options) ImageList() []string {
	var out []string
	for _, c := range o.named() {
		if c.name == components.Etcd && o.external() {
			continue
		}
		out = append(out, o.Image(c.name))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
