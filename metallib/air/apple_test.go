package air_test

import (
	"hash/crc32"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/air"
	"github.com/ingot-metal/ingot/metallib/internal/appletest"
)

// ownCounts counts functions, blocks and instructions by opcode in a module.
func ownCounts(m *air.Module) map[string]int {
	counts := map[string]int{}
	for _, f := range m.Functions {
		if f.Declaration() {
			counts["(declarations)"]++
			continue
		}
		counts["(functions)"]++
		for _, b := range f.Blocks {
			counts["(blocks)"]++
			for _, in := range b.Instrs {
				counts[in.Op.String()]++
			}
		}
	}
	return counts
}

// TestAppleModules reads every module of Apple's compiler in published libraries from AIR 1.8 to 2.6, compares what it finds with what LLVM
// finds, writes it, and compares LLVM's text of what was written with that of the original: they must be equal.
func TestAppleModules(t *testing.T) {
	for _, lib := range []struct {
		name string
		get  func(t *testing.T) []metallib.Function
	}{
		{"llama", func(t *testing.T) []metallib.Function { return functions(t, appletest.Llama(t)) }},
		{"whisper", func(t *testing.T) []metallib.Function { return functions(t, appletest.Whisper(t)) }},
		{"gio", func(t *testing.T) []metallib.Function { return functions(t, appletest.Gio(t)...) }},
	} {
		t.Run(lib.name, func(t *testing.T) {
			fs := lib.get(t)
			if testing.Short() {
				fs = slices.DeleteFunc(fs, func(f metallib.Function) bool { return crc32.ChecksumIEEE(f.Bitcode)%10 != 0 })
			}
			var originals, written [][]byte
			var modules []*air.Module
			for _, f := range fs {
				m, err := air.Read(f.Bitcode)
				require.NoError(t, err, f.Name)
				require.Empty(t, m.Skipped, f.Name)
				require.NoError(t, air.Verify(m), f.Name)
				code, err := air.Write(m)
				require.NoError(t, err, f.Name)
				same, err := air.Write(m)
				require.NoError(t, err)
				require.Equal(t, code, same, "%s: writing is not deterministic", f.Name)
				originals, written, modules = append(originals, f.Bitcode), append(written, code), append(modules, m)
			}
			want, got := disassembleAll(t, originals, "llvm-dis-14"), disassembleAll(t, written, "llvm-dis-14")
			opaque := disassembleAll(t, originals, "llvm-dis-19")
			for i, f := range fs {
				require.Equal(t, want[i], got[i], f.Name)
				require.Equal(t, countOps(want[i]), ownCounts(modules[i]), f.Name)
				// LLVM's newer reader changes nothing that changes the counts of these modules.
				require.Equal(t, ownCounts(modules[i]), withoutBitcasts(countOps(opaque[i]), modules[i]), f.Name)
				if i%10 == 0 {
					text := disassemble(t, assemble(t, modules[i].String(), "llvm-as-14"), "llvm-dis-14")
					require.Equal(t, want[i], normalise(text), f.Name)
				}
			}
		})
	}
}

// withoutBitcasts makes counts of a module with opaque pointers comparable with those of the typed module: casts between
// pointers exist in the latter only.
func withoutBitcasts(counts map[string]int, m *air.Module) map[string]int {
	counts["bitcast"] = ownCounts(m)["bitcast"]
	if counts["bitcast"] == 0 {
		delete(counts, "bitcast")
	}
	return counts
}
