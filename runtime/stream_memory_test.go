package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl/soft"
)

// TestLargeResults releases results of 16 MiB as soon as they have been read: a long chain of them in one chunk needs the
// memory of two.
func TestLargeResults(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{Order: soft.Reversed})
	const n = largeResult / 4
	first := mustSlice(t, rt, 4)
	s := openStream(t, rt)
	require.NoError(t, first.Write([]uint32{1, 2, 3, 4}))
	link := func(from Slice[uint32]) *Future[uint32] {
		f, err := Compute(s, n, func(p *Pass, out Slice[uint32]) error {
			if err := duplicate(p, out.Slice(0, 4), from.Slice(0, 4)); err != nil {
				return err
			}
			return bump(p, out.Slice(0, 4), 1)
		})
		require.NoError(t, err)
		return f
	}
	d := link(first)
	buffers := rt.Stats().Buffers
	want := []uint32{4, 7, 10, 13}
	var old []Slice[uint32]
	for range 3 {
		next := link(d.Slice())
		old = append(old, d.Slice())
		require.NoError(t, d.Release())
		d = next
		for i := range want {
			want[i] = 3*want[i] + 1
		}
	}
	require.Equal(t, 8, int(s.Stats().Dispatches))
	require.LessOrEqual(t, rt.Stats().Buffers, buffers+1)
	require.EqualValues(t, 2, s.Stats().Reused)
	got := make([]uint32, 4)
	require.NoError(t, d.Slice().Slice(0, 4).Read(got))
	require.Equal(t, want, got)
	for _, x := range old {
		require.ErrorIs(t, x.Slice(0, 4).Read(got), ErrClosed, "the memory is another result's")
	}
	require.NoError(t, d.Release())
	require.NoError(t, s.Wait(t.Context()))
	require.NoError(t, s.Close())
	require.Equal(t, 1, rt.Stats().LiveAllocations)
}

// TestSmallResults get memory again after the commit, while the device still works on what used it.
func TestSmallResults(t *testing.T) {
	d := new(fake)
	rt := d.open(t)
	s := openStream(t, rt)
	d.block.Lock()
	compute := func(v uint32) *Future[uint32] {
		f, err := Compute(s, 64, func(p *Pass, out Slice[uint32]) error { return fill(p, out, v) })
		require.NoError(t, err)
		return f
	}
	a := compute(1)
	require.NoError(t, a.Release())
	b := compute(2)
	require.Zero(t, s.Stats().Reused, "pending work keeps it")
	_, err := s.Commit()
	require.NoError(t, err)
	c := compute(3)
	require.EqualValues(t, 1, s.Stats().Reused)
	require.Equal(t, a.slice.view.a.buf, c.slice.view.a.buf)
	e, err := Compute(s, 64, func(p *Pass, out Slice[uint32]) error { return duplicate(p, out, c.Slice()) })
	require.NoError(t, err)
	d.block.Unlock()
	expect(t, c.Slice(), 3)
	expect(t, b.Slice(), 2)
	expect(t, e.Slice(), 3)
	require.NoError(t, b.Release())
	// Nothing was done to this one: the host may have it only when the work before has completed.
	d.block.Lock()
	f := compute(4)
	_, err = s.Commit()
	require.NoError(t, err)
	require.NoError(t, f.Release())
	done := make(chan *Future[uint32])
	go func() {
		f, err := Compute(s, 64, func(p *Pass, out Slice[uint32]) error { return nil })
		if err != nil {
			t.Error(err)
		}
		done <- f
	}()
	d.block.Unlock()
	empty := <-done
	require.True(t, empty.Ready())
	require.NoError(t, empty.Slice().Write(make([]uint32, 64)))
	expect(t, empty.Slice(), 0)
	require.NoError(t, s.Close())
}

// TestMemoryOfFailedResults: what comes from a failed chunk fails with it, reuse or not.
func TestMemoryOfFailedResults(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	s := openStream(t, rt)
	require.NoError(t, s.FailNextCommit())
	f, err := Compute(s, 64, func(p *Pass, out Slice[uint32]) error { return fill(p, out, 1) })
	require.NoError(t, err)
	_, err = s.Commit()
	require.NoError(t, err)
	require.NoError(t, f.Release())
	g, err := Compute(s, 64, func(p *Pass, out Slice[uint32]) error { return fill(p, out, 2) })
	if err == nil {
		require.ErrorIs(t, g.Wait(t.Context()), ErrDevice)
		require.NoError(t, g.Release())
	}
	require.NoError(t, s.Close())
	require.Zero(t, rt.Stats().LiveAllocations)
	// The buffer is fit for somebody else.
	x := mustSlice(t, rt, 64)
	require.NoError(t, rt.Run(func(p *Pass) error { return bump(p, x, 1) }))
	expect(t, x, 1)
}

// TestReuseIsOrdered gives memory to a result that has nothing to do with what used it before in the same chunk.
func TestReuseIsOrdered(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{Order: soft.Reversed})
	s := openStream(t, rt)
	y := mustSlice(t, rt, 4)
	large := func(v uint32) *Future[uint32] {
		f, err := Compute(s, largeResult/4, func(p *Pass, out Slice[uint32]) error { return fill(p, out.Slice(0, 4), v) })
		require.NoError(t, err)
		return f
	}
	a := large(1)
	require.NoError(t, s.Encode(func(p *Pass) error { return duplicate(p, y, a.Slice().Slice(0, 4)) }))
	require.NoError(t, a.Release())
	b := large(2)
	require.EqualValues(t, 1, s.Stats().Reused)
	require.Equal(t, 3, s.Stats().Pending)
	expect(t, y, 1)
	expect(t, b.Slice().Slice(0, 4), 2)
	require.NoError(t, s.Close())
}
