package runtime

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/air"
	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft"
)

func TestSelfTest(t *testing.T) {
	for name, o := range map[string]soft.Options{
		"default":        {},
		"first families": {Families: soft.AppleFamilies(8), FirstFamilies: true, Order: soft.Reversed},
		"no indirect":    {NoIndirectCompute: true},
	} {
		t.Run(name, func(t *testing.T) {
			rt, err := Open(WithDevice(softDevice(t, o)))
			require.NoError(t, err)
			require.NoError(t, rt.SelfTest())
			require.Zero(t, rt.Stats().LiveAllocations)
			require.NoError(t, rt.Close())
			require.ErrorIs(t, rt.SelfTest(), ErrClosed)
		})
	}
}

// Every family of kernels, which is a file of shaders, has a known answer.
func TestSelfTestCoversTheLibrary(t *testing.T) {
	tested := map[string]bool{}
	for _, s := range selfTests {
		require.Contains(t, metallib.DefaultInfo().Kernels, s.kernel)
		tested[s.kernel] = true
	}
	files, err := filepath.Glob(filepath.Join(testenv.Root(t), "shaders", "*.metal"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	kernel := regexp.MustCompile(`kernel void (\w+)\(|host_name\("(\w+)"\)`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		covered := false
		for _, m := range kernel.FindAllStringSubmatch(string(text), -1) {
			covered = covered || tested[m[1]+m[2]]
		}
		require.True(t, covered, "no kernel of %s has a known answer in the self test", filepath.Base(file))
	}
}

// TestSelfTestFindsWrongAnswers shows that no known answer holds without the kernel.
func TestSelfTestFindsWrongAnswers(t *testing.T) {
	rt, err := Open(WithDevice(softDevice(t, soft.Options{})))
	require.NoError(t, err)
	for i := range selfTests {
		spoilt := selfTests[i]
		build := spoilt.build
		spoilt.build = func(m *selfMemory) (Size, Size) {
			groups, threads := build(m)
			m.binds = nil // nothing is bound
			return groups, threads
		}
		ran, err := rt.selfTest(&spoilt)
		require.True(t, ran)
		require.ErrorIs(t, err, ErrKernel)

		m := &selfMemory{rt: rt}
		selfTests[i].build(m)
		require.NoError(t, m.err)
		require.ErrorContains(t, m.check("before"), "not", "%s: the output differs before the kernel has run", selfTests[i].kernel)
		m.release()
	}
	require.NoError(t, rt.Close())

	user, _ := softRuntime(t, soft.Options{})
	require.ErrorIs(t, user.SelfTest(), ErrKernel, "the library has none of the kernels")
}

// launches are those of all kernels of the embedded library, whose function constants are zeros.
func launches(t *testing.T) map[string]*Launch {
	t.Helper()
	lib, err := metallib.Read(metallib.Default())
	require.NoError(t, err)
	all := map[string]*Launch{}
	for _, f := range lib.Functions {
		l := &Launch{name: f.Name}
		m, err := air.Read(f.Bitcode)
		require.NoError(t, err)
		constants, err := m.FunctionConstants()
		require.NoError(t, err)
		for _, c := range constants {
			kind, ok := map[string]constantKind{"bool": constantBool, "uint": constantUint32, "int": constantInt32, "float": constantFloat32}[c.TypeName]
			require.True(t, ok, "%s: function constant %s of type %s", f.Name, c.Name, c.TypeName)
			l.constant(c.Index, kind, 0)
		}
		require.Nil(t, l.err)
		all[f.Name] = l
	}
	require.Len(t, all, len(metallib.DefaultInfo().Kernels))
	return all
}

// A device without simdgroup matrices runs what needs none.
func TestSelfTestLeavesOut(t *testing.T) {
	mac := []mtl.GPUFamily{mtl.GPUFamilyMac2, mtl.GPUFamilyCommon1, mtl.GPUFamilyCommon2, mtl.GPUFamilyCommon3}
	for name, c := range map[string]struct {
		o    soft.Options
		none []string
	}{
		"Mac2": {soft.Options{Families: mac}, []string{"qmm_affine_b8_t64", "qmm_affine_t_f32_simd4",
			"qmm_affine_t_packed_simd4_b4_gs64_bf16", "gemm_dense_f32_t32", "gemm_dense_f16_t64", "gemm_dense_bf16_t32", "gemm_weights_q8_0_t32",
			"flash_attn_prefill_precise_d64_v16", "flash_attn_prefill_precise_d512_v16"}},
		"Apple9": {soft.Options{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			rt, err := Open(WithDevice(softDevice(t, c.o)))
			require.NoError(t, err)
			require.NoError(t, rt.SelfTest())
			var none []string
			for i := range selfTests {
				if rt.KernelOrigin(selfTests[i].kernel) == OriginNone {
					none = append(none, selfTests[i].kernel)
				}
			}
			require.Equal(t, c.none, none)
			require.NoError(t, rt.Close())
		})
	}
}

// TestReflectionFromFile compares what the device says of each kernel with what the library's file says.
func TestReflectionFromFile(t *testing.T) {
	rt, err := Open(WithDevice(softDevice(t, soft.Options{})))
	require.NoError(t, err)
	for name, l := range launches(t) {
		pl, err := rt.pipeline(l)
		require.NoError(t, err)
		fromFile, err := rt.libs.primary.file.reflect(name, pl.state)
		require.NoError(t, err)
		require.Equal(t, pl.info, fromFile, name)
	}
	_, err = rt.libs.primary.file.reflect("nothing", (*rt.pipes.byName.Load())["decode_advance"].find(nil).state)
	require.ErrorIs(t, err, ErrKernel)
	require.NoError(t, rt.Close())
}
