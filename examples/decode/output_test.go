package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
)

// full is an output that takes some writes and then no more.
type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	if f.room--; f.room < 0 {
		return 0, errors.New("no space left")
	}
	return len(p), nil
}

// What cannot be written is an error, of one line that says so once.
func TestOutputFails(t *testing.T) {
	for _, args := range [][]string{
		{"-n", "2"},
		{"-n", "1", "-rows", "2"},
		{"-n", "1", "-check", "-prompt", "a"},
		{"-device", "list"},
	} {
		for room := range 2 {
			if room > 0 && args[0] == "-device" {
				continue // it takes one write
			}
			var errs bytes.Buffer
			code := run(context.Background(), args, &full{room}, &errs)
			_, last, _ := strings.Cut(errs.String(), "decode: ")
			if code != 1 || last != "no space left\n" {
				t.Errorf("%q, %d writes: code %d, %q", args, room, code, last)
			}
		}
	}
}

func TestCounted(t *testing.T) {
	for n, want := range []string{"0 tokens", "1 token", "2 tokens"} {
		if got := counted(n, "token"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
