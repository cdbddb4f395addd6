package simt

import (
	"testing"

	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/air"
)

const (
	llamaPackage = "llama.rn@0.3.11"
	llamaSum     = "e0cec81b87fa4889d9fc81049bae66761787d0ee939ef3e42b6985288ced0e88"
)

// TestCompileApple compiles every kernel of a library that Apple's compiler made.
func TestCompileApple(t *testing.T) {
	lib, err := metallib.Read(testenv.NPM(t, llamaPackage, llamaSum, "package/cpp/ggml-llama.metallib"))
	if err != nil {
		t.Fatal(err)
	}
	n, ops := 0, 0
	for _, f := range lib.Functions {
		m, err := air.Read(f.Bitcode)
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		p, err := Compile(m, f.Name, Options{})
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		n++
		ops += len(p.code)
	}
	t.Logf("%d of %d kernels compile, to %d instructions", n, len(lib.Functions), ops)
}
