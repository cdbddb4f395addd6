package plainjson

import (
	"strings"
	"testing"
)

func TestUnmarshal(t *testing.T) {
	type part struct {
		Scale float32 `json:"scale"`
	}
	type config struct {
		Size   int64           `json:"size"`
		Count  uint32          `json:"count"`
		Limit  *int8           `json:"limit"`
		Name   string          `json:"name"`
		Tied   bool            `json:"tied"`
		Layers []string        `json:"layers"`
		Part   part            `json:"part"`
		Parts  map[string]part `json:"parts"`
	}
	for text, want := range map[string]string{
		`{"size": "x"}`:                  "size is a string: it must be a whole number of 64 bits",
		`{"size": 0.5}`:                  "size is 0.5: it must be a whole number of 64 bits",
		`{"size": 18446744073709551616}`: "size is 18446744073709551616: it must be a whole number of 64 bits",
		`{"count": -1}`:                  "count is -1: it must be a whole number from 0 on, of 32 bits",
		`{"limit": true}`:                "limit is true or false: it must be a whole number of 8 bits",
		`{"name": 3}`:                    "name is a number: it must be a string",
		`{"tied": {}}`:                   "tied is an object: it must be true or false",
		`{"layers": "all"}`:              "layers is a string: it must be a list",
		`{"layers": [1]}`:                "layers is a number: it must be a string",
		`{"part": [1]}`:                  "part is a list: it must be an object",
		`{"part": {"scale": "x"}}`:       "part.scale is a string: it must be a number",
		`{"parts": 3}`:                   "parts is a number: it must be an object",
		`[]`:                             "it is a list: it must be an object",
		`{"size": 3`:                     "unexpected end of JSON input",
		``:                               "unexpected end of JSON input",
		`{"size": 3, "limit": null}`:     "",
	} {
		var c config
		err := Unmarshal([]byte(text), &c)
		if got := message(err); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		if err == nil && c.Size != 3 {
			t.Errorf("%s: %+v", text, c)
		}
	}
	var any any
	if err := Unmarshal([]byte(strings.Repeat("[", 20000)), &any); err == nil {
		t.Error("deep lists are no error")
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
