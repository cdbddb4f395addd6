package gguf

import (
	"fmt"
	"maps"
	"slices"
)

// Keys are the keys of the metadata, in order.
func (f *File) Keys() []string { return slices.Sorted(maps.Keys(f.values)) }

// Int is an integer of the metadata, and whether it is there. A value of another kind is an error, here and below.
func (f *File) Int(key string) (int64, bool, error) { return get[int64](f, key, "an integer") }

// Float is a number of the metadata.
func (f *File) Float(key string) (float64, bool, error) {
	return get[float64](f, key, "a floating point number")
}

// Bool is a truth value of the metadata.
func (f *File) Bool(key string) (bool, bool, error) { return get[bool](f, key, "a truth value") }

// String is a text of the metadata.
func (f *File) String(key string) (string, bool, error) { return get[string](f, key, "a string") }

// Ints is an array of integers of the metadata. Like those of the other arrays it must not be changed.
func (f *File) Ints(key string) ([]int64, bool, error) {
	return get[[]int64](f, key, "an array of integers")
}

// Floats is an array of numbers of the metadata.
func (f *File) Floats(key string) ([]float64, bool, error) {
	return get[[]float64](f, key, "an array of floating point numbers")
}

// Strings is an array of texts of the metadata.
func (f *File) Strings(key string) ([]string, bool, error) {
	return get[[]string](f, key, "an array of strings")
}

// Bools is an array of truth values of the metadata.
func (f *File) Bools(key string) ([]bool, bool, error) {
	return get[[]bool](f, key, "an array of truth values")
}

func get[T any](f *File, key, kind string) (v T, ok bool, err error) {
	value, ok := f.values[key]
	if !ok {
		return v, false, nil
	}
	if v, ok = value.(T); !ok {
		return v, false, fmt.Errorf("%s: %s is %s, needed is %s", f.name, key, describe(value), kind)
	}
	return v, true, nil
}

func describe(value any) string {
	switch v := value.(type) {
	case string:
		return fmt.Sprintf("%.40q", v)
	case []int64:
		return "an array of integers"
	case []float64:
		return "an array of floating point numbers"
	case []bool:
		return "an array of truth values"
	case []string:
		return "an array of strings"
	}
	return fmt.Sprint(value)
}
