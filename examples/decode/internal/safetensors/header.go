// Package safetensors reads tensors from safetensors files, alone or in shards with an index.
//
// A file is an 8-byte little-endian length, a JSON header of that length that names each tensor's type, shape and byte
// range, and the bytes. See https://huggingface.co/docs/safetensors. What a header promises is checked against the file
// when it is opened, so that reading a tensor cannot meet a surprise.
package safetensors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// MaxHeaderBytes is the longest header that the format's own reader accepts.
const MaxHeaderBytes = 100_000_000

const maxDims = 8

// Info is a header's description of one tensor.
type Info struct {
	DType string // "BF16", "F16", "F32", "U32", …
	Shape []int64
	Begin int64 // of the tensor's bytes, from the end of the header
	End   int64

	File   string // name of the file
	Offset int64  // of the tensor's bytes, from the beginning of the file
}

// elementSizes are the format's types in bytes. Types smaller than a byte are not listed: no tensor here has them.
var elementSizes = map[string]int64{
	"BOOL": 1, "U8": 1, "I8": 1, "F8_E5M2": 1, "F8_E4M3": 1, "F8_E8M0": 1,
	"U16": 2, "I16": 2, "F16": 2, "BF16": 2,
	"U32": 4, "I32": 4, "F32": 4,
	"U64": 8, "I64": 8, "F64": 8,
}

// readHeader reads and checks the header of a file of size bytes. It returns where the tensors' bytes begin.
func readHeader(r io.ReaderAt, size int64) (map[string]Info, int64, error) {
	if size < 8 {
		return nil, 0, fmt.Errorf("the file has %d bytes, too few for a header", size)
	}
	var prefix [8]byte
	if err := readFull(r, prefix[:], 0); err != nil {
		return nil, 0, err
	}
	var length uint64
	for i, b := range prefix {
		length |= uint64(b) << (8 * i)
	}
	if length > MaxHeaderBytes {
		return nil, 0, fmt.Errorf("the header's length is given as %d bytes, the limit is %d: not a safetensors file?", length, MaxHeaderBytes)
	}
	if int64(length) > size-8 {
		return nil, 0, fmt.Errorf("truncated: the header has %d bytes, the file has %d after its length", length, size-8)
	}
	text := make([]byte, length)
	if err := readFull(r, text, 8); err != nil {
		return nil, 0, err
	}
	infos, err := parseHeader(text)
	if err != nil {
		return nil, 0, err
	}
	start := 8 + int64(length)
	return infos, start, checkRanges(infos, size-start)
}

// parseHeader reads the JSON and checks each tensor for itself.
func parseHeader(text []byte) (map[string]Info, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("the header is not a JSON object")
	}
	infos := map[string]Info{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("the header is not JSON: %w", err)
		}
		name := t.(string) // the decoder allows nothing else as a key
		if name == "__metadata__" {
			var ignored json.RawMessage
			if err := d.Decode(&ignored); err != nil {
				return nil, fmt.Errorf("the header is not JSON: %w", err)
			}
			continue
		}
		var raw struct {
			DType   string  `json:"dtype"`
			Shape   []int64 `json:"shape"`
			Offsets []int64 `json:"data_offsets"`
		}
		if err := d.Decode(&raw); err != nil {
			return nil, fmt.Errorf("tensor %q: its header entry is broken: %w", name, err)
		}
		if _, dup := infos[name]; dup {
			return nil, fmt.Errorf("tensor %q is listed twice", name)
		}
		if len(raw.Offsets) != 2 {
			return nil, fmt.Errorf("tensor %q: data_offsets has %d numbers, not 2", name, len(raw.Offsets))
		}
		info := Info{DType: raw.DType, Shape: raw.Shape, Begin: raw.Offsets[0], End: raw.Offsets[1]}
		if err := info.check(); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		infos[name] = info
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("the header is not JSON: %w", err)
	}
	if len(bytes.TrimRight(text[d.InputOffset():], " \t\r\n\x00")) > 0 {
		return nil, errors.New("there is something after the header's JSON object")
	}
	return infos, nil
}

// check compares the byte range with the type and the shape.
func (i Info) check() error {
	size, ok := elementSizes[i.DType]
	if !ok {
		return fmt.Errorf("its type %q is unknown", i.DType)
	}
	if len(i.Shape) > maxDims {
		return fmt.Errorf("it has %d dimensions, the limit is %d", len(i.Shape), maxDims)
	}
	for _, n := range i.Shape {
		if n < 0 {
			return fmt.Errorf("its shape %v has a negative dimension", i.Shape)
		}
	}
	for _, n := range i.Shape {
		if n > 0 && size > math.MaxInt64/n {
			return fmt.Errorf("its shape %v is too large", i.Shape)
		}
		size *= n
	}
	if i.Begin < 0 || i.End < i.Begin {
		return fmt.Errorf("its bytes are from %d to %d, which is no range", i.Begin, i.End)
	}
	if i.End-i.Begin != size {
		return fmt.Errorf("%s of shape %v needs %d bytes, but its range %d to %d has %d", i.DType, i.Shape, size, i.Begin, i.End, i.End-i.Begin)
	}
	return nil
}

// checkRanges sees to it that the tensors cover the data completely and do not overlap.
func checkRanges(infos map[string]Info, size int64) error {
	names := sortedKeys(infos)
	slices.SortStableFunc(names, func(a, b string) int {
		x, y := infos[a], infos[b]
		return cmp.Or(cmp.Compare(x.Begin, y.Begin), cmp.Compare(x.End, y.End))
	})
	end, last := int64(0), ""
	for _, name := range names {
		i := infos[name]
		if i.Begin < end {
			return fmt.Errorf("tensors %q and %q overlap: bytes %d to %d", last, name, i.Begin, min(end, i.End))
		}
		if i.Begin > end {
			return fmt.Errorf("bytes %d to %d belong to no tensor", end, i.Begin)
		}
		if i.End > size {
			return fmt.Errorf("truncated: tensor %q ends at byte %d of the data, the file has %d", name, i.End, size)
		}
		end, last = i.End, name
	}
	if end != size {
		return fmt.Errorf("bytes %d to %d belong to no tensor", end, size)
	}
	return nil
}

func readFull(r io.ReaderAt, buf []byte, offset int64) error {
	n, err := r.ReadAt(buf, offset)
	if n == len(buf) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("reading %d bytes at %d: %w", len(buf), offset, err)
}
