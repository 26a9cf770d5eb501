package interpret

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

const (
	customizationKind     = "ResourceInterpreterCustomization"
	customizationResource = "resourceinterpretercustomizations.v1alpha1.config.karmada.io"
)

// source reads what the flags name.
type source struct {
	env       *env.Env
	access    *env.Access
	recursive bool
}

// loaded is a customization and where it is from.
type loaded struct {
	*configv1alpha1.ResourceInterpreterCustomization
	info *resource.Info
	// stored reports whether it is in the control plane.
	stored bool
}

// title is what a customization is called in output.
func (l *loaded) title() string {
	if l.Name != "" {
		return l.Name
	}
	return l.info.Source
}

// files reads the objects in files. A file without any is no error.
func (s *source) files(names []string) ([]*resource.Info, error) {
	b := resource.NewLocalBuilder().Unstructured().ContinueOnError()
	var paths []string
	for _, name := range names {
		if name == "-" {
			b = b.Stream(s.env.In, "STDIN")
			continue
		}
		paths = append(paths, name)
	}
	return b.FilenameParam(false, &resource.FilenameOptions{Filenames: paths, Recursive: s.recursive}).Flatten().Do().Infos()
}

// stored reads customizations of the control plane.
func (s *source) stored(names []string) ([]*resource.Info, error) {
	return s.access.Factory().NewBuilder().Unstructured().ContinueOnError().
		ResourceNames(customizationResource, names...).Latest().Do().Infos()
}

// customizations reads those in files and those in the control plane.
func (s *source) customizations(files, names []string) ([]*loaded, error) {
	var out []*loaded
	add := func(infos []*resource.Info, stored bool) error {
		for _, info := range infos {
			c, err := customization(info)
			if err != nil {
				return err
			}
			out = append(out, &loaded{ResourceInterpreterCustomization: c, info: info, stored: stored})
		}
		return nil
	}
	if len(files) > 0 {
		infos, err := s.files(files)
		if err != nil {
			return nil, err
		}
		if err := add(infos, false); err != nil {
			return nil, err
		}
	}
	if len(names) > 0 {
		infos, err := s.stored(names)
		if err != nil {
			return nil, err
		}
		if err := add(infos, true); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// customization decodes a customization. Fields that it does not have are errors:
// a misspelt rule would silently do nothing.
func customization(info *resource.Info) (*configv1alpha1.ResourceInterpreterCustomization, error) {
	gvk := info.Object.GetObjectKind().GroupVersionKind()
	if gvk != configv1alpha1.GroupVersion.WithKind(customizationKind) {
		return nil, fmt.Errorf("not a ResourceInterpreterCustomization, got %s", gvk)
	}
	obj, ok := info.Object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%s holds a %T", info.Source, info.Object)
	}
	c := &configv1alpha1.ResourceInterpreterCustomization{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj.Object, c, true); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", info.Source, err)
	}
	switch {
	case c.Spec.Target.Kind == "":
		return nil, errors.New("target.kind no set")
	case c.Spec.Target.APIVersion == "":
		return nil, errors.New("target.apiVersion no set")
	}
	return c, nil
}

// object reads the one object in a file.
func (s *source) object(file string) (*unstructured.Unstructured, error) {
	infos, err := s.files([]string{file})
	if err != nil {
		return nil, err
	}
	switch len(infos) {
	case 0:
		return nil, fmt.Errorf("there is no object in %s", file)
	case 1:
	default:
		return nil, fmt.Errorf("get %d objects, expect one at most", len(infos))
	}
	obj, ok := infos[0].Object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%s holds a %T", file, infos[0].Object)
	}
	return obj, nil
}

// statuses reads a stream of AggregatedStatusItem. Its documents have no kind,
// but can be read from all that objects can be read from.
func (s *source) statuses(file string) ([]workv1alpha2.AggregatedStatusItem, error) {
	text, err := s.text(file)
	if err != nil {
		return nil, err
	}
	var out []workv1alpha2.AggregatedStatusItem
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var raw map[string]any
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decoding %s: %w", file, err)
		}
		if len(raw) == 0 {
			continue
		}
		item, err := statusItem(raw)
		if err != nil {
			return nil, fmt.Errorf("decoding item %d of %s: %w", len(out)+1, file, err)
		}
		out = append(out, item)
	}
}

func statusItem(raw map[string]any) (item workv1alpha2.AggregatedStatusItem, err error) {
	text, err := yaml.Marshal(raw)
	if err != nil {
		return item, fmt.Errorf("encoding: %w", err)
	}
	return item, yaml.UnmarshalStrict(text, &item)
}

// text returns the documents of files, separated.
func (s *source) text(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(s.env.In)
	}
	var out bytes.Buffer
	if env.IsURL(file) {
		return download(file)
	}
	paths, err := env.Files(file, s.recursive)
	for _, path := range paths {
		text, readErr := os.ReadFile(path)
		err = errors.Join(err, readErr)
		out.WriteString("\n---\n" + string(text))
	}
	return out.Bytes(), err
}

func download(url string) ([]byte, error) {
	response, err := http.Get(url) //nolint:gosec // the URL is that of the user
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("unable to read URL %q, server reported %s, status code=%d", url, response.Status, response.StatusCode)
	}
	return io.ReadAll(response.Body)
}
