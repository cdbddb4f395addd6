package mtl

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/ingot-metal/ingot/mtl/internal/gen"
)

// TestGeneratedFilesAreCurrent makes the generated files again and compares.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	spec, err := gen.Load()
	if err != nil {
		t.Fatal(err)
	}
	files, err := gen.Generate(spec)
	if err != nil {
		t.Fatal(err)
	}
	have, err := filepath.Glob("zz_*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range have {
		if files[name] == nil {
			t.Errorf("%s is not generated any more: run go generate", name)
		}
	}
	for name, want := range files {
		got, err := os.ReadFile(name)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is out of date: run go generate (%v)", name, err)
		}
	}
}
