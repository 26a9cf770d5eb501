package override

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/distribution/reference"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

var (
	tagPattern    = regexp.MustCompile(`^` + reference.TagRegexp.String() + `$`)
	digestPattern = regexp.MustCompile(`^` + reference.DigestRegexp.String() + `$`)
)

// Image is a parsed image reference. It has a tag or a digest or neither, never
// both.
type Image struct {
	Registry, Repository, Tag, Digest string
}

// ParseImage reads host/repository:tag@digest. Without a host the registry is
// empty: nothing is made up. With both a tag and a digest the digest is dropped.
func ParseImage(s string) (Image, error) {
	parsed, err := reference.Parse(s)
	if err != nil {
		return Image{}, fmt.Errorf("parsing image %q: %w", s, err)
	}
	named, ok := parsed.(reference.Named)
	if !ok {
		return Image{}, fmt.Errorf("parsing image %q: it has no name", s)
	}
	image := Image{Repository: named.Name()}
	if host, rest, found := strings.Cut(named.Name(), "/"); found && (strings.ContainsAny(host, ".:") || host == "localhost") {
		image.Registry, image.Repository = host, rest
	}
	if tagged, ok := parsed.(reference.Tagged); ok {
		image.Tag = tagged.Tag()
	} else if digested, ok := parsed.(reference.Digested); ok {
		image.Digest = digested.Digest().String()
	}
	return image, nil
}

// String writes the reference.
func (i Image) String() string {
	s := i.Repository
	if i.Registry != "" {
		s = i.Registry + "/" + s
	}
	switch {
	case i.Tag != "":
		return s + ":" + i.Tag
	case i.Digest != "":
		return s + "@" + i.Digest
	}
	return s
}

// override changes one component.
func (i *Image) override(o *policyv1alpha1.ImageOverrider) error {
	switch o.Component {
	case policyv1alpha1.Registry:
		return change(&i.Registry, o)
	case policyv1alpha1.Repository:
		return change(&i.Repository, o)
	case policyv1alpha1.Tag:
		return i.overrideTag(o)
	}
	return fmt.Errorf("unknown image component %q", o.Component)
}

func change(component *string, o *policyv1alpha1.ImageOverrider) error {
	switch o.Operator {
	case policyv1alpha1.OverriderOpAdd:
		*component += o.Value
	case policyv1alpha1.OverriderOpReplace:
		*component = o.Value
	case policyv1alpha1.OverriderOpRemove:
		*component = ""
	default:
		return fmt.Errorf("unknown operator %q", o.Operator)
	}
	return nil
}

// overrideTag changes the tag, or the digest of an image without a tag. What is
// neither a tag nor a digest afterwards leaves the image as it is.
func (i *Image) overrideTag(o *policyv1alpha1.ImageOverrider) error {
	text := cmp.Or(i.Tag, i.Digest)
	if err := change(&text, o); err != nil {
		return err
	}
	switch {
	case o.Operator == policyv1alpha1.OverriderOpRemove:
		if i.Tag != "" {
			i.Tag = ""
		} else {
			i.Digest = ""
		}
	case tagPattern.MatchString(text):
		i.Tag, i.Digest = text, ""
	case digestPattern.MatchString(text):
		i.Tag, i.Digest = "", text
	}
	return nil
}

// overrideImage changes the image that the predicate points at, or those of all
// containers of a well-known workload.
func (r *run) overrideImage(o *policyv1alpha1.ImageOverrider) error {
	if o.Predicate != nil {
		return r.overrideImageAt(o.Predicate.Path, o)
	}
	containers, err := r.allContainers()
	if err != nil {
		return err
	}
	for _, c := range containers {
		image, _ := c["image"].(string)
		changed, err := r.changedImage(image, o)
		if err != nil {
			return err
		}
		c["image"] = changed
	}
	return nil
}

func (r *run) changedImage(text string, o *policyv1alpha1.ImageOverrider) (string, error) {
	if err := r.budget.step(4 + (len(text)+len(o.Value))/16); err != nil {
		return "", err
	}
	image, err := ParseImage(text)
	if err != nil {
		return "", err
	}
	if err := image.override(o); err != nil {
		return "", err
	}
	changed := image.String()
	return changed, r.budget.replaceText(text, changed)
}

// overrideImageAt changes the image at a slash-separated path. Segments are taken
// as they are, without the escapes of JSON pointers.
func (r *run) overrideImageAt(path string, o *policyv1alpha1.ImageOverrider) error {
	if err := r.budget.path(path); err != nil {
		return err
	}
	if !strings.HasPrefix(path, "/") {
		return errors.New("imagePath should be start with / character")
	}
	segments := strings.Split(path[1:], "/")
	value, err := lookup(r.obj.Object, segments)
	if err != nil {
		return fmt.Errorf("image path %q: %w", path, err)
	}
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("image path %q: %T is not a string", path, value)
	}
	changed, err := r.changedImage(text, o)
	if err != nil {
		return fmt.Errorf("image path %q: %w", path, err)
	}
	r.known = false
	_, err = patch(r.obj.Object, segments, policyv1alpha1.OverriderOpReplace, changed)
	return err
}
