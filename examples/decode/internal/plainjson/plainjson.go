// Package plainjson reads JSON and says what is wrong with it in the file's words, without Go's types.
package plainjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Unmarshal is json.Unmarshal. A value of another type than v has is "FIELD is a string: it must be a whole number".
func Unmarshal(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	what := wrong.Field
	if what == "" {
		what = "it"
	}
	return fmt.Errorf("%s is %s: it must be %s", what, found(wrong.Value), needed(wrong.Type))
}

// found is what package json calls a value: a type or, for some numbers, "number" and the number.
func found(value string) string {
	switch number, ok := strings.CutPrefix(value, "number "); {
	case ok:
		return number
	case value == "array":
		return "a list"
	case value == "object":
		return "an object"
	case value == "bool":
		return "true or false"
	}
	return "a " + value
}

func needed(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return needed(t.Elem())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("a whole number of %d bits", t.Bits())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("a whole number from 0 on, of %d bits", t.Bits())
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	}
	return "an object"
}
