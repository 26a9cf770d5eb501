package search

import (
	"bytes"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// protobufPrefix begins bodies in the protobuf format of Kubernetes. A runtime.Unknown follows.
const protobufPrefix = "k8s\x00"

// The numbers of fields. Every object has its metadata in the first one.
const (
	unknownTypeMeta     protowire.Number = 1
	unknownRaw          protowire.Number = 2
	unknownContentType  protowire.Number = 4
	typeMetaKind        protowire.Number = 2
	objectMetadata      protowire.Number = 1
	metadataVersion     protowire.Number = 6
	metadataAnnotations protowire.Number = 12
	evictionOptions     protowire.Number = 2
	optionsConditions   protowire.Number = 2
	conditionsVersion   protowire.Number = 2
	mapKey              protowire.Number = 1
	mapValue            protowire.Number = 2
)

// editProtobuf translates a body without knowing its type: only the metadata and preconditions are read.
func editProtobuf(body []byte, t translator) ([]byte, error) {
	message, ok := bytes.CutPrefix(body, []byte(protobufPrefix))
	if !ok {
		return body, nil
	}
	kind, other := "", false
	_, valid, _ := editFields(message, func(number protowire.Number, value []byte) ([]byte, error) {
		switch number {
		case unknownTypeMeta:
			kind = stringField(value, typeMetaKind)
		case unknownContentType:
			other = len(value) > 0
		}
		return value, nil
	})
	if !valid || other || kind == "Status" || strings.HasSuffix(kind, "List") {
		return body, nil
	}
	e := protobufEditor{t: t}
	out, valid, err := editFields(message, func(number protowire.Number, value []byte) ([]byte, error) {
		if number != unknownRaw {
			return value, nil
		}
		return e.object(kind, value)
	})
	if err != nil {
		return body, err
	}
	if !valid || e.invalid || !e.changed {
		return body, nil
	}
	return append([]byte(protobufPrefix), out...), nil
}

// protobufEditor translates messages and records what it met.
type protobufEditor struct {
	t                translator
	changed, invalid bool
}

// fields edits a message, whose fields it keeps if it is not valid.
func (e *protobufEditor) fields(message []byte, edit fieldEditor) ([]byte, error) {
	out, valid, err := editFields(message, edit)
	if !valid {
		e.invalid = true
		return message, nil
	}
	return out, err
}

func (e *protobufEditor) object(kind string, message []byte) ([]byte, error) {
	if kind == "DeleteOptions" {
		return e.options(message)
	}
	return e.fields(message, func(number protowire.Number, value []byte) ([]byte, error) {
		switch {
		case number == objectMetadata:
			return e.metadata(value)
		case number == evictionOptions && kind == "Eviction":
			return e.options(value)
		}
		return value, nil
	})
}

func (e *protobufEditor) options(message []byte) ([]byte, error) {
	return e.fields(message, func(number protowire.Number, value []byte) ([]byte, error) {
		if number != optionsConditions {
			return value, nil
		}
		return e.fields(value, func(number protowire.Number, value []byte) ([]byte, error) {
			if number != conditionsVersion {
				return value, nil
			}
			return e.version(value)
		})
	})
}

func (e *protobufEditor) metadata(message []byte) ([]byte, error) {
	cluster, versioned := e.t.annotation(), false
	out, err := e.fields(message, func(number protowire.Number, value []byte) ([]byte, error) {
		switch number {
		case metadataVersion:
			versioned = versioned || len(value) > 0
			return e.version(value)
		case metadataAnnotations:
			if stringField(value, mapKey) == clusterv1alpha1.CacheSourceAnnotation {
				e.changed = true
				return nil, nil
			}
		}
		return value, nil
	})
	if err != nil || cluster == "" || !versioned {
		return out, err
	}
	entry := protowire.AppendString(protowire.AppendTag(nil, mapKey, protowire.BytesType), clusterv1alpha1.CacheSourceAnnotation)
	entry = protowire.AppendString(protowire.AppendTag(entry, mapValue, protowire.BytesType), cluster)
	return protowire.AppendBytes(protowire.AppendTag(out, metadataAnnotations, protowire.BytesType), entry), nil
}

func (e *protobufEditor) version(value []byte) ([]byte, error) {
	after, err := e.t.version(string(value))
	if err != nil {
		return value, err
	}
	e.changed = e.changed || after != string(value)
	return []byte(after), nil
}

// fieldEditor returns what a field of bytes becomes: nil if it is left out.
type fieldEditor func(number protowire.Number, value []byte) ([]byte, error)

// editFields edits the fields of bytes of a message and copies the others. It reports whether the message is valid.
func editFields(message []byte, edit fieldEditor) (out []byte, valid bool, err error) {
	out = make([]byte, 0, len(message))
	for len(message) > 0 {
		number, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return nil, false, nil
		}
		length := protowire.ConsumeFieldValue(number, kind, message[size:])
		if length < 0 {
			return nil, false, nil
		}
		if kind != protowire.BytesType {
			out, message = append(out, message[:size+length]...), message[size+length:]
			continue
		}
		value, _ := protowire.ConsumeBytes(message[size:])
		message = message[size+length:]
		after, err := edit(number, value)
		if err != nil {
			return nil, true, err
		}
		if after != nil {
			out = protowire.AppendBytes(protowire.AppendTag(out, number, protowire.BytesType), after)
		}
	}
	return out, true, nil
}

// stringField returns the last value of a field of a message: "" if there is none.
func stringField(message []byte, wanted protowire.Number) string {
	found := ""
	_, valid, _ := editFields(message, func(number protowire.Number, value []byte) ([]byte, error) {
		if number == wanted {
			found = string(value)
		}
		return value, nil
	})
	if !valid {
		return ""
	}
	return found
}
