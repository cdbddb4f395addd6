package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl/soft"
)

func TestSetThreads(t *testing.T) {
	rt, err := Open(WithDevice(softDevice(t, soft.Options{KernelThreads: map[string]int{"copy_b32": 96}})))
	require.NoError(t, err)
	set := NewKernelSet("add_f32", "copy_b32")
	require.Equal(t, []string{"add_f32", "copy_b32"}, set.Names())
	for range 2 {
		n, err := rt.SetThreads(set)
		require.NoError(t, err)
		require.Equal(t, 96, n)
	}
	require.EqualValues(t, 2, rt.Stats().Pipelines)
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = rt.SetThreads(set) }))
	// Within a pass too.
	require.NoError(t, rt.Run(func(p *Pass) error {
		_, err := p.Runtime().SetThreads(NewKernelSet("add_f16"))
		return err
	}))
	for _, bad := range []*KernelSet{nil, {}, NewKernelSet()} {
		_, err = rt.SetThreads(bad)
		require.ErrorIs(t, err, ErrMisuse)
		require.Empty(t, bad.Names())
	}
	for range 2 {
		_, err = rt.SetThreads(NewKernelSet("add_f32", "nothing"))
		require.ErrorIs(t, err, ErrKernel)
	}
	require.NoError(t, rt.Close())
	_, err = rt.SetThreads(set)
	require.ErrorIs(t, err, ErrClosed)
	_, err = (*Runtime)(nil).SetThreads(set)
	require.ErrorIs(t, err, ErrMisuse)

	few, err := Open(WithDevice(softDevice(t, soft.Options{MaxThreads: 31})))
	require.NoError(t, err)
	_, err = few.SetThreads(set)
	require.ErrorIs(t, err, ErrLimit)
	require.NoError(t, few.Close())
}
