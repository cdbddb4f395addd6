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
