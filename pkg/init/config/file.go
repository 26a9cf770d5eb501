package config

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"sigs.k8s.io/yaml"

	"github.com/karmada-toolkit/karmada/internal/limit"
)

// configGroup and configKind identify the configuration file.
const (
	configGroup   = "config.karmada.io"
	configVersion = "v1alpha1"
	configKind    = "KarmadaInitConfig"
)

// InitConfig is the configuration file of an installation. What is empty in it
// leaves the flags as they are.
type InitConfig struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            Options           `json:"spec"`
}

// Complete reads the configuration file, if one is named, and lets it override o.
func (o *Options) Complete() error {
	for _, c := range o.components() {
		args, err := parseExtraArgs(c.ExtraArgs)
		if err != nil {
			return fmt.Errorf("--%s-extra-args: %w", c.flag, err)
		}
		c.ExtraArgs = args
	}
	if o.ConfigFile == "" {
		return nil
	}
	cfg, err := LoadConfig(o.ConfigFile)
	if err != nil {
		return fmt.Errorf("failed to load karmada init configuration: %w", err)
	}
	if err := o.merge(&cfg.Spec); err != nil {
		return fmt.Errorf("failed to parse karmada init configuration: %w", err)
	}
	return nil
}

// LoadConfig reads a configuration file. Fields that it does not know are errors.
func LoadConfig(path string) (*InitConfig, error) {
	data, err := limit.ReadManifest(path, nil)
	if err != nil {
		return nil, fmt.Errorf("unable to read config from %q: %w", path, err)
	}
	text, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, fmt.Errorf("unable to read config from %q: %w", path, err)
	}
	gvk, err := json.DefaultMetaFactory.Interpret(text)
	if err != nil {
		return nil, fmt.Errorf("unable to read config from %q: %w", path, err)
	}
	want := schema.GroupVersion{Group: configGroup, Version: configVersion}
	switch {
	case gvk.Kind == "" || gvk.Version == "":
		return nil, fmt.Errorf("invalid configuration for GroupVersionKind %s: kind and apiVersion is mandatory information that must be specified", gvk)
	case gvk.GroupVersion() != want:
		return nil, fmt.Errorf("invalid Group or Version: expected group %q and version %q, but got %q and %q", want.Group, want.Version, gvk.Group, gvk.Version)
	case gvk.Kind != configKind:
		return nil, fmt.Errorf("no %s kind was found in the YAML file; its kind is %q", configKind, gvk.Kind)
	}
	var stores struct {
		Spec struct{ Etcd map[string]any }
	}
	if yaml.Unmarshal(data, &stores) == nil && stores.Spec.Etcd["local"] != nil && stores.Spec.Etcd["external"] != nil {
		return nil, fmt.Errorf("spec.etcd has both local and external: keep the one that is wanted")
	}
	cfg := &InitConfig{}
	if err := yaml.UnmarshalStrict(data, cfg); err != nil {
		return nil, fmt.Errorf("unable to read config from %q: %w", path, err)
	}
	return cfg, nil
}

// merge lets what is not empty in the file override o.
func (o *Options) merge(file *Options) error {
	if file.Host.SecretRef != nil {
		return fmt.Errorf("spec.hostCluster.secretRef cannot be used: name a kubeconfig in spec.hostCluster.kubeconfig")
	}
	own := o.components()
	for i, c := range file.components() {
		if err := c.convert(own[i].ExtraArgs); err != nil {
			return err
		}
	}
	overlay(reflect.ValueOf(o).Elem(), reflect.ValueOf(file).Elem())
	return nil
}

// overlay copies the fields that are not empty.
func overlay(to, from reflect.Value) {
	switch {
	case to.Kind() == reflect.Struct:
		for i := range to.NumField() {
			overlay(to.Field(i), from.Field(i))
		}
	case from.IsZero(), from.Kind() == reflect.Slice && from.Len() == 0, from.Kind() == reflect.Map && from.Len() == 0:
	default:
		to.Set(from)
	}
}

// convert sets the image and the arguments of a file, which override args.
func (c component) convert(args []string) error {
	f := c.FileOptions
	c.FileOptions = FileOptions{}
	if (f.Repository == "") != (f.Tag == "") {
		return fmt.Errorf("spec.%s has only one of repository and tag: give both", c.field)
	}
	if f.Repository != "" {
		c.Image = f.Repository + ":" + f.Tag
	}
	for i, arg := range f.Args {
		if arg.Name == "" {
			return fmt.Errorf("spec.%s: the extra args[%d] name is empty", c.field, i)
		}
		text := "--" + arg.Name
		if arg.Value != "" {
			text += "=" + arg.Value
		}
		c.ExtraArgs = append(c.ExtraArgs, text)
	}
	c.ExtraArgs = overrideArgs(args, c.ExtraArgs)
	return nil
}
