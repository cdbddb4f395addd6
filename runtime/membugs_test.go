package runtime

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/objc"
)

// Bugs that other Metal runtimes have recorded about memory. Each test is one of them.

// A const arena whose cursor went back only after a commit that waited ran out in the middle of a step.
func TestConstArenaDoesNotRunOut(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{NoHazards: true})
	x, err := NewSlice[uint32](rt, 1)
	require.NoError(t, err)
	// Each launch takes two scalars of the arena: several chunks in a pass, and many passes that nobody waits for.
	perChunk := chunkBytes / rt.limits.constantAlign / 2
	passes := 3 * DefaultMaxInFlight
	for range passes {
		_, err := rt.Submit(func(p *Pass) error {
			for i := range perChunk / 8 {
				if err := fill(p, x, uint32(i)); err != nil {
					return err
				}
			}
			return nil
		})
		require.NoError(t, err)
	}
	require.NoError(t, rt.Run(func(p *Pass) error {
		for i := range perChunk + 1 {
			if err := fill(p, x, uint32(i)); err != nil {
				return err
			}
		}
		return nil
	}))
	require.LessOrEqual(t, rt.MemStats().Scalars, (DefaultMaxInFlight+3)*chunkBytes)
	got := []uint32{0}
	require.NoError(t, x.Read(got))
	require.EqualValues(t, perChunk, got[0])
}

// A slot of parameters was rewritten while a dispatch that read it was in flight. Scalars of passes are never overwritten
// before their work has completed, and those of the caller refuse it.
func TestScalarsInFlightKeepTheirValues(t *testing.T) {
	d := new(fake)
	rt := d.open(t)
	const n = 40
	x, err := NewSlice[uint32](rt, n)
	require.NoError(t, err)
	d.block.Lock()
	for i := range DefaultMaxInFlight {
		_, err := rt.Submit(func(p *Pass) error { return fill(p, x.Slice(i, i+1), uint32(100+i)) })
		require.NoError(t, err)
	}
	d.block.Unlock()
	got := make([]uint32, n)
	require.NoError(t, x.Read(got))
	for i := range DefaultMaxInFlight {
		require.EqualValues(t, 100+i, got[i])
	}
}

// The second wrap of a buffer took it out of the residency set when it went, and a wrap that was refused that of the one
// that lived.
func TestSecondWrapLeavesTheFirstAlone(t *testing.T) {
	rt, dev := softRuntime(t, soft.Options{})
	buf := dev.NewBufferWithLength(4096, mtl.ResourceStorageModeShared)
	defer buf.Release()
	x, err := WrapBuffer[uint32](rt, buf)
	require.NoError(t, err)
	_, err = WrapBuffer[uint8](rt, buf)
	require.ErrorIs(t, err, ErrBusy)
	require.True(t, rt.resident.set.ContainsAllocation(buf.Allocation))
	require.Equal(t, 4096, rt.MemStats().Resident)
	prog, err := rt.Record(func(p *Pass) error { return fill(p, x.Slice(0, 4), 3) })
	require.NoError(t, err)
	require.NoError(t, prog.Run())
	require.NoError(t, x.Release())
	_, err = WrapBuffer[uint8](rt, buf)
	require.ErrorIs(t, err, ErrBusy, "the program uses it")
	require.NoError(t, prog.Run())
	require.True(t, rt.resident.set.ContainsAllocation(buf.Allocation))
	require.NoError(t, prog.Release())
	require.False(t, rt.resident.set.ContainsAllocation(buf.Allocation))
	y, err := WrapBuffer[uint8](rt, buf)
	require.NoError(t, err)
	require.True(t, rt.resident.set.ContainsAllocation(buf.Allocation))
	require.NoError(t, y.Release())
}

// Private buffers have no contents, and their nil was used as memory.
func TestPrivateContentsAreNeverAskedFor(t *testing.T) {
	rt, dev := softRuntime(t, soft.Options{})
	before := soft.Stats(dev).Messages["contents"]
	x, err := NewSlice[uint32](rt, 64, Private)
	require.NoError(t, err)
	_, err = x.Map()
	require.ErrorIs(t, err, ErrMisuse)
	require.Equal(t, before, soft.Stats(dev).Messages["contents"])
	b := dev.NewBufferWithLength(64, mtl.ResourceStorageModePrivate)
	defer b.Release()
	y, err := WrapBuffer[uint32](rt, b)
	require.NoError(t, err)
	_, err = y.MapRead()
	require.ErrorIs(t, err, ErrMisuse)
	require.Equal(t, before, soft.Stats(dev).Messages["contents"])
	require.Nil(t, y.view.a.base)
}

// A pool gave memory out with what its last owner had left in it.
func TestPooledMemoryIsZero(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	for _, storage := range []Storage{Shared, Private} {
		var buf mtl.Buffer
		for i := range 3 {
			x, err := NewSlice[uint32](rt, 50, storage)
			require.NoError(t, err)
			require.True(t, i == 0 || x.view.a.buf == buf, "from the pool")
			buf = x.view.a.buf
			got := make([]uint32, 50)
			require.NoError(t, x.Read(got))
			require.Equal(t, make([]uint32, 50), got)
			require.NoError(t, rt.Run(func(p *Pass) error { return fill(p, x, 0xDEADBEEF) }))
			require.NoError(t, x.Release())
		}
	}
}

// The residency set was committed for every allocation, hundreds of times for each token.
func TestResidencyIsCommittedOncePerSubmission(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{}, WithPoolLimit(0)) // so that each allocation changes the set
	for range 5 {
		commits := rt.resident.commits
		var all []Slice[uint32]
		for range 50 {
			x, err := NewSlice[uint32](rt, 16)
			require.NoError(t, err)
			all = append(all, x)
		}
		require.Equal(t, commits, rt.resident.commits)
		require.NoError(t, rt.Run(func(p *Pass) error {
			for i, x := range all {
				if err := fill(p, x, uint32(i)); err != nil {
					return err
				}
			}
			return nil
		}))
		require.Equal(t, commits+1, rt.resident.commits)
		for _, x := range all {
			require.NoError(t, x.Release())
		}
		require.Equal(t, commits+1, rt.resident.commits)
	}
}

// The offset of a view was not passed on to the kernel.
func TestOffsetsOfViewsReachTheKernel(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	for _, storage := range []Storage{Shared, Private} {
		x, err := SliceOf(rt, []uint32{1, 2, 3, 4, 5, 6, 7, 8}, storage)
		require.NoError(t, err)
		y, err := NewSlice[uint32](rt, 8, storage)
		require.NoError(t, err)
		encode := func(p *Pass) error { return duplicate(p, y.Slice(1, 8).Slice(4, 6), x.Slice(2, 7).Slice(1, 3)) }
		prog, err := rt.Record(encode)
		require.NoError(t, err)
		for _, run := range []func() error{func() error { return rt.Run(encode) }, prog.Run} {
			require.NoError(t, y.Write(make([]uint32, 8)))
			require.NoError(t, run())
			got := make([]uint32, 8)
			require.NoError(t, y.Read(got))
			require.Equal(t, []uint32{0, 0, 0, 0, 0, 4, 5, 0}, got)
		}
	}
}

// With command buffers that do not hold what they use, temporaries that were dropped after encoding were gone before the
// device ran.
func TestReleasedTemporariesLastUntilTheirWorkIsDone(t *testing.T) {
	d := new(fake)
	rt := d.open(t)
	out, err := NewSlice[uint32](rt, 8)
	require.NoError(t, err)
	d.block.Lock()
	for i := range 8 {
		tmp, err := NewSlice[uint32](rt, 1)
		require.NoError(t, err)
		_, err = rt.Submit(func(p *Pass) error {
			return errors.Join(fill(p, tmp, uint32(i+1)), duplicate(p, out.Slice(i, i+1), tmp))
		})
		require.NoError(t, err)
		require.NoError(t, tmp.Release())
	}
	require.Zero(t, rt.MemStats().Pooled, "none was given away")
	d.block.Unlock()
	got := make([]uint32, 8)
	require.NoError(t, out.Read(got))
	require.Equal(t, []uint32{1, 2, 3, 4, 5, 6, 7, 8}, got)
	require.Equal(t, 8*minClass, rt.MemStats().Pooled)
}

// On threads without an autorelease pool, borrowed objects gathered until the queue had no command buffers left.
func TestGoroutinesLeaveNothingInPools(t *testing.T) {
	rt, dev := softRuntime(t, soft.Options{NoHazards: true})
	work := func(n int) {
		done := make(chan error)
		go func() {
			var failed error
			x, err := NewSlice[uint32](rt, 16, Private)
			failed = errors.Join(failed, err)
			for i := range n {
				failed = errors.Join(failed, rt.Run(func(p *Pass) error { return fill(p, x, uint32(i)) }),
					x.Slice(0, 1).Write([]uint32{1}), x.Read(make([]uint32, 16)),
					rt.Run(func(p *Pass) error { return nil }))
				if rt.Run(func(p *Pass) error { return errors.Join(fill(p, x, 1), errRefused) }) == nil {
					failed = errors.Join(failed, errRefused)
				}
			}
			done <- errors.Join(failed, x.Release())
		}()
		require.NoError(t, <-done)
	}
	work(2 * flights)
	settle := func() int {
		awaitIdle(t, dev)
		return soft.Stats(dev).Objects
	}
	before := settle()
	work(200)
	require.InDelta(t, before, settle(), 4)
	require.Zero(t, objc.Parked())
}

var errRefused = errors.New("refused")

// Encoding went on while the host had memory mapped.
func TestNothingIsEncodedOnMappedMemory(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	m, err := x.Map()
	require.NoError(t, err)
	require.NoError(t, rt.Run(func(p *Pass) error {
		require.ErrorIs(t, fill(p, x, 1), ErrBusy)
		return nil
	}))
	require.NoError(t, m.Unmap())
	require.NoError(t, rt.Run(func(p *Pass) error { return fill(p, x, 1) }))
}

// Memory longer than the device's longest buffer, or than any, was rounded up to a size of nothing.
func TestLengthsDoNotWrap(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{MaxBufferLength: 1 << 20})
	for _, n := range []int{1<<20 + 1, 1 << 40, 1<<62 - 1, 1<<63 - 1} {
		_, err := NewSlice[uint8](rt, n)
		require.ErrorIs(t, err, ErrLimit, "%d", n)
		_, err = NewSlice[uint8](rt, n, Private)
		require.ErrorIs(t, err, ErrLimit, "%d private", n)
		_, err = NewTempArena(rt, n)
		require.Error(t, err)
	}
	_, err := NewSlice[uint64](rt, 1<<61)
	require.ErrorIs(t, err, ErrShape)
	x, err := NewSlice[uint8](rt, 1<<20)
	require.NoError(t, err)
	require.NoError(t, x.Release())
}
