package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingot-metal/ingot/runtime"
)

// numbersOnly skips, under the race detector, a test that compares what a device computes for one goroutine: it takes ten times as long
// there and shows nothing more. It runs without. What the detector is for, several goroutines in loading, mapped files, texts at once,
// traces and interrupted stories, runs in both.
func numbersOnly(t testing.TB) {
	t.Helper()
	if raceEnabled {
		t.Skip("compares numbers: runs without the race detector")
	}
}

// golden is what Hugging Face's implementation computed in float64 on a model's very weights.
type golden struct {
	Cases []goldenCase
}

type goldenCase struct {
	Prompt      string
	PromptIDs   []uint32 `json:"prompt_ids"`
	Generated   []uint32
	Margins     []float64
	FirstLogits []float64 `json:"first_logits"`
}

// all is the whole text: prompt and continuation.
func (c goldenCase) all() []uint32 { return slices.Concat(c.PromptIDs, c.Generated) }

func readGolden(t testing.TB, dir fs.FS) golden {
	t.Helper()
	data, err := fs.ReadFile(dir, goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	if len(g.Cases) == 0 {
		t.Fatal("no cases")
	}
	return g
}

// one are the settings of a single text.
func one(longest, n int) settings { return settings{sequences: 1, longest: longest, n: n} }

// openRuntimeFor opens the best device until the test ends.
func openRuntimeFor(t testing.TB, opts ...runtime.Option) *runtime.Runtime {
	t.Helper()
	rt, err := runtime.Open(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	})
	return rt
}

// open opens a model, the embedded one if path is empty, on the best device.
func open(t testing.TB, path string, s settings) (*source, *model) {
	t.Helper()
	return openOn(t, openRuntimeFor(t), path, s)
}

func openOn(t testing.TB, rt *runtime.Runtime, path string, s settings) (*source, *model) {
	t.Helper()
	src, err := openSource(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := newModel(rt, src.Config, src, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(m.release(), src.Close()); err != nil {
			t.Error(err)
		}
	})
	return src, m
}

func nothing(int, uint32) error { return nil }

// story lets a model that is prepared for one text continue a prompt.
func story(ctx context.Context, m *model, prompt []uint32, w way) (text, error) {
	r, err := m.generate(ctx, [][]uint32{prompt}, w, sampling{}.samplers(m), nothing)
	if len(r.texts) == 0 {
		return text{}, err
	}
	return r.texts[0], err
}

// readLogits are the logits of the last step, as they are before the softcap.
func readLogits(t *testing.T, m *model) []float32 {
	t.Helper()
	raw := make([]float32, m.logits.Len())
	if err := m.logits.Read(raw); err != nil {
		t.Fatal(err)
	}
	return raw
}

// capped are logits as golden files have them.
func capped(m *model, raw []float32) []float64 {
	out := make([]float64, len(raw))
	for i, v := range raw {
		out[i] = float64(v)
		if m.config.Softcap > 0 {
			out[i] = m.config.Softcap * math.Tanh(float64(v)/m.config.Softcap)
		}
	}
	return out
}

// copyModel copies the embedded model to a folder of the test's own.
func copyModel(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(embeddedModel)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func edit(t *testing.T, dir, name string, change func([]byte) []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, change(data), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func replace(old, new string) func([]byte) []byte {
	return func(data []byte) []byte { return []byte(strings.Replace(string(data), old, new, 1)) }
}
