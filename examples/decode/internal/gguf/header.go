package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// header reads a file from its beginning, and stops at the first error.
type header struct {
	reader   *bufio.Reader
	at, size int64
	values   uint64 // of arrays, so far
	buf      [8]byte
	err      error
}

func newHeader(r io.ReaderAt, size int64) *header {
	return &header{reader: bufio.NewReaderSize(io.NewSectionReader(r, 0, size), 1<<16), size: size}
}

// count checks a number of things that take at least so many bytes each, before there is memory for them.
func (h *header) count(what string, n uint64, limit uint64, bytes int64) error {
	if n > limit {
		return fmt.Errorf("the %s is %d, the limit is %d", what, n, limit)
	}
	if int64(n) > (h.size-h.at)/bytes {
		return fmt.Errorf("truncated: the %s is %d, which the %d bytes that follow cannot hold", what, n, h.size-h.at)
	}
	return nil
}

// bytes reads n bytes, of which the file has at least as many.
func (h *header) bytes(n int) []byte {
	if h.err != nil {
		return nil
	}
	if int64(n) > h.size-h.at {
		h.err = fmt.Errorf("truncated: %d bytes are needed at byte %d, the file has %d", n, h.at, h.size)
		return nil
	}
	data := h.buf[:min(n, len(h.buf))]
	if n > len(data) {
		data = make([]byte, n)
	}
	if _, err := io.ReadFull(h.reader, data); err != nil {
		h.err = fmt.Errorf("reading %d bytes at byte %d: %w", n, h.at, err)
		return nil
	}
	h.at += int64(n)
	return data
}

func (h *header) uint32() uint32 {
	if b := h.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (h *header) uint64() uint64 {
	if b := h.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (h *header) string(limit uint64) string {
	n := h.uint64()
	if h.err == nil && n > limit {
		h.err = fmt.Errorf("a string has %d bytes, the limit is %d", n, limit)
	}
	if h.err != nil {
		return ""
	}
	return string(h.bytes(int(n)))
}

// valueType is the type of a value of the metadata.
type valueType uint32

const (
	typeUint8 valueType = iota
	typeInt8
	typeUint16
	typeInt16
	typeUint32
	typeInt32
	typeFloat32
	typeBool
	typeString
	typeArray
	typeUint64
	typeInt64
	typeFloat64
)

// valueBytes are the least numbers of bytes of values.
var valueBytes = [...]int64{1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8}

var errNested = errors.New("it is an array of arrays, which is not supported")

// value reads a value: an int64, float64, bool or string, or a slice of one of them.
func (h *header) value(t valueType, array bool) any {
	switch t {
	case typeUint8, typeInt8, typeUint16, typeInt16, typeUint32, typeInt32, typeUint64, typeInt64:
		return h.integer(t)
	case typeFloat32, typeFloat64:
		return h.float(t)
	case typeBool:
		return h.bool()
	case typeString:
		return h.string(maxStringBytes)
	case typeArray:
		if array {
			return h.array()
		}
		h.fail(errNested)
	default:
		h.fail(fmt.Errorf("its value's type is %d: known are 0 to 12", uint32(t)))
	}
	return nil
}

func (h *header) fail(err error) {
	if h.err == nil {
		h.err = err
	}
}

func (h *header) integer(t valueType) int64 {
	b := h.bytes(int(valueBytes[t]))
	if b == nil {
		return 0
	}
	switch t {
	case typeUint8:
		return int64(b[0])
	case typeInt8:
		return int64(int8(b[0]))
	case typeUint16:
		return int64(binary.LittleEndian.Uint16(b))
	case typeInt16:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case typeUint32:
		return int64(binary.LittleEndian.Uint32(b))
	case typeInt32:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	case typeUint64:
		if v := binary.LittleEndian.Uint64(b); v > math.MaxInt64 {
			h.fail(fmt.Errorf("its value %d is too large", v))
		}
	}
	return int64(binary.LittleEndian.Uint64(b))
}

func (h *header) float(t valueType) float64 {
	if t == typeFloat32 {
		return float64(math.Float32frombits(h.uint32()))
	}
	return math.Float64frombits(h.uint64())
}

func (h *header) bool() bool {
	b := h.bytes(1)
	if b == nil {
		return false
	}
	if b[0] > 1 {
		h.fail(fmt.Errorf("a truth value is %d: it must be 0 or 1", b[0]))
	}
	return b[0] == 1
}

func (h *header) array() any {
	t, n := valueType(h.uint32()), h.uint64()
	switch {
	case h.err != nil:
		return nil
	case t == typeArray:
		h.fail(errNested)
		return nil
	case int(t) >= len(valueBytes):
		h.fail(fmt.Errorf("the type of its values is %d: known are 0 to 12", uint32(t)))
		return nil
	}
	if err := h.count("number of its values", n, maxValues-h.values, valueBytes[t]); err != nil {
		h.fail(err)
		return nil
	}
	h.values += n
	switch t {
	case typeFloat32, typeFloat64:
		return values(h, n, func() float64 { return h.float(t) })
	case typeBool:
		return values(h, n, h.bool)
	case typeString:
		return values(h, n, func() string { return h.string(maxStringBytes) })
	}
	return values(h, n, func() int64 { return h.integer(t) })
}

func values[T any](h *header, n uint64, next func() T) []T {
	out := make([]T, 0, n)
	for range n {
		v := next()
		if h.err != nil {
			h.err = fmt.Errorf("value %d of %d: %w", len(out), n, h.err)
			return nil
		}
		out = append(out, v)
	}
	return out
}
