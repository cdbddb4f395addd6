package simt

import (
	"testing"

	"github.com/stretchr/testify/require"

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

// TestSmokeApple launches every kernel of that library with buffers of small numbers. Most run into the end of something;
// none may end in anything but success or a proper fault. Some run with checks, and find that such data makes threads race.
func TestSmokeApple(t *testing.T) {
	lib, err := metallib.Read(testenv.NPM(t, llamaPackage, llamaSum, "package/cpp/ggml-llama.metallib"))
	require.NoError(t, err)
	kinds := map[string]int{}
	for n, f := range lib.Functions {
		if testing.Short() && n%5 != 0 {
			continue
		}
		m, err := air.Read(f.Bitcode)
		require.NoError(t, err)
		p, err := Compile(m, f.Name, Options{Checks: n%3 == 0, Counts: n%2 == 0})
		require.NoError(t, err)
		for _, fill := range []byte{0, 1, 0x20} {
			d := &Dispatch{Groups: [3]uint32{3, 2, 1}, Threads: [3]uint32{32, 4, 1}, Steps: 1 << 16}
			for i := range d.Buffers {
				d.Buffers[i].Mem = make([]byte, 1<<12)
				for k := 0; k < 1<<12; k += 8 {
					d.Buffers[i].Mem[k] = fill
				}
			}
			d.ThreadgroupMemory[0] = 8192
			kind := "success"
			if err := p.Run(d, 1); err != nil { // such data makes threadgroups race
				fault := faultOf(t, err)
				kind = fault.Kind
				require.NotEqual(t, FaultInternal, kind, "%s: %v", f.Name, err)
				require.NotEmpty(t, fault.Instruction, "%s: %v", f.Name, err)
			}
			kinds[kind]++
		}
	}
	t.Log(kinds)
}
