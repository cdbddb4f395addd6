package main

import (
	"io"
	"reflect"
	"testing"
)

// Names of files in a model's folder.
const (
	configFile     = "config.json"
	tokenizerModel = "tokenizer.model"
)

func TestParseFlags(t *testing.T) {
	o, err := parseFlags([]string{"-model", "m", "-prompt", "p", "-prompt", "q", "-n", "7", "-rows", "2", "-direct", "-device", "d", "-stats",
		"-temperature", "0.5", "-top-k", "40", "-top-p", "0.9", "-seed", "3"}, io.Discard)
	want := options{model: "m", prompts: []string{"p", "q"}, n: 7, rows: 2, sampling: sampling{0.5, 40, 0.9, 3}, direct: true, device: "d", stats: true}
	if err != nil || !reflect.DeepEqual(o, want) {
		t.Errorf("%+v %v", o, err)
	}
	o, err = parseFlags(nil, io.Discard)
	if want := (options{n: 150, sampling: sampling{topP: 1, seed: 1}}); err != nil || !reflect.DeepEqual(o, want) || !o.greedy() {
		t.Errorf("%+v %v", o, err)
	}
}
