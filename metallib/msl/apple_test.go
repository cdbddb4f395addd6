package msl

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/air"
)

// The llama.rn package publishes kernels both as source and as Apple's compiler compiled them.
const (
	llamaPackage = "llama.rn@0.3.11"
	llamaSum     = "e0cec81b87fa4889d9fc81049bae66761787d0ee939ef3e42b6985288ced0e88"
)

// The same MSL compiled by Apple and by us has the same arguments and metadata.
func TestAgainstApple(t *testing.T) {
	requireTools(t)
	file := func(name string) []byte { return testenv.NPM(t, llamaPackage, llamaSum, "package/cpp/"+name) }
	apple, err := metallib.Read(file("ggml-llama.metallib"))
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ggml-common.h"), file("ggml-common.h"), 0o644))
	// What was published as source is a little older than what was compiled: the arguments src1 of get_rows and the
	// pointers of cpy have changed their type since, so that those are compared without their types.
	kernels := []string{"kernel_norm", "kernel_rms_norm", "kernel_soft_max_f32", "kernel_soft_max_f16_4", "kernel_cpy_f32_f16", "kernel_get_rows_q4_0",
		"kernel_mul_mv_q4_0_f32", "kernel_mul_mv_f16_f32_l4", "kernel_mul_mm_q4_0_f32", "kernel_argsort_f32_i32_desc", "kernel_flash_attn_ext_f16_h64"}
	retyped := map[string]bool{"kernel_cpy_f32_f16/src0": true, "kernel_cpy_f32_f16/dst": true, "kernel_get_rows_q4_0/src1": true}
	ours := compileSome(t, string(file("ggml-metal.metal")), Options{
		Name: "ggml-metal.metal", Include: []string{dir}, Defines: []string{"LM_GGML_COMMON_DECL_METAL", "LM_GGML_COMMON_IMPL_METAL"},
	}, kernels)
	for _, name := range kernels {
		t.Run(name, func(t *testing.T) {
			theirs, mine := kernelOf(t, apple, name), kernelOf(t, ours, name)
			require.Len(t, mine.Args, len(theirs.Args))
			for i := range mine.Args {
				a, b := theirs.Args[i], mine.Args[i]
				if retyped[name+"/"+a.Name] {
					a.TypeName, a.Size, a.Align, a.Writable = b.TypeName, b.Size, b.Align, b.Writable
				}
				require.Equal(t, a, b)
			}
			require.Equal(t, theirs.MaxThreads, mine.MaxThreads)
			require.Equal(t, theirs.ThreadgroupBytes, mine.ThreadgroupBytes)
			requireMetal(t, ours.Function(name))
			requireSameFlags(t, apple.Function(name), ours.Function(name))
		})
	}
}

// requireSameFlags compares the module flags and named metadata that do not depend on the producer or the system.
func requireSameFlags(t *testing.T, a, b *metallib.Function) {
	t.Helper()
	flags := func(f *metallib.Function) map[string]uint64 {
		m, err := f.Module()
		require.NoError(t, err)
		out := map[string]uint64{}
		for _, op := range m.Named("llvm.module.flags").Ops {
			n := op.(*air.MDNode)
			if c, ok := n.Ops[2].(*air.MDValue).V.(*air.Const); ok && c.Kind == air.IntConst {
				out[n.Ops[1].(*air.MDString).S] = c.Bits
			}
		}
		return out
	}
	require.Equal(t, flags(a), flags(b))
}

// compileSome compiles a source and lowers only some of its kernels, which saves most of the time for large sources.
func compileSome(t *testing.T, source string, opts Options, names []string) *metallib.Library {
	t.Helper()
	c, err := newCompiler(opts)
	require.NoError(t, err)
	defer c.close()
	text, r, err := c.frontEnd(t.Context(), source)
	require.NoError(t, err)
	ir, err := parseIR(text)
	require.NoError(t, err)
	u, err := newUnit(ir, r)
	require.NoError(t, err)
	u.kernels = slices.DeleteFunc(u.kernels, func(k *kernelInfo) bool { return !slices.Contains(names, k.name) })
	require.Len(t, u.kernels, len(names))
	bitcode, err := c.optimise(t.Context(), u, text)
	require.NoError(t, err)
	lib := &metallib.Library{}
	lib.Functions, err = c.kernels(t.Context(), bitcode, u)
	require.NoError(t, err)
	return lib
}
