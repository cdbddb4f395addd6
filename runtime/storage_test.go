package runtime

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl/soft"
)

// memoryKinds are the devices that memory has to work on.
var memoryKinds = map[string]soft.Options{
	"unified":  {},
	"discrete": {DiscreteMemory: true},
	"macOS 14": {OSVersion: soft.Version{Major: 14}, NoResidencySets: true},
}

func TestPrivateMemory(t *testing.T) {
	for name, o := range memoryKinds {
		t.Run(name, func(t *testing.T) {
			rt, _ := softRuntime(t, o)
			require.Equal(t, !o.DiscreteMemory, rt.Device().UnifiedMemory)
			x, err := NewSlice[uint32](rt, 100, Private)
			require.NoError(t, err)
			require.Equal(t, Private, x.Storage())
			require.Equal(t, 400, rt.MemStats().Private)
			got := make([]uint32, 100)
			got[7] = 1
			require.NoError(t, x.Read(got))
			require.Equal(t, make([]uint32, 100), got, "new memory is zero")
			// Host, kernel, host, in turns and in parts.
			require.NoError(t, x.Slice(10, 20).Write([]uint32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}))
			require.NoError(t, rt.Run(func(p *Pass) error { return bump(p, x.Slice(12, 14), 1) }))
			require.NoError(t, x.Slice(9, 15).Read(got[:6]))
			require.Equal(t, []uint32{0, 1, 2, 10, 13, 5}, got[:6])
			// Work that is pending comes first.
			_, err = rt.Submit(func(p *Pass) error { return fill(p, x, 9) })
			require.NoError(t, err)
			require.NoError(t, x.Slice(0, 1).Write([]uint32{8}))
			require.NoError(t, x.Slice(0, 2).Read(got[:2]))
			require.Equal(t, []uint32{8, 9}, got[:2])

			_, err = x.Map()
			require.ErrorIs(t, err, ErrMisuse)
			require.ErrorContains(t, err, "private")
			_, err = x.MapRead()
			require.ErrorIs(t, err, ErrMisuse)
			require.NoError(t, rt.Run(func(p *Pass) error {
				require.NoError(t, fill(p, x, 1))
				require.ErrorIs(t, x.Read(got), ErrBusy)
				require.ErrorIs(t, x.Write(got), ErrBusy)
				return nil
			}))

			// From the pool it comes back cleared.
			buf := x.view.a.buf
			require.NoError(t, x.Release())
			require.NoError(t, rt.Wait(t.Context()))
			shared, err := NewSlice[uint32](rt, 100)
			require.NoError(t, err)
			require.NotEqual(t, buf, shared.view.a.buf, "of another storage")
			x, err = NewSlice[uint32](rt, 100, Private)
			require.NoError(t, err)
			require.Equal(t, buf, x.view.a.buf)
			require.NoError(t, x.Read(got))
			require.Equal(t, make([]uint32, 100), got)

			y, err := SliceOf(rt, []uint32{4, 5, 6}, Private)
			require.NoError(t, err)
			require.NoError(t, y.Read(got[:3]))
			require.Equal(t, []uint32{4, 5, 6}, got[:3])
			require.NoError(t, y.Slice(1, 1).Read(nil))
			require.NoError(t, y.Slice(1, 1).Write(nil))
		})
	}
}

// TestPrivateBytes reads and writes odd bytes of private memory, which the device moves by words: what lies beside them
// stays.
func TestPrivateBytes(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 5, 13, 64, 67} {
		want := make([]uint8, n)
		x, err := NewSlice[uint8](rt, n, Private)
		require.NoError(t, err)
		for range 30 {
			i := rng.IntN(n + 1)
			j := i + rng.IntN(n-i+1)
			for k := i; k < j; k++ {
				want[k] = uint8(rng.Uint32())
			}
			require.NoError(t, x.Slice(i, j).Write(want[i:j]))
			i = rng.IntN(n + 1)
			j = i + rng.IntN(n-i+1)
			got := make([]uint8, j-i)
			require.NoError(t, x.Slice(i, j).Read(got))
			require.Equal(t, want[i:j], got, "%d to %d of %d", i, j, n)
		}
	}
}

// TestPrivateCopiesInParts copies more than one part, with and without whole words at the ends.
func TestPrivateCopiesInParts(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	n := 2*stagingBytes + 1000
	data := make([]uint8, n)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range data {
		data[i] = uint8(rng.Uint32())
	}
	x, err := SliceOf(rt, data, Private)
	require.NoError(t, err)
	got := make([]uint8, n)
	require.NoError(t, x.Read(got))
	require.True(t, string(data) == string(got))
	require.NoError(t, x.Slice(1, n-2).Write(data[:n-3]))
	require.NoError(t, x.Slice(1, n-2).Read(got[:n-3]))
	require.True(t, string(data[:n-3]) == string(got[:n-3]))
	require.NoError(t, x.Slice(n-2, n).Read(got[:2]))
	require.Equal(t, data[n-2:], got[:2])
	require.NoError(t, x.Slice(0, 1).Read(got[:1]))
	require.Equal(t, data[0], got[0])
	require.Less(t, rt.MemStats().Peak-n, stagingBytes+1<<20, "one part at a time")
}

func TestStorageRefusals(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	for _, storage := range [][]Storage{{Managed}, {Storage(9)}, {Private, Private}} {
		_, err := NewSlice[uint32](rt, 4, storage...)
		require.ErrorIs(t, err, ErrMisuse)
		_, err = SliceOf(rt, []uint32{1}, storage...)
		require.ErrorIs(t, err, ErrMisuse)
	}
	x, err := NewSlice[uint32](rt, 4, Shared)
	require.NoError(t, err)
	require.Equal(t, Shared, x.Storage())
	require.False(t, x.ReadOnly())
	require.Equal(t, Shared, View{}.Storage())
	require.False(t, View{}.ReadOnly())
	require.Equal(t, "shared private managed Storage(9)", fmt.Sprint(Shared, Private, Managed, Storage(9)))
	require.NoError(t, rt.Close())
	_, err = NewSlice[uint32](rt, 4, Private)
	require.ErrorIs(t, err, ErrClosed)
}

// TestResidencySet looks at what the device is told of the set: it is changed by buffers, not by allocations, and committed
// once before the next submission.
func TestResidencySet(t *testing.T) {
	rt, dev := softRuntime(t, soft.Options{})
	count := func(selector string) uint64 { return soft.Stats(dev).Messages[selector] }
	sets := func() uint64 { return count("addAllocation:") + count("removeAllocation:") }
	require.EqualValues(t, 1, count("addResidencySet:"))
	var all []Slice[uint32]
	for i := range 20 {
		x, err := NewSlice[uint32](rt, 100+i)
		require.NoError(t, err)
		all = append(all, x)
	}
	require.False(t, rt.resident.set.IsNil())
	require.EqualValues(t, 20, count("addAllocation:"))
	commits := func() uint64 { return rt.resident.commits }
	require.Zero(t, commits())
	run := func() { require.NoError(t, rt.Run(func(p *Pass) error { return fill(p, all[3], 1) })) }
	run()
	require.EqualValues(t, 1, commits())
	require.Equal(t, rt.MemStats().Held, rt.MemStats().Resident)
	n := sets()
	for range 10 {
		run()
		require.NoError(t, all[5].Release())
		var err error
		all[5], err = NewSlice[uint32](rt, 105)
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, commits(), "nothing has changed")
	require.Equal(t, n, sets())
	require.NoError(t, all[0].Release())
	before := soft.Stats(dev).Allocated
	freed, err := rt.Trim(0)
	require.NoError(t, err)
	require.GreaterOrEqual(t, freed, 400)
	require.Equal(t, before-freed, soft.Stats(dev).Allocated, "the set does not hold it")
	require.Equal(t, rt.MemStats().Held, rt.MemStats().Resident)
	run()
	prog, err := rt.Record(func(p *Pass) error { return errors.Join(fill(p, all[1], 2), fill(p, all[2], 2)) })
	require.NoError(t, err)
	require.NoError(t, prog.Run())
	require.NotZero(t, count("useResources:count:usage:"), "for hazards in any case")
}

func TestNoResidencySet(t *testing.T) {
	for _, o := range []soft.Options{{NoResidencySets: true}, {OSVersion: soft.Version{Major: 14, Minor: 6}}} {
		rt, dev := softRuntime(t, o)
		require.True(t, rt.resident.set.IsNil())
		x, err := NewSlice[uint32](rt, 64)
		require.NoError(t, err)
		prog, err := rt.Record(func(p *Pass) error { return errors.Join(fill(p, x, 2), bump(p, x, 2)) })
		require.NoError(t, err)
		require.NoError(t, prog.Run())
		require.Zero(t, rt.MemStats().Resident)
		require.Zero(t, soft.Stats(dev).Messages["addAllocation:"])
	}
}
