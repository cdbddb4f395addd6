package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
)

// shifted is a copy of a model's folder in which all tensors begin two bytes further on in their file: where no kernel reads them.
func shifted(t *testing.T, from string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "model.safetensors")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := binary.LittleEndian.Uint64(data)
	out := binary.LittleEndian.AppendUint64(nil, n+2)
	out = slices.Concat(out, data[8:8+n], []byte("  "), data[8+n:]) // a header may end with spaces
	if err := errorOf(os.Chmod(path, 0o600), os.WriteFile(path, out, 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func errorOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Weights that the device reads in their mapped files give the tokens that copies give, and so do those that cannot stay there:
// where a tensor begins at the wrong place, or a file is longer than the device's buffers.
func TestMapped(t *testing.T) {
	folder := filepath.Dir(testenv.Shared(t, "data/tiny-gemma3/config.json"))
	gguf := testenv.Shared(t, "data/stories260k/stories260K.gguf")
	short := soft.New(soft.Options{MaxBufferLength: 1 << 20})
	defer short.Release()
	for _, stored := range []struct {
		name, path string
		others     map[string]string
	}{
		{"bf16", folder, map[string]string{"shifted": shifted(t, folder)}},
		{"gguf", gguf, nil},
	} {
		t.Run(stored.name, func(t *testing.T) {
			s := one(5, 6)
			if testing.Short() {
				s = one(5, 2)
			}
			write := func(rt *runtime.Runtime, path string, s settings) (*model, []uint32) {
				src, m := openOn(t, rt, path, s)
				r, err := story(context.Background(), m, src.encode("Once upon a time"), replayed)
				if err != nil {
					t.Fatal(err)
				}
				return m, r.tokens
			}
			m, want := write(openRuntimeFor(t), stored.path, s)
			if m.weights.copied != 0 || m.weights.inPlace == 0 {
				t.Errorf("%d bytes in place, %d copied", m.weights.inPlace, m.weights.copied)
			}
			all := m.weights.inPlace
			check := func(what string, m *model, got []uint32) {
				t.Helper()
				if m.weights.inPlace != 0 || m.weights.copied != all {
					t.Errorf("%s: %d bytes in place, %d copied, want %d", what, m.weights.inPlace, m.weights.copied, all)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s: tokens %v, want %v", what, got, want)
				}
			}
			copied := s
			copied.unmapped = true
			m, got := write(openRuntimeFor(t), stored.path, copied)
			check("copied", m, got)
			m, got = write(openRuntimeFor(t, runtime.WithDevice(short)), stored.path, s)
			check("short buffers", m, got)
			for what, path := range stored.others {
				m, got = write(openRuntimeFor(t), path, s)
				check(what, m, got)
			}
		})
	}
}

// What the program says of weights.
func TestWhere(t *testing.T) {
	if w := (&weights{copied: 1_500_000}); w.where() != "1.5 MB, copied" {
		t.Error(w.where())
	}
	if w := (&weights{inPlace: 3e6, copied: 1e6}); w.where() != "4.0 MB, 3.0 MB of it in mapped files" {
		t.Error(w.where())
	}
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"-n", "1"}, &out, &errs); code != 0 || !strings.Contains(errs.String(), "weights: 0.7 MB, copied") {
		t.Errorf("code %d, %s", code, errs.String())
	}
}

// Whoever is told how much was loaded may stop it.
func TestLoadStops(t *testing.T) {
	rt := openRuntimeFor(t)
	s, calls, stop := one(2, 2), 0, errors.New("stop")
	s.loaded = func(int64) error {
		if calls++; calls == 3 {
			return stop
		}
		return nil
	}
	if _, err := newModel(rt, llama(), newFake(t, llama(), all(plain(nn.WeightF32))), s); !errors.Is(err, stop) || calls != 3 {
		t.Errorf("%v after %d matrices", err, calls)
	}
	if n := rt.MemStats().Live; n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}

// A matrix that the products cannot take is refused by name when the model is loaded.
func TestLoadRefuses(t *testing.T) {
	rt := openRuntimeFor(t)
	c := llama()
	c.FFN = 98
	f := newFake(t, c, all(plain(1)))
	if _, err := newModel(rt, c, f, one(2, 2)); err == nil || !strings.Contains(err.Error(), "98 columns: the products need a multiple of 4") {
		t.Error(err)
	}
	if n := rt.MemStats().Live; n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}
