package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl/soft"
)

func TestMemStats(t *testing.T) {
	d := new(fake)
	rt := d.open(t)
	start := rt.MemStats()
	require.Zero(t, start.Live)
	require.Equal(t, 1<<30, start.Budget, "what the device recommends")
	x, err := NewSlice[uint8](rt, 1000)
	require.NoError(t, err)
	y, err := NewSlice[uint8](rt, 600)
	require.NoError(t, err)
	s := rt.MemStats()
	require.Equal(t, 1024+640, s.Live)
	require.Equal(t, 1664, s.Held)
	require.EqualValues(t, 1600, s.Zeroed)
	require.EqualValues(t, 2, s.Allocations)
	require.EqualValues(t, 2, s.Buffers)
	require.Zero(t, s.InFlight+s.Private+s.External+s.Pooled+s.Resident+s.Mappings)

	d.block.Lock()
	words, err := NewSlice[uint32](rt, 64)
	require.NoError(t, err)
	_, err = rt.Submit(func(p *Pass) error { return fill(p, words, 1) })
	require.NoError(t, err)
	require.Equal(t, 256, rt.MemStats().InFlight)
	require.Equal(t, chunkBytes, rt.MemStats().Scalars)
	require.NoError(t, words.Release())
	require.Equal(t, 1664+256, rt.MemStats().Live, "the device still uses it")
	d.block.Unlock()
	require.NoError(t, rt.Wait(t.Context()))
	require.Zero(t, rt.MemStats().InFlight)
	require.Equal(t, 256, rt.MemStats().Pooled)

	require.NoError(t, y.Release())
	y, err = NewSlice[uint8](rt, 601)
	require.NoError(t, err)
	require.EqualValues(t, 1, rt.MemStats().Reused)
	require.NoError(t, y.Release())
	require.NoError(t, x.Release())
	s = rt.MemStats()
	require.Zero(t, s.Live)
	require.Equal(t, 1024+640+256, s.Pooled)
	require.Equal(t, s.Pooled+s.Scalars, s.Held)
	require.Equal(t, s.Held, s.Peak)

	freed, err := rt.Trim(900)
	require.NoError(t, err)
	require.Equal(t, 1024+chunkBytes, freed, "the largest, and what the const arena does not use")
	require.Equal(t, 896, rt.MemStats().Pooled)
	require.Equal(t, 896, rt.MemStats().Held)
	_, err = rt.Trim(-1)
	require.ErrorIs(t, err, ErrShape)
	require.NoError(t, rt.Close())
	_, err = rt.Trim(0)
	require.ErrorIs(t, err, ErrClosed)
	require.Zero(t, rt.MemStats().Held)
	require.Equal(t, MemStats{}, (*Runtime)(nil).MemStats())
	_, err = (*Runtime)(nil).Trim(0)
	require.ErrorIs(t, err, ErrMisuse)
}

func TestMemoryBudget(t *testing.T) {
	for name, o := range memoryKinds {
		t.Run(name, func(t *testing.T) {
			rt, dev := softRuntime(t, o, WithMemoryBudget(1<<20))
			x, err := NewSlice[uint8](rt, 600<<10)
			require.NoError(t, err)
			made := soft.Stats(dev).Messages["newBufferWithLength:options:"]
			_, err = NewSlice[uint8](rt, 500<<10)
			require.ErrorIs(t, err, ErrLimit)
			require.ErrorContains(t, err, "memory budget")
			require.NotErrorIs(t, err, ErrDevice)
			_, err = NewSlice[uint8](rt, 500<<10, Private)
			require.ErrorIs(t, err, ErrLimit)
			require.Equal(t, made, soft.Stats(dev).Messages["newBufferWithLength:options:"], "nothing was asked of the device")
			y, err := NewSlice[uint8](rt, 400<<10)
			require.NoError(t, err)
			require.NoError(t, y.Release())
			// What the pool keeps makes way.
			y, err = NewSlice[uint8](rt, 424<<10)
			require.NoError(t, err)
			require.Equal(t, 1<<20, rt.MemStats().Held)
			// A pass finds no room for scalars, and says so.
			words, err := NewSlice[uint32](rt, 1)
			require.ErrorIs(t, err, ErrLimit)
			require.NoError(t, y.Release())
			words, err = NewSlice[uint32](rt, 100<<8)
			require.NoError(t, err)
			z, err := NewSlice[uint8](rt, 323<<10)
			require.NoError(t, err)
			require.NoError(t, rt.Run(func(p *Pass) error {
				require.ErrorIs(t, fill(p, words, 1), ErrLimit)
				require.NoError(t, z.Release())
				return fill(p, words, 1)
			}))
			require.NoError(t, x.Release())
			require.LessOrEqual(t, rt.MemStats().Peak, 1<<20)
		})
	}
	_, err := Open(WithMemoryBudget(-1))
	require.ErrorIs(t, err, ErrLimit)
	require.Equal(t, 5, (&config{memory: 5}).budget(4))
	require.Equal(t, 4, (&config{}).budget(4))
	require.NotZero(t, (&config{}).budget(0))
}
