package pb

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// writer appends fields. What is zero is left out, as proto3 has it.
type writer struct {
	b   []byte
	err error
}

func (w *writer) text(number int32, s string) {
	if s != "" {
		w.b = protowire.AppendString(protowire.AppendTag(w.b, protowire.Number(number), protowire.BytesType), s)
	}
}

func (w *writer) integer(number int32, n int64) {
	if n != 0 {
		w.b = protowire.AppendVarint(protowire.AppendTag(w.b, protowire.Number(number), protowire.VarintType), uint64(n))
	}
}

func (w *writer) bytes(number int32, data []byte) {
	w.b = protowire.AppendBytes(protowire.AppendTag(w.b, protowire.Number(number), protowire.BytesType), data)
}

func (w *writer) message(number int32, write func(*writer)) {
	inner := &writer{}
	write(inner)
	if inner.err != nil && w.err == nil {
		w.err = inner.err
	}
	w.bytes(number, inner.b)
}

// encoded appends one of Kubernetes' messages.
func (w *writer) encoded(number int32, m interface{ Marshal() ([]byte, error) }) {
	data, err := m.Marshal()
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("encoding %T: %w", m, err)
	}
	w.bytes(number, data)
}

// field is a field of a message.
type field struct {
	number protowire.Number
	bytes  []byte
	varint uint64
}

// parse hands the fields of a message to use. Fields of other forms are skipped.
func parse(data []byte, use func(field) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return fmt.Errorf("%w: %w", errMessage, protowire.ParseError(n))
		}
		data = data[n:]
		f := field{number: number}
		switch kind {
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(data)
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(data)
		default:
			n = protowire.ConsumeFieldValue(number, kind, data)
			f.number = 0
		}
		if n < 0 {
			return fmt.Errorf("%w: %w", errMessage, protowire.ParseError(n))
		}
		data = data[n:]
		if err := use(f); err != nil {
			return err
		}
	}
	return nil
}

func sortedKeys[M ~map[K]V, K cmp.Ordered, V any](m M) []K { return slices.Sorted(maps.Keys(m)) }
