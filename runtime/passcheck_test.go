package runtime

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// What Check accepts and refuses is what Run does; it runs nothing, keeps nothing and counts as nothing that is open.
func TestCheck(t *testing.T) {
	d := new(fake)
	rt := d.open(t)
	x, err := NewSlice[uint32](rt, 8)
	require.NoError(t, err)
	gone, err := NewSlice[uint32](rt, 8)
	require.NoError(t, err)
	require.NoError(t, gone.Release())

	calls := 0
	step := func(p *Pass) error {
		calls++
		require.Same(t, rt, p.Runtime())
		if err := fill(p, x, 1); err != nil {
			return err
		}
		return p.Copy(x.Slice(0, 4).View(), x.Slice(4, 8).View())
	}
	require.NoError(t, rt.Check(step))
	require.NoError(t, rt.Check(func(p *Pass) error { return nil }))
	require.Equal(t, 1, calls)
	n, _ := d.counts()
	require.Zero(t, n, "nothing ran")
	require.Zero(t, rt.Stats().Passes)

	own := errors.New("the closure's own")
	var e *Error
	require.Same(t, own, rt.Check(func(*Pass) error { return own }))
	require.ErrorIs(t, rt.Check(func(p *Pass) error { return fill(p, gone, 1) }), ErrClosed)
	require.ErrorAs(t, rt.Check(func(p *Pass) error { return p.PushDebugGroup("open") }), &e)
	require.Equal(t, "Runtime.Check", e.Func)
	require.ErrorAs(t, rt.Check(nil), &e)
	require.Equal(t, "encode", e.Arg)
	require.ErrorIs(t, (*Runtime)(nil).Check(step), ErrMisuse)

	// The pass is over afterwards, also after a panic.
	var kept *Pass
	require.Panics(t, func() {
		rt.Check(func(p *Pass) error {
			kept = p
			panic("in the closure")
		})
	})
	require.ErrorIs(t, fill(kept, x, 1), ErrMisuse)

	// Mapped memory can be checked, though not used now; and nothing holds the memory.
	m, err := x.Map()
	require.NoError(t, err)
	require.NoError(t, rt.Check(step))
	require.ErrorIs(t, rt.Run(step), ErrBusy)
	require.NoError(t, m.Unmap())
	require.NoError(t, x.Release())
	require.Zero(t, rt.MemStats().Live)
	require.NoError(t, rt.Close())
	require.ErrorIs(t, rt.Check(step), ErrClosed)
}

func TestCheckAllocatesOnlyThePass(t *testing.T) {
	rt := new(fake).open(t)
	x, err := NewSlice[uint32](rt, 8)
	require.NoError(t, err)
	step := func(p *Pass) error { return fill(p, x, 1) }
	require.NoError(t, rt.Check(step))
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { _ = rt.Check(step) }), 2.0, "a pass and its closures")
}
