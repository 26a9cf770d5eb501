package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/karmada-toolkit/karmada/internal/limit"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// configGroup and configKind identify the configuration file.
const (
	configGroup   = "config.karmada.io"
	configVersion = "v1alpha1"
	configKind    = "KarmadaInitConfig"
)

// document is a configuration file.
type document struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        *metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec            *Configuration     `json:"spec"`
}

// Complete reads the configuration file, if one is named, fills in what follows from other values, and returns the first error in
// the result. What is empty in the file leaves the defaults; the flags of fs that were given take precedence over it. program is
// what the user types, for the next step; phases are the names of all phases.
func (c *Configuration) Complete(fs *pflag.FlagSet, program string, phases []string) error {
	if err := c.LoadFile(fs); err != nil {
		return err
	}
	if err := c.validate(program, phases); err != nil {
		return err
	}
	if c.PKIPath == DefaultPKIPath && c.DataPath != DefaultDataPath {
		c.PKIPath = c.DataPath + "/pki" // beside the kubeconfig when only that was moved
	}
	if c.Etcd.StorageMode == "" {
		c.Etcd.StorageMode = components.StorageEmptyDir
	}
	return nil
}

// LoadFile is Complete without a check of the values.
func (c *Configuration) LoadFile(fs *pflag.FlagSet) error {
	if c.ConfigFile == "" {
		return nil
	}
	data, err := limit.ReadManifest(c.ConfigFile, nil)
	if err != nil {
		return fmt.Errorf("failed to load karmada init configuration: unable to read config from %q: %w", c.ConfigFile, err)
	}
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		err = fmt.Errorf("unable to read config from %q: %w", c.ConfigFile, err)
	} else {
		err = c.strict(text)
	}
	if err != nil {
		return fmt.Errorf("failed to load karmada init configuration: %w", err)
	}
	given, args, validity := givenFlags(fs), map[string]Args{}, c.Certificates.Validity
	for _, p := range c.Parts() {
		args[p.Name], p.ExtraArgs = p.ExtraArgs, nil
	}
	if err := c.decode(text); err != nil {
		return fmt.Errorf("failed to parse karmada init configuration: %w", err)
	}
	if c.Certificates.Validity.Duration == 0 {
		c.Certificates.Validity = validity
	}
	if c.Host.SecretRef != nil {
		return errors.New("failed to parse karmada init configuration: spec.hostCluster.secretRef cannot be used: name a kubeconfig in spec.hostCluster.kubeconfig")
	}
	for _, p := range c.Parts() {
		if err := p.join(); err != nil {
			return fmt.Errorf("failed to parse karmada init configuration: %w", err)
		}
		p.ExtraArgs = p.ExtraArgs.override(args[p.Name])
	}
	for _, set := range given {
		if err := set(); err != nil {
			return err
		}
	}
	return nil
}

// givenFlags returns for each flag that was given a function that sets it again.
func givenFlags(fs *pflag.FlagSet) []func() error {
	var out []func() error
	if fs == nil {
		return nil
	}
	fs.Visit(func(f *pflag.Flag) {
		if _, ok := f.Value.(*Args); ok { // they are merged
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values := slices.Clone(list.GetSlice()) // a list is decoded in place
			out = append(out, func() error { return list.Replace(values) })
			return
		}
		text := f.Value.String()
		out = append(out, func() error { return f.Value.Set(text) })
	})
	return out
}

// strict returns an error if a file is not a configuration, or has what a configuration does not have.
func (c *Configuration) strict(text []byte) error {
	file := document{Spec: &Configuration{}}
	unknown, err := kjson.UnmarshalStrict(text, &file)
	gvk, want := file.GroupVersionKind(), schema.GroupVersion{Group: configGroup, Version: configVersion}
	switch {
	case err != nil:
		return fmt.Errorf("unable to read config from %q: %w", c.ConfigFile, err)
	case gvk.Kind == "" || gvk.Version == "":
		return fmt.Errorf("invalid configuration for GroupVersionKind %s: kind and apiVersion is mandatory information that must be specified", gvk)
	case gvk.GroupVersion() != want:
		return fmt.Errorf("invalid Group or Version: expected group %q and version %q, but got %q and %q", want.Group, want.Version, gvk.Group, gvk.Version)
	case gvk.Kind != configKind:
		return fmt.Errorf("no %s kind was found in the YAML file; its kind is %q", configKind, gvk.Kind)
	case len(unknown) > 0:
		return fmt.Errorf("unable to read config from %q: %w", c.ConfigFile, errors.Join(unknown...))
	}
	var stores struct {
		Spec struct{ Etcd map[string]any }
	}
	if json.Unmarshal(text, &stores) == nil && stores.Spec.Etcd["local"] != nil && stores.Spec.Etcd["external"] != nil {
		return errors.New("spec.etcd has both local and external: keep the one that is wanted")
	}
	return nil
}

// decode decodes what is not empty of a file into c.
func (c *Configuration) decode(text []byte) error {
	var file map[string]any
	if err := json.Unmarshal(text, &file); err != nil {
		return err
	}
	prune(file)
	text, err := json.Marshal(file)
	if err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(text, &document{Spec: c})
}

// prune removes what is empty from an object. In an affinity, an empty selector is not the same as none.
func prune(object map[string]any) {
	for key, value := range object {
		empty := value == nil || value == "" || value == false || value == float64(0)
		switch v := value.(type) {
		case map[string]any:
			if key == "affinity" {
				continue
			}
			prune(v)
			empty = len(v) == 0
		case []any:
			empty = len(v) == 0
		}
		if empty {
			delete(object, key)
		}
	}
}

// join makes the image of a part of what a file has instead of it.
func (p Part) join() error {
	if (p.Repository == "") != (p.Tag == "") {
		return fmt.Errorf("%s has only one of repository and tag: give both", p.Path)
	}
	if p.Repository != "" {
		p.Image = p.Repository + ":" + p.Tag
	}
	p.Repository, p.Tag = "", ""
	for i, arg := range p.ExtraArgs {
		if arg.Name == "" {
			return fmt.Errorf("%s.extraArgs[%d].name: the extra args[%d] name is empty", p.Path, i, i)
		}
	}
	return nil
}

// secretArg matches the names of arguments that have secrets as their values.
var secretArg = regexp.MustCompile(`(?i)(password|passwd|token|secret|credentials?)$`)

// masked stands for a secret.
const masked = "REDACTED"

// File returns the configuration as a file, with everything that New and Complete filled in. Passwords in URLs, and arguments whose
// name is that of a secret, are masked.
func (c *Configuration) File() ([]byte, error) {
	out := *c
	out.Etcd.External.Servers = slices.Clone(c.Etcd.External.Servers)
	for i, server := range out.Etcd.External.Servers {
		if u, err := url.Parse(server); err == nil && u.User != nil {
			u.User = url.User(masked)
			out.Etcd.External.Servers[i] = u.String()
		}
	}
	for _, p := range out.Parts() {
		p.Image = c.ImageOf(p)
		p.ExtraArgs = slices.Clone(p.ExtraArgs)
		for i := range p.ExtraArgs {
			if secretArg.MatchString(p.ExtraArgs[i].Name) && p.ExtraArgs[i].Value != "" {
				p.ExtraArgs[i].Value = masked
			}
		}
	}
	if c.Etcd.External.Used() {
		out.Etcd.LocalEtcd = LocalEtcd{}
	}
	out.WaitSeconds = int(c.Timeout().Seconds())
	return yaml.Marshal(document{TypeMeta: metav1.TypeMeta{APIVersion: configGroup + "/" + configVersion, Kind: configKind}, Spec: &out})
}
