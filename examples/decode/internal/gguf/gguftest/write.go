// Package gguftest writes GGUF files for tests, broken ones too: what it is given is not checked.
package gguftest

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// File is a file to be. Its fields are written as they are.
type File struct {
	Magic   string // "GGUF" if empty
	Version uint32 // 3 if 0
	Keys    []Key
	Tensors []Tensor

	Alignment int // of the data; 32 if 0. The key general.alignment is not written for it.

	TensorCount, KeyCount *uint64 // other counts than there are
}

// Key is a key with its value: a bool, string, int8 … uint64, float32, float64, or a slice of one of them.
type Key struct {
	Name  string
	Value any
}

// Tensor is a tensor with its bytes.
type Tensor struct {
	Name   string
	Type   uint32
	Dims   []uint64 // fastest first, as in the file
	Data   []byte
	Offset *uint64 // another one than follows from the tensors before it
}

// Set replaces a key's value, or adds the key.
func (f *File) Set(name string, value any) {
	for i := range f.Keys {
		if f.Keys[i].Name == name {
			f.Keys[i].Value = value
			return
		}
	}
	f.Keys = append(f.Keys, Key{name, value})
}

// Remove takes a key away.
func (f *File) Remove(name string) {
	for i := range f.Keys {
		if f.Keys[i].Name == name {
			f.Keys = append(f.Keys[:i:i], f.Keys[i+1:]...)
			return
		}
	}
}

// Tensor is the tensor of a name, nil if there is none.
func (f *File) Tensor(name string) *Tensor {
	for i := range f.Tensors {
		if f.Tensors[i].Name == name {
			return &f.Tensors[i]
		}
	}
	return nil
}

// RemoveTensor takes a tensor away.
func (f *File) RemoveTensor(name string) {
	for i := range f.Tensors {
		if f.Tensors[i].Name == name {
			f.Tensors = append(f.Tensors[:i:i], f.Tensors[i+1:]...)
			return
		}
	}
}

// Bytes is the file.
func (f *File) Bytes() []byte {
	data, _ := f.Marked()
	return data
}

// Marked is the file, and where each of its fields begins.
func (f *File) Marked() (data []byte, marks []int) {
	w := &writer{}
	magic, version, alignment := f.Magic, f.Version, f.Alignment
	if magic == "" {
		magic = "GGUF"
	}
	if version == 0 {
		version = 3
	}
	if alignment == 0 {
		alignment = 32
	}
	w.Write([]byte(magic))
	w.put(version)
	w.put(count(f.TensorCount, len(f.Tensors)))
	w.put(count(f.KeyCount, len(f.Keys)))
	for _, k := range f.Keys {
		w.string(k.Name)
		w.put(typeOf(k.Value))
		w.value(k.Value)
	}
	offset := uint64(0)
	for _, t := range f.Tensors {
		w.string(t.Name)
		w.put(uint32(len(t.Dims)))
		w.put(t.Dims)
		w.put(t.Type)
		if t.Offset != nil {
			w.put(*t.Offset)
		} else {
			w.put(offset)
		}
		offset += uint64((len(t.Data) + alignment - 1) / alignment * alignment)
	}
	for _, t := range f.Tensors {
		w.mark()
		w.Write(make([]byte, -w.Len()&(alignment-1)))
		w.mark()
		w.Write(t.Data)
	}
	return w.Bytes(), w.marks
}

func count(given *uint64, have int) uint64 {
	if given != nil {
		return *given
	}
	return uint64(have)
}

type writer struct {
	bytes.Buffer
	marks []int
}

func (w *writer) mark() { w.marks = append(w.marks, w.Len()) }

func (w *writer) put(v any) {
	w.mark()
	if err := binary.Write(w, binary.LittleEndian, v); err != nil {
		panic(err)
	}
}

func (w *writer) string(s string) {
	w.put(uint64(len(s)))
	w.mark()
	w.WriteString(s)
}

// Nested is an array of arrays, which files can hold.
type Nested [][]int32

// Raw is a value of any type, known or not.
type Raw struct {
	Type uint32
	Data []byte
}

func typeOf(v any) uint32 {
	switch v := v.(type) {
	case uint8:
		return 0
	case int8:
		return 1
	case uint16:
		return 2
	case int16:
		return 3
	case uint32:
		return 4
	case int32:
		return 5
	case float32:
		return 6
	case bool:
		return 7
	case string:
		return 8
	case uint64:
		return 10
	case int64:
		return 11
	case float64:
		return 12
	case Raw:
		return v.Type
	}
	return 9
}

func (w *writer) value(v any) {
	switch v := v.(type) {
	case string:
		w.string(v)
	case []string:
		w.put(uint32(8))
		w.put(uint64(len(v)))
		for _, s := range v {
			w.string(s)
		}
	case []uint8:
		array(w, v)
	case []int32:
		array(w, v)
	case []uint32:
		array(w, v)
	case []float32:
		array(w, v)
	case []float64:
		array(w, v)
	case []int64:
		array(w, v)
	case []bool:
		array(w, v)
	case Nested:
		w.put(uint32(9))
		w.put(uint64(len(v)))
		for _, inner := range v {
			array(w, inner)
		}
	case Raw:
		w.mark()
		w.Write(v.Data)
	case uint8, int8, uint16, int16, uint32, int32, float32, bool, uint64, int64, float64:
		w.put(v)
	default:
		panic(fmt.Sprintf("gguftest: a value of type %T", v))
	}
}

func array[T any](w *writer, v []T) {
	var zero T
	w.put(typeOf(zero))
	w.put(uint64(len(v)))
	w.put(v)
}
