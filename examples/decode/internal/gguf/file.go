// Package gguf reads GGUF files of version 2 and 3: metadata, and tensors with their places in the file.
//
// A file is a header with two counts, the metadata (keys with typed values), descriptions of the tensors, and their bytes from the
// next multiple of an alignment on; see https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Everything is checked against
// the file's length when it is opened, before memory is taken for it, so that reading a tensor cannot meet a surprise.
//
// It is not built on github.com/gpustack/gguf-parser-go, which has a parser of such files among much else: that one cuts white space off both
// ends of every string (v0.28.1), among them tokens that are nothing but that, follows nested arrays to any depth, and
// brings clients for HTTP and SSH into the program.
package gguf

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
)

// Limits of what is read: far beyond any model.
const (
	maxKeys        = 1 << 16
	maxTensors     = 1 << 20
	maxNameBytes   = 1 << 12 // of a key or a tensor's name
	maxStringBytes = 1 << 24
	maxValues      = 1 << 24 // of all arrays together
	maxDims        = 4
	maxAlignment   = 1 << 20
)

const (
	magic            = "GGUF"
	defaultAlignment = 32
	alignmentKey     = "general.alignment"
	splitKey         = "split.count"
)

// File is an open file. It is safe for concurrent use, except for Close.
type File struct {
	name    string
	reader  io.ReaderAt
	close   func() error
	values  map[string]any
	tensors map[string]Tensor
}

// Tensor is a file's description of one tensor.
type Tensor struct {
	Name   string
	Type   Type
	Shape  []int64 // slowest first: [rows, cols] for a matrix stored row after row. The file has it the other way round.
	Offset int64   // in the file
	Size   int64   // in bytes
}

// Open opens the file at path.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("gguf: %s: it is not a regular file", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	file, err := Read(info.Name(), f, info.Size())
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	file.close = f.Close
	return file, nil
}

// Read reads the beginning of a file of size bytes; name is for messages. Closing it does nothing.
func Read(name string, r io.ReaderAt, size int64) (*File, error) {
	f := &File{name: name, reader: r, close: func() error { return nil }, values: map[string]any{}, tensors: map[string]Tensor{}}
	if err := f.read(newHeader(r, size)); err != nil {
		return nil, fmt.Errorf("gguf: %s: %w", name, err)
	}
	return f, nil
}

// Close closes the file.
func (f *File) Close() error { return f.close() }

// Name is the file's name without its folder.
func (f *File) Name() string { return f.name }

// Names are the names of the tensors, in order.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.tensors)) }

// Tensor describes the tensor of a name and says whether there is one.
func (f *File) Tensor(name string) (Tensor, bool) {
	t, ok := f.tensors[name]
	return t, ok
}

// Read reads the bytes of a tensor of the file.
func (f *File) Read(t Tensor) ([]byte, error) {
	if have, ok := f.tensors[t.Name]; !ok || have.Offset != t.Offset || have.Size != t.Size {
		return nil, fmt.Errorf("gguf: %s: there is no such tensor %q", f.name, t.Name)
	}
	data := make([]byte, t.Size)
	if n, err := f.reader.ReadAt(data, t.Offset); n != len(data) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("gguf: %s: tensor %q: %w", f.name, t.Name, err)
	}
	return data, nil
}

func (f *File) read(h *header) error {
	if text := h.bytes(len(magic)); h.err == nil && string(text) != magic {
		return fmt.Errorf("it begins with %q, not with %q: not a GGUF file", text, magic)
	}
	version := h.uint32()
	switch {
	case h.err != nil:
		return fmt.Errorf("the header: %w", h.err)
	case version == 2<<24 || version == 3<<24:
		return errors.New("its numbers are big-endian, which is not supported")
	case version != 2 && version != 3:
		return fmt.Errorf("version is %d: known are 2 and 3", version)
	}
	tensors, keys := h.uint64(), h.uint64()
	if h.err != nil {
		return fmt.Errorf("the header: %w", h.err)
	}
	// A key has at least a length, a type and a byte; a tensor a length, a number of dimensions, one of them, a type and an offset.
	if err := h.count("number of keys", keys, maxKeys, 8+4+1); err != nil {
		return err
	}
	if err := h.count("number of tensors", tensors, maxTensors, 8+4+8+4+8); err != nil {
		return err
	}
	for i := range keys {
		if err := f.readKey(h); err != nil {
			return fmt.Errorf("key %d of %d: %w", i, keys, err)
		}
	}
	if n, ok, err := f.Int(splitKey); err != nil {
		return err
	} else if ok && n > 1 {
		return fmt.Errorf("%s is %d: it is one of several files of a model, which must be merged first (llama-gguf-split --merge)", splitKey, n)
	}
	alignment, ok, err := f.Int(alignmentKey)
	switch {
	case err != nil:
		return err
	case !ok:
		alignment = defaultAlignment
	case alignment < 8 || alignment > maxAlignment || alignment&(alignment-1) != 0:
		return fmt.Errorf("%s is %d: it must be a power of two from 8 to %d", alignmentKey, alignment, maxAlignment)
	}
	for i := range tensors {
		if err := f.readTensor(h, alignment); err != nil {
			return fmt.Errorf("tensor %d of %d: %w", i, tensors, err)
		}
	}
	return f.place(h, alignment)
}

func (f *File) readKey(h *header) error {
	key := h.string(maxNameBytes)
	if h.err != nil {
		return fmt.Errorf("its name: %w", h.err)
	}
	if _, dup := f.values[key]; dup {
		return fmt.Errorf("%q is there twice", key)
	}
	value := h.value(valueType(h.uint32()), true)
	if h.err != nil {
		return fmt.Errorf("%q: %w", key, h.err)
	}
	f.values[key] = value
	return nil
}

// readTensor reads a description; Offset is from the beginning of the data.
func (f *File) readTensor(h *header, alignment int64) error {
	t := Tensor{Name: h.string(maxNameBytes)}
	dims := h.uint32()
	if h.err != nil {
		return fmt.Errorf("its name and number of dimensions: %w", h.err)
	}
	if _, dup := f.tensors[t.Name]; dup {
		return fmt.Errorf("%q is there twice", t.Name)
	}
	if dims < 1 || dims > maxDims {
		return fmt.Errorf("%q has %d dimensions: it must be from 1 to %d", t.Name, dims, maxDims)
	}
	for range dims {
		n := h.uint64()
		if h.err == nil && (n < 1 || n > math.MaxInt64) {
			return fmt.Errorf("%q has a dimension of %d", t.Name, n)
		}
		t.Shape = append(t.Shape, int64(n))
	}
	slices.Reverse(t.Shape)
	t.Type = Type(h.uint32())
	offset := h.uint64()
	if h.err != nil {
		return fmt.Errorf("%q: %w", t.Name, h.err)
	}
	if offset > math.MaxInt64/2 || int64(offset)%alignment != 0 {
		return fmt.Errorf("%q is at offset %d, needed is a multiple of %d", t.Name, offset, alignment)
	}
	var err error
	if t.Size, err = t.Type.size(t.Shape); err != nil {
		return fmt.Errorf("%q %w", t.Name, err)
	}
	t.Offset = int64(offset)
	f.tensors[t.Name] = t
	return nil
}

// place turns offsets into those from the beginning of the file, and sees to it that the tensors lie in it and do not overlap.
func (f *File) place(h *header, alignment int64) error {
	start := (h.at + alignment - 1) / alignment * alignment
	var list []Tensor
	for _, name := range f.Names() {
		t := f.tensors[name]
		// Neither sum overflows: offsets are at most half of the largest number, and so are sizes.
		t.Offset += start
		if t.Offset > h.size || t.Size > h.size-t.Offset {
			return fmt.Errorf("truncated: tensor %q is at bytes %d to %d, the file has %d", name, t.Offset, t.Offset+t.Size, h.size)
		}
		f.tensors[name] = t
		list = append(list, t)
	}
	slices.SortStableFunc(list, func(a, b Tensor) int { return cmp.Compare(a.Offset, b.Offset) })
	for i := 1; i < len(list); i++ {
		if a, b := list[i-1], list[i]; b.Offset < a.Offset+a.Size {
			return fmt.Errorf("tensors %q and %q overlap: bytes %d to %d", a.Name, b.Name, b.Offset, min(a.Offset+a.Size, b.Offset+b.Size))
		}
	}
	return nil
}
