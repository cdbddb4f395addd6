//go:build !darwin

package runtime

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl/soft"
)

// TestWithChecks runs a kernel that reads threadgroup memory which it has not written.
func TestWithChecks(t *testing.T) {
	library, err := os.ReadFile("../mtl/soft/testdata/kernels.metallib")
	require.NoError(t, err)
	for _, on := range []bool{true, false} {
		rt, err := Open(WithChecks(on), WithLibrary(library))
		require.NoError(t, err)
		in, err := NewSlice[float32](rt, 64)
		require.NoError(t, err)
		out, err := NewSlice[float32](rt, 1)
		require.NoError(t, err)
		err = rt.Run(func(p *Pass) error {
			l := p.Kernel("lopsided")
			l.Read(0, in.View())
			l.Write(1, out.View())
			return l.Dispatch(Size{1, 1, 1}, Size{64, 1, 1})
		})
		if on {
			require.ErrorContains(t, err, "kernel lopsided: read of memory never written: threadgroup (piece): 4 bytes at offset 252")
		} else {
			require.NoError(t, err)
		}
		require.NoError(t, rt.Close())
	}
	_, err = Open(WithChecks(true), WithDevice(softDevice(t, soft.Options{})))
	require.ErrorIs(t, err, ErrMisuse)
}

// TestChecksAgainstDeclared runs kernels that do otherwise than they, or the launch, declared: which hazards are tracked by.
func TestChecksAgainstDeclared(t *testing.T) {
	for _, on := range []bool{true, false} {
		for _, recorded := range []bool{false, true} {
			run := func(encode func(p *Pass, x, y Slice[uint32]) error) (err error) {
				rt, err := Open(WithChecks(on), WithLibrary(moreKernels))
				require.NoError(t, err)
				defer func() { require.NoError(t, rt.Close()) }()
				x, y := sliceOf(t, rt, 1, 2, 3, 4, 5, 6, 7, 8), sliceOf(t, rt, 0, 0, 0, 0, 0, 0, 0, 0)
				if !recorded {
					return rt.Run(func(p *Pass) error { return encode(p, x, y) })
				}
				prog, err := rt.Record(func(p *Pass) error { return encode(p, x, y) })
				require.NoError(t, err)
				z := sliceOf(t, rt, 1, 2, 3, 4, 5, 6, 7, 8)
				require.NoError(t, prog.Bind(Rebind(x, z)))
				return prog.Run()
			}
			shifted := func(out func(x, y Slice[uint32]) View, shift uint32) func(p *Pass, x, y Slice[uint32]) error {
				return func(p *Pass, x, y Slice[uint32]) error {
					t := p.Kernel("triple")
					t.ReadWrite(0, x.View())
					if err := t.DispatchThreads(D1(8), D1(8)); err != nil {
						return err
					}
					l := p.Kernel("shifted")
					l.Read(0, x.Slice(2, 4).View())
					l.Write(1, out(x, y))
					l.Uint32(2, shift)
					return l.DispatchThreads(D1(2), D1(2))
				}
			}
			apart := func(x, y Slice[uint32]) View { return y.Slice(4, 6).View() }
			require.NoError(t, run(shifted(apart, 0)))
			err := run(shifted(apart, 1))
			if on {
				require.ErrorIs(t, err, ErrDevice)
				require.ErrorContains(t, err, "out of bounds")
				require.ErrorContains(t, err, "at offset 8, of which 8 bytes were declared")
			} else {
				require.NoError(t, err)
			}
			within := func(x, y Slice[uint32]) View { return x.Slice(6, 8).View() }
			require.NoError(t, run(shifted(within, 1)), "the same memory twice is not checked")

			err = run(func(p *Pass, x, y Slice[uint32]) error {
				l := p.Kernel("sneaky")
				l.Read(0, x.View())
				l.Write(1, y.View())
				return l.DispatchThreads(D1(8), D1(8))
			})
			if on {
				require.ErrorIs(t, err, ErrDevice)
				require.ErrorContains(t, err, `kernel "sneaky"`)
				require.ErrorContains(t, err, "which it declares as read only")
			} else {
				require.NoError(t, err)
			}
		}
	}
}
