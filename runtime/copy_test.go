package runtime

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl/soft"
)

func TestCopyAndFill(t *testing.T) {
	rt, dev := softRuntime(t, soft.Options{Order: soft.Reversed})
	x, y := sliceOf(t, rt, 1, 2, 3, 4), sliceOf(t, rt, 0, 0, 0, 0)
	encode := func(p *Pass) error {
		require.NoError(t, p.Copy(y.View(), x.View()))
		require.NoError(t, p.Copy(x.View(), x.View()), "nothing to do")
		require.NoError(t, p.Copy(y.Slice(2, 2).View(), x.Slice(1, 1).View()))
		require.NoError(t, p.Fill(y.Slice(1, 1).View(), 3))
		require.Equal(t, 1, p.Count())
		require.NoError(t, p.Fill(x.Slice(0, 1).View(), 0xAB))
		require.Equal(t, 1, p.Barriers(), "the copy read it")
		require.NoError(t, p.Fill(x.Slice(3, 4).View(), 0))
		require.Equal(t, 1, p.Barriers(), "after the barrier nobody touched that")
		require.NoError(t, bump(p, y, 1))
		require.Equal(t, 1, p.Barriers(), "another encoder orders them")
		require.NoError(t, p.Copy(y.Slice(0, 1).View(), y.Slice(3, 4).View()))
		require.NoError(t, p.Copy(x.Slice(1, 2).View(), y.Slice(3, 4).View()), "two readers")
		require.Equal(t, 1, p.Barriers())
		require.Equal(t, 6, p.Count())
		return nil
	}
	check := func() {
		require.Equal(t, []uint32{13, 7, 10, 13}, contents(t, y))
		require.Equal(t, []uint32{0xABABABAB, 13, 3, 0}, contents(t, x))
		require.NoError(t, x.Write([]uint32{1, 2, 3, 4}))
	}
	require.NoError(t, rt.Run(encode))
	check()
	require.EqualValues(t, 5, rt.Stats().Blits)
	require.EqualValues(t, 1, rt.Stats().Dispatches)
	prog, err := rt.Record(encode)
	require.NoError(t, err)
	require.NoError(t, prog.Run())
	check()
	s := prog.Stats()
	require.Equal(t, []int{6, 5, 1, 4}, []int{s.Commands, s.Blits, s.Barriers, s.Encoders})
	before := soft.Stats(dev).TotalMessages()
	sub, err := prog.Replay()
	require.NoError(t, err)
	require.NoError(t, sub.Wait(t.Context()))
	require.GreaterOrEqual(t, int(soft.Stats(dev).TotalMessages()-before), s.Messages)

	only, err := rt.Record(func(p *Pass) error { return p.Fill(x.View(), 1) })
	require.NoError(t, err)
	ok, why := only.Indirect()
	require.False(t, ok)
	require.Equal(t, "no dispatches", why)
	require.NoError(t, only.Run())
	require.EqualValues(t, 0x01010101, contents(t, x)[3])
}

func TestBlitRefusals(t *testing.T) {
	rt := new(fake).open(t)
	x := sliceOf(t, rt, 1, 2, 3, 4)
	foreign := sliceOf(t, new(fake).open(t), 1, 2)
	gone := sliceOf(t, rt, 1, 2)
	require.NoError(t, gone.Release())
	odd, err := NewSlice[uint8](rt, 16)
	require.NoError(t, err)
	a, b := x.Slice(0, 2).View(), x.Slice(2, 4).View()
	for _, recorded := range []bool{false, true} {
		encode := func(p *Pass) error {
			for _, c := range []struct {
				dst, src View
				want     error
			}{
				{a, x.Slice(2, 3).View(), ErrShape},
				{a, x.Slice(1, 3).View(), ErrOverlap},
				{a, View{}, ErrShape}, {View{}, b, ErrShape},
				{a, gone.View(), ErrClosed}, {gone.View(), b, ErrClosed},
				{a, foreign.View(), ErrForeign}, {foreign.View(), b, ErrForeign},
				{odd.Slice(1, 5).View(), b.Bytes(0, 4), ErrShape}, {a.Bytes(0, 3), odd.Slice(4, 7).View(), ErrShape},
				{a, b.Bytes(4, 12), ErrShape},
			} {
				require.ErrorIs(t, p.Copy(c.dst, c.src), c.want)
			}
			require.ErrorIs(t, p.Fill(View{}, 1), ErrShape)
			require.ErrorIs(t, p.Fill(gone.View(), 1), ErrClosed)
			require.ErrorIs(t, p.Fill(foreign.View(), 1), ErrForeign)
			require.ErrorIs(t, p.Fill(odd.Slice(0, 3).View(), 1), ErrShape)
			l := p.Kernel("fill")
			l.Write(0, a)
			l.Uint32(1, 7)
			l.Scalars(func(*ScalarBinder) error { require.ErrorIs(t, p.Fill(a, 1), ErrMisuse); return nil })
			require.Zero(t, p.Count())
			require.Zero(t, p.Barriers())
			return nil
		}
		if recorded {
			_, err = rt.Record(encode)
		} else {
			err = rt.Run(encode)
		}
		require.NoError(t, err)
	}
	var stale *Pass
	require.NoError(t, rt.Run(func(p *Pass) error { stale = p; return nil }))
	require.ErrorIs(t, stale.Copy(a, b), ErrMisuse)
	require.ErrorIs(t, stale.Fill(a, 1), ErrMisuse)
	require.ErrorIs(t, (*Pass)(nil).Fill(a, 1), ErrMisuse)
	require.Zero(t, rt.Stats().Blits)
	require.Zero(t, rt.Stats().Submissions)
}

// When an encoder cannot be made, the pass goes on without the command.
func TestNoBlitEncoder(t *testing.T) {
	d := new(fake)
	rt := d.open(t)
	x := sliceOf(t, rt, 1)
	encode := func(p *Pass) error {
		return errors.Join(bump(p, x, 1), p.Fill(x.View(), 1), bump(p, x, 1))
	}
	prog, err := rt.Record(encode)
	require.NoError(t, err)
	for _, selector := range []string{"blitCommandEncoder", "computeCommandEncoderWithDispatchType:"} {
		d.refuse.Store(&selector)
		require.ErrorIs(t, rt.Run(encode), ErrDevice)
		_, err = prog.Replay()
		require.ErrorIs(t, err, ErrDevice)
		d.refuse.Store(nil)
		require.Equal(t, []uint32{1}, contents(t, x))
	}
	require.NoError(t, rt.Run(func(p *Pass) error {
		selector := "blitCommandEncoder"
		require.NoError(t, bump(p, x, 1))
		d.refuse.Store(&selector)
		require.ErrorIs(t, p.Fill(x.View(), 1), ErrDevice)
		d.refuse.Store(nil)
		require.Equal(t, 1, p.Count())
		return bump(p, x, 1) // in another encoder, since the first had to end
	}))
	require.Equal(t, []uint32{13}, contents(t, x))
	require.NoError(t, prog.Run())
}

// Blits of different memory have nothing to do with each other, at whatever offsets.
func TestBlitsApart(t *testing.T) {
	rt := new(fake).open(t)
	x, y, z := sliceOf(t, rt, 1, 2), sliceOf(t, rt, 3, 4), sliceOf(t, rt, 0, 0)
	require.NoError(t, rt.Run(func(p *Pass) error {
		require.NoError(t, errors.Join(p.Fill(x.View(), 1), p.Fill(y.View(), 2), p.Fill(z.Slice(0, 1).View(), 3)))
		require.Zero(t, p.Barriers())
		require.NoError(t, p.Copy(z.Slice(1, 2).View(), y.Slice(0, 1).View()))
		require.Equal(t, 1, p.Barriers())
		return nil
	}))
	require.Equal(t, []uint32{0x03030303, 0x02020202}, contents(t, z))
}
