package runtime

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl/soft"
)

func TestPrewarm(t *testing.T) {
	rt, dev := softRuntime(t, soft.Options{})
	require.NoError(t, rt.Prewarm(t.Context()))
	require.NoError(t, rt.Prewarm(t.Context(), "fill", "copy", "add", "fill", "add"))
	require.EqualValues(t, 3, rt.Stats().Pipelines, "each once")
	const make = "newComputePipelineStateWithDescriptor:options:reflection:error:"
	made := soft.Stats(dev).Messages[make]
	x := sliceOf(t, rt, 1, 2)
	require.NoError(t, rt.Run(func(p *Pass) error { return errors.Join(fill(p, x, 1), bump(p, x, 1)) }))
	require.Equal(t, made, soft.Stats(dev).Messages[make], "nothing was left to make")
	require.Equal(t, OriginUser, rt.KernelOrigin("copy"))

	var none context.Context // which is allowed
	err := rt.Prewarm(none, "nothing", "group_sum", "number")
	require.ErrorIs(t, err, ErrKernel)
	require.ErrorIs(t, err, ErrDevice, "number needs function constants")
	require.NotEqual(t, OriginNone, rt.KernelOrigin("group_sum"), "the others are ready")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = rt.Prewarm(ctx, "fill", "copy")
	require.ErrorIs(t, err, ErrTimeout)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "0 of 2 kernels ready")
	require.NoError(t, rt.Close())
	require.ErrorIs(t, rt.Prewarm(t.Context(), "fill"), ErrClosed)
	require.ErrorIs(t, (*Runtime)(nil).Prewarm(t.Context()), ErrMisuse)
}

// Kernels with function constants are made with those, and a launch with the same ones finds them, in whatever order they were given.
func TestPrewarmSpecialized(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	require.NoError(t, rt.PrewarmSpecialized(t.Context(),
		Specialization{"number", []FunctionConstant{ConstantUint32(1, 100), ConstantBool(0, true)}}, Specialization{Kernel: "fill"}))
	require.EqualValues(t, 2, rt.Stats().Pipelines)
	x, err := NewSlice[uint32](rt, 40)
	require.NoError(t, err)
	require.NoError(t, rt.Run(func(p *Pass) error {
		l := p.Kernel("number")
		l.ConstantBool(0, true)
		l.ConstantUint32(1, 100)
		l.Write(0, x.View())
		return l.DispatchThreads(D1(40), D1(32))
	}))
	require.EqualValues(t, 2, rt.Stats().Pipelines, "nothing was left to make")
	err = rt.PrewarmSpecialized(t.Context(), Specialization{"number", []FunctionConstant{ConstantBool(0, true), ConstantBool(0, false)}})
	require.ErrorIs(t, err, ErrMisuse)
	require.ErrorContains(t, err, "constant 0")
	err = rt.PrewarmSpecialized(t.Context(), Specialization{"number", []FunctionConstant{ConstantInt32(1, 100), ConstantFloat32(0, 1)}})
	require.ErrorIs(t, err, ErrDevice, "of other types")
	require.ErrorIs(t, rt.PrewarmSpecialized(t.Context(), Specialization{Kernel: "nothing"}), ErrKernel)
	require.NoError(t, rt.Close())
	require.ErrorIs(t, rt.PrewarmSpecialized(t.Context()), ErrClosed)
}

// Everybody who wants a pipeline that is being made waits for that one, and different ones are made at the same time.
func TestPipelinesAreMadeOnce(t *testing.T) {
	rt := new(fake).open(t)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for _, name := range []string{"fill", "copy", "add", "none"} {
				if _, err := rt.Kernel(name); (err != nil) != (name == "none") {
					t.Error(err)
				}
			}
			for v := range 4 {
				// Four different ones, whose names for tools are the same.
				l := Launch{name: "scale"}
				switch (v + g) % 4 {
				case 0:
					l.ConstantUint32(0, 1)
				case 1:
					l.ConstantInt32(0, 1)
				case 2:
					l.ConstantFloat32(0, 1)
				default:
					l.ConstantUint32(1, 1)
				}
				if _, err := rt.pipeline(&l); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 7, rt.Stats().Pipelines)
}

func TestAddLibrary(t *testing.T) {
	rt, dev := softRuntime(t, soft.Options{})
	objects := soft.Stats(dev).Objects
	require.ErrorIs(t, rt.AddLibrary(nil), ErrMisuse)
	require.ErrorIs(t, rt.AddLibrary([]byte("no library")), ErrDevice)
	err := rt.AddLibrary(testKernels)
	require.ErrorIs(t, err, ErrKernel)
	require.ErrorContains(t, err, "which there is already")
	require.Equal(t, objects, soft.Stats(dev).Objects, "nothing is left of what was refused")
	require.NoError(t, rt.AddLibrary(moreKernels))
	require.ErrorIs(t, rt.AddLibrary(moreKernels), ErrKernel, "twice")
	info, err := rt.Kernel("triple")
	require.NoError(t, err)
	require.Equal(t, OriginUser, info.Origin)
	_, err = rt.Kernel("fill")
	require.NoError(t, err, "those of the first library are there still")
	require.NoError(t, rt.Close())
	require.ErrorIs(t, rt.AddLibrary(moreKernels), ErrClosed)
}

// Kernels beside the embedded ones: the library stays what it is, and the added kernels have no source to fall back to.
func TestAddLibraryToEmbedded(t *testing.T) {
	rt, err := Open(WithDevice(softDevice(t, soft.Options{RefuseKernels: []string{"add"}})))
	require.NoError(t, err)
	require.NoError(t, rt.AddLibrary(testKernels))
	require.Equal(t, OriginEmbedded, rt.LibraryOrigin())
	require.NoError(t, rt.Prewarm(t.Context(), "fill", "copy_b32"))
	require.Equal(t, OriginUser, rt.KernelOrigin("fill"))
	require.Equal(t, OriginEmbedded, rt.KernelOrigin("copy_b32"))
	_, err = rt.Kernel("add")
	require.ErrorIs(t, err, ErrDevice)
	require.NoError(t, rt.Close())
}
