package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingot-metal/ingot/internal/traceformat"
)

// The trace of a story is a valid file of the Trace Event Format: every token's step on the device, with all its kernels in
// their layers, and what the host did.
func TestTrace(t *testing.T) {
	const n = 3
	file := filepath.Join(t.TempDir(), "trace.json")
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"-n", "3", "-trace", file}, &out, &errs); code != 0 {
		t.Fatalf("code %d\n%s", code, errs.String())
	}
	for _, part := range []string{"time in kernels, each run alone:", "3 written"} {
		if !strings.Contains(errs.String(), part) {
			t.Errorf("%q is missing in\n%s", part, errs.String())
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := traceformat.Check(data)
	if err != nil {
		t.Fatal(err)
	}
	kernels := map[any]int{} // by submission
	for _, e := range f.Lane("device", "kernels") {
		kernels[e.Args["submission"]]++
	}
	layers := map[any]int{}
	for _, e := range f.Lane("device", "groups") {
		layers[e.Args["submission"]]++
	}
	steps := 0
	for _, e := range f.Lane("device", "passes") {
		if e.Phase != "X" {
			continue
		}
		if e.Name == "decode step" {
			steps++
			if l := layers[e.Args["submission"]]; l != 6 {
				t.Errorf("a step of %d layers", l)
			}
		}
		if k := kernels[e.Args["submission"]]; k == 0 || float64(k) != e.Args["dispatches"] {
			t.Errorf("%s: %d kernels of %v", e.Name, k, e.Args["dispatches"])
		}
	}
	if steps < n-1 {
		t.Errorf("%d steps", steps)
	}
	for _, lane := range []string{"encode", "commit", "copy", "wait"} {
		if len(f.Lane("host", lane)) == 0 {
			t.Errorf("nothing on the host's lane %q", lane)
		}
	}
}
