package sentencepiece

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Parse reads a tokenizer.model file: a ModelProto of sentencepiece_model.proto.
func Parse(data []byte) (*Model, error) {
	if len(data) > MaxModelBytes {
		return nil, fmt.Errorf("sentencepiece: the model has %d bytes, the limit is %d", len(data), MaxModelBytes)
	}
	m, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("sentencepiece: %w", err)
	}
	return m, nil
}

// unknownText is how an unknown piece is spelled by default.
const unknownText = " \u2047 "

// Field numbers and defaults below are those of sentencepiece_model.proto.

type trainerSpec struct {
	modelType    uint64
	byteFallback bool
	unknownText  string
	suffixSpaces bool
}

type normalizerSpec struct {
	charsmap     int // bytes of the compiled normalisation rules
	dummyPrefix  bool
	removeSpaces bool
	escapeSpaces bool
}

const (
	modelTypeUnigram = 1
	modelTypeBPE     = 2
)

var modelTypes = map[uint64]string{1: "unigram", 2: "BPE", 3: "word", 4: "character"}

func parse(data []byte) (*Model, error) {
	m := &Model{}
	trainer := trainerSpec{modelType: modelTypeUnigram, unknownText: unknownText}
	normalizer := normalizerSpec{dummyPrefix: true, removeSpaces: true, escapeSpaces: true}
	err := fields(data, func(f field) error {
		switch f.number {
		case 1:
			if len(m.pieces) == maxPieces {
				return fmt.Errorf("more than %d pieces", maxPieces)
			}
			p, err := parsePiece(f)
			if err != nil {
				return fmt.Errorf("piece %d: %w", len(m.pieces), err)
			}
			m.pieces = append(m.pieces, p)
		case 2:
			return parseTrainer(f, &trainer)
		case 3:
			return parseNormalizer(f, &normalizer)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	switch {
	case trainer.modelType != modelTypeBPE:
		name, ok := modelTypes[trainer.modelType]
		if !ok {
			name = fmt.Sprint(trainer.modelType)
		}
		return nil, fmt.Errorf("the model type is %s; only BPE is supported", name)
	case trainer.suffixSpaces:
		return nil, errors.New("the model puts spaces at the end of words; this is not supported")
	case normalizer.charsmap > 0:
		return nil, errors.New("the model normalises text with compiled rules; only models without them are supported")
	case normalizer.removeSpaces:
		return nil, errors.New("the model removes extra spaces (remove_extra_whitespaces); this is not supported")
	case !normalizer.escapeSpaces:
		return nil, errors.New("the model keeps spaces as they are (escape_whitespaces is off); this is not supported")
	}
	m.unknownText, m.dummyPrefix = trainer.unknownText, normalizer.dummyPrefix
	if err := m.index(trainer.byteFallback); err != nil {
		return nil, err
	}
	if m.pieces[m.unknown].kind != kindUnknown {
		return nil, errors.New("the model has no unknown piece")
	}
	return m, nil
}

func parsePiece(f field) (piece, error) {
	p := piece{kind: kindNormal}
	data, err := f.message()
	if err != nil {
		return p, err
	}
	err = fields(data, func(f field) (err error) {
		switch f.number {
		case 1:
			var text []byte
			if text, err = f.message(); err != nil {
				return err
			}
			if len(text) > maxPieceBytes {
				return fmt.Errorf("the text has %d bytes, the limit is %d", len(text), maxPieceBytes)
			}
			p.text = string(text)
		case 2:
			if f.wire != protowire.Fixed32Type {
				return errors.New("the score is not a float")
			}
			p.score = math.Float32frombits(uint32(f.value))
			if p.score != p.score {
				return errors.New("the score is not a number")
			}
		case 3:
			var v uint64
			v, err = f.varint()
			p.kind = kind(min(v, 255))
		}
		return err
	})
	return p, err
}

func parseTrainer(f field, spec *trainerSpec) error {
	data, err := f.message()
	if err != nil {
		return fmt.Errorf("trainer specification: %w", err)
	}
	return fields(data, func(f field) (err error) {
		switch f.number {
		case 3:
			spec.modelType, err = f.varint()
		case 24:
			spec.suffixSpaces, err = f.bool()
		case 35:
			spec.byteFallback, err = f.bool()
		case 44:
			var text []byte
			text, err = f.message()
			spec.unknownText = string(text)
		}
		return err
	})
}

func parseNormalizer(f field, spec *normalizerSpec) error {
	data, err := f.message()
	if err != nil {
		return fmt.Errorf("normalizer specification: %w", err)
	}
	return fields(data, func(f field) (err error) {
		switch f.number {
		case 2:
			var rules []byte
			rules, err = f.message()
			spec.charsmap = len(rules)
		case 3:
			spec.dummyPrefix, err = f.bool()
		case 4:
			spec.removeSpaces, err = f.bool()
		case 5:
			spec.escapeSpaces, err = f.bool()
		}
		return err
	})
}

// field is one field of a message: its number, and the value in the form of its wire type.
type field struct {
	number protowire.Number
	wire   protowire.Type
	value  uint64 // varint, fixed32, fixed64
	data   []byte // length-delimited
}

func (f field) varint() (uint64, error) {
	if f.wire != protowire.VarintType {
		return 0, fmt.Errorf("field %d has wire type %d, not that of an integer", f.number, f.wire)
	}
	return f.value, nil
}

func (f field) bool() (bool, error) {
	v, err := f.varint()
	return v != 0, err
}

func (f field) message() ([]byte, error) {
	if f.wire != protowire.BytesType {
		return nil, fmt.Errorf("field %d has wire type %d, not that of bytes", f.number, f.wire)
	}
	return f.data, nil
}

// fields calls visit for each field of a message.
func fields(data []byte, visit func(field) error) error {
	for len(data) > 0 {
		number, wire, n := protowire.ConsumeTag(data)
		if n < 0 {
			return fmt.Errorf("broken or truncated: %w", protowire.ParseError(n))
		}
		data = data[n:]
		f := field{number: number, wire: wire}
		switch wire {
		case protowire.VarintType:
			f.value, n = protowire.ConsumeVarint(data)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(data)
			f.value = uint64(v)
		case protowire.Fixed64Type:
			f.value, n = protowire.ConsumeFixed64(data)
		case protowire.BytesType:
			f.data, n = protowire.ConsumeBytes(data)
		default:
			n = protowire.ConsumeFieldValue(number, wire, data)
		}
		if n < 0 {
			return fmt.Errorf("broken or truncated in field %d: %w", number, protowire.ParseError(n))
		}
		data = data[n:]
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}
