package search

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"strings"

	"github.com/karmada-toolkit/karmada/internal/limit"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// Format is how a body is encoded.
type Format int

// The formats of bodies. Bodies of another format pass as they are: a member refuses a version of several clusters.
const (
	FormatOther Format = iota
	// FormatJSON includes merge patches.
	FormatJSON
	FormatJSONPatch
	// FormatYAML includes configurations that are applied. Bodies that change become JSON, which is YAML.
	FormatYAML
	// FormatCBOR is not translated: its values cannot be counted before they are decoded.
	FormatCBOR
	FormatProtobuf
)

// FormatOf returns the format of a content type. A body without one is JSON.
func FormatOf(contentType string) Format {
	if contentType == "" {
		return FormatJSON
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return FormatOther
	}
	switch mediaType {
	case "application/json", "application/merge-patch+json", "application/strategic-merge-patch+json":
		return FormatJSON
	case "application/json-patch+json":
		return FormatJSONPatch
	case "application/yaml", "application/apply-patch+yaml":
		return FormatYAML
	case "application/cbor", "application/apply-patch+cbor":
		return FormatCBOR
	case "application/vnd.kubernetes.protobuf":
		return FormatProtobuf
	}
	return FormatOther
}

// UnknownVersionError is a version of several clusters without one of the cluster that is written to: to leave it out would
// overwrite what the client has not seen.
type UnknownVersionError struct{ Cluster string }

// Error implements error.
func (e *UnknownVersionError) Error() string {
	return fmt.Sprintf("the resourceVersion has no entry for cluster %s, which holds the object; read it again and apply the changes to that version", e.Cluster)
}

// ToMember makes a body that is written through several clusters one for the cluster that holds the object: without the
// annotation that names the cluster, and with the cluster's version in the metadata and in preconditions. A body that cannot
// be decoded, or has nothing of the kind, is returned as it is. It returns an UnknownVersionError, and an error for YAML that cannot
// be read, has aliases, or for a body of too many values.
func ToMember(format Format, body []byte, cluster string) ([]byte, error) {
	t := toMember{cluster: cluster}
	return edit(format, body, &t)
}

// FromMember makes an answer of one cluster one of several: with the annotation and the version that lists have. A body that
// cannot be decoded, or has no version, is returned as it is.
func FromMember(format Format, body []byte, cluster string) []byte {
	out, err := edit(format, body, &fromMember{cluster: cluster})
	if err != nil {
		return body
	}
	return out
}

// WithVersions returns an object of a cluster, in JSON, with the versions of several clusters in place of its own.
func WithVersions(object []byte, cluster string, versions Versions) ([]byte, error) {
	return edit(FormatJSON, object, &withVersions{cluster, versions.Encode()})
}

type withVersions struct{ cluster, encoded string }

func (w *withVersions) version(string) (string, error) { return w.encoded, nil }

func (w *withVersions) annotation() string { return w.cluster }

// translator changes what a body says about versions.
type translator interface {
	// version returns the version to write in place of one.
	version(version string) (string, error)
	// annotation returns the annotation that an object with a version gets: "" for none, and one that is there is removed.
	annotation() string
}

type toMember struct{ cluster string }

func (t *toMember) version(version string) (string, error) {
	if version == "" || version == zeroVersion {
		return version, nil
	}
	versions, ok := DecodeVersions(version)
	if !ok {
		return version, nil
	}
	if versions.Object(t.cluster) == "" {
		return "", &UnknownVersionError{Cluster: t.cluster}
	}
	return versions.Object(t.cluster), nil
}

func (t *toMember) annotation() string { return "" }

type fromMember struct{ cluster string }

func (t *fromMember) version(version string) (string, error) {
	if version == "" {
		return "", nil
	}
	return Versions{}.With(t.cluster, version).Encode(), nil
}

func (t *fromMember) annotation() string { return t.cluster }

// edit translates a body. One in which nothing changes is returned as it is, byte by byte.
func edit(format Format, body []byte, t translator) ([]byte, error) {
	switch format {
	case FormatJSON, FormatJSONPatch, FormatYAML:
		text := body
		if format == FormatYAML && !json.Valid(body) {
			converted, err := limit.YAMLToJSON(body)
			if err != nil {
				return body, err
			}
			text = converted
		}
		if err := limit.CheckJSON(text); err != nil {
			return body, err
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		var tree any
		if decoder.Decode(&tree) != nil {
			return body, nil //nolint:nilerr // the member says what is wrong with it
		}
		if changed, err := editTree(format, &tree, t); err != nil || !changed {
			return body, err
		}
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(tree); err != nil {
			return body, nil //nolint:nilerr // it was decoded from JSON
		}
		return out.Bytes(), nil
	case FormatProtobuf:
		return editProtobuf(body, t)
	case FormatOther, FormatCBOR:
	}
	return body, nil
}

func editTree(format Format, tree *any, t translator) (bool, error) {
	if format == FormatJSONPatch {
		return editJSONPatch(tree, t)
	}
	object, ok := (*tree).(map[string]any)
	if !ok {
		return false, nil
	}
	return editObject(object, t)
}

// editObject changes an object, options of a deletion, an eviction or a table.
func editObject(object map[string]any, t translator) (bool, error) {
	var changed bool
	if metadata, ok := object["metadata"].(map[string]any); ok {
		c, err := editMetadata(metadata, t)
		if err != nil {
			return false, err
		}
		changed = c
	}
	if preconditions, ok := object["preconditions"].(map[string]any); ok {
		c, err := editVersion(preconditions, versionKey, t)
		if err != nil {
			return false, err
		}
		changed = changed || c
	}
	if options, ok := object["deleteOptions"].(map[string]any); ok {
		c, err := editObject(options, t)
		if err != nil {
			return false, err
		}
		changed = changed || c
	}
	if object["kind"] != "Table" {
		return changed, nil
	}
	rows, _ := object["rows"].([]any)
	for _, row := range rows {
		r, _ := row.(map[string]any)
		if of, ok := r["object"].(map[string]any); ok {
			c, err := editObject(of, t)
			if err != nil {
				return false, err
			}
			changed = changed || c
		}
	}
	return changed, nil
}

func editMetadata(metadata map[string]any, t translator) (bool, error) {
	_, named := metadata["name"]
	changed, err := editVersion(metadata, versionKey, t)
	if err != nil {
		return false, err
	}
	if cluster := t.annotation(); cluster != "" {
		if !changed || !named { // a table or a list
			return changed, nil
		}
		annotations, _ := metadata["annotations"].(map[string]any)
		if annotations == nil {
			annotations = map[string]any{}
			metadata["annotations"] = annotations
		}
		annotations[clusterv1alpha1.CacheSourceAnnotation] = cluster
		return true, nil
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	if removeAnnotation(annotations) {
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
		changed = true
	}
	return changed, nil
}

func removeAnnotation(annotations map[string]any) bool {
	if _, ok := annotations[clusterv1alpha1.CacheSourceAnnotation]; !ok {
		return false
	}
	delete(annotations, clusterv1alpha1.CacheSourceAnnotation)
	return true
}

const versionKey = "resourceVersion"

// editVersion translates the resource version in a field of an object.
func editVersion(object map[string]any, field string, t translator) (bool, error) {
	before, ok := object[field].(string)
	if !ok {
		return false, nil
	}
	after, err := t.version(before)
	if err != nil || after == before {
		return false, err
	}
	object[field] = after
	return true, nil
}

// annotationPath is where JSON patches find the annotation that names the cluster.
func annotationPath() string {
	return "/metadata/annotations/" + strings.ReplaceAll(strings.ReplaceAll(clusterv1alpha1.CacheSourceAnnotation, "~", "~0"), "/", "~1")
}

// editJSONPatch changes the values of operations, and leaves out those on the annotation, which the member does not have.
func editJSONPatch(tree *any, t translator) (bool, error) {
	operations, ok := (*tree).([]any)
	if !ok {
		return false, nil
	}
	var changed bool
	kept := make([]any, 0, len(operations))
	for _, one := range operations {
		operation, ok := one.(map[string]any)
		if !ok {
			kept = append(kept, one)
			continue
		}
		if operation["path"] == annotationPath() {
			changed = true
			continue
		}
		c, err := editOperation(operation, t)
		if err != nil {
			return false, err
		}
		changed = changed || c
		kept = append(kept, one)
	}
	*tree = kept
	return changed, nil
}

func editOperation(operation map[string]any, t translator) (bool, error) {
	switch operation["path"] {
	case "":
		if value, ok := operation["value"].(map[string]any); ok {
			return editObject(value, t)
		}
	case "/metadata":
		if value, ok := operation["value"].(map[string]any); ok {
			return editMetadata(value, t)
		}
	case "/metadata/annotations":
		annotations, _ := operation["value"].(map[string]any)
		return removeAnnotation(annotations), nil
	case "/metadata/" + versionKey:
		return editVersion(operation, "value", t)
	}
	return false, nil
}
