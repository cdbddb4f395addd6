package runtime

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/metallib"
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

func TestSelfTestCoversTheLibrary(t *testing.T) {
	var names []string
	for _, s := range selfTests {
		names = append(names, s.kernel)
	}
	slices.Sort(names)
	require.Equal(t, metallib.DefaultInfo().Kernels, names)
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
		require.ErrorIs(t, rt.selfTest(&spoilt), ErrKernel)

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

// TestReflectionFromFile compares what the device says of each kernel with what the library's file says.
func TestReflectionFromFile(t *testing.T) {
	rt, err := Open(WithDevice(softDevice(t, soft.Options{})))
	require.NoError(t, err)
	for _, name := range metallib.DefaultInfo().Kernels {
		pl, err := rt.pipeline(&Launch{name: name})
		require.NoError(t, err)
		fromFile, err := rt.reflectFile(name, pl.state)
		require.NoError(t, err)
		require.Equal(t, pl.info, fromFile, name)
	}
	_, err = rt.reflectFile("nothing", (*rt.pipes.byName.Load())["decode_advance"].find(nil).state)
	require.ErrorIs(t, err, ErrKernel)
	require.NoError(t, rt.Close())
}
