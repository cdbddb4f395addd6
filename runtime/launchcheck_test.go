package runtime

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl/soft"
)

func TestMaxThreads(t *testing.T) {
	for _, threads := range []int{1024, 96, 33} {
		rt, _ := softRuntime(t, soft.Options{MaxThreads: threads})
		x, err := NewSlice[uint32](rt, 64)
		require.NoError(t, err)
		var kept *Launch
		require.NoError(t, rt.Run(func(p *Pass) error {
			require.Equal(t, threads, p.Kernel("fill").MaxThreads())
			l := p.Kernel("fill")
			kept = l
			l.Write(0, x.View())
			l.Uint32(1, 1)
			l.Uint32(2, 64)
			most := l.MaxThreads()
			require.ErrorIs(t, l.Dispatch(D1(1), D1(most+1)), ErrLimit)
			require.NoError(t, l.Dispatch(D1(64), D1(most)))
			if !raceEnabled {
				require.Zero(t, testing.AllocsPerRun(100, func() { _ = p.Kernel("fill").MaxThreads() }))
			}

			require.Zero(t, p.Kernel("nothing").MaxThreads())
			wrong := p.Kernel("fill")
			wrong.Uint32(-1, 1)
			require.Zero(t, wrong.MaxThreads())
			return nil
		}))
		require.Zero(t, kept.MaxThreads())
	}
	require.Zero(t, (*Launch)(nil).MaxThreads())
	require.Zero(t, (&Launch{}).MaxThreads())
}

// A launch of its own stays while others are made, is checked without being encoded, and is encoded by Dispatch.
func TestPreparedLaunches(t *testing.T) {
	rt := new(fake).open(t)
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	y, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	pool, err := NewScalarPool(rt, 1)
	require.NoError(t, err)
	five, err := NewScalar[uint32](pool, 5)
	require.NoError(t, err)
	prepare := func(l *Launch, to Slice[uint32], v uint32) *Launch {
		l.Write(0, to.View())
		l.Uint32(1, v)
		l.Uint32(2, 4)
		return l
	}
	var kept *Launch
	require.NoError(t, rt.Run(func(p *Pass) error {
		a := prepare(p.NewLaunch("fill"), x, 1)
		b := prepare(p.NewLaunch("fill"), y, 2)
		kept = a
		require.NoError(t, prepare(p.Kernel("fill"), x, 9).Dispatch(D1(1), D1(32)))
		for _, l := range []*Launch{a, b} {
			require.NoError(t, l.Check(D1(1), D1(32)))
			require.ErrorIs(t, l.Check(D1(0), D1(32)), ErrLimit)
		}
		require.Equal(t, 1, p.Count())
		require.NoError(t, a.Dispatch(D1(1), D1(32)))
		require.NoError(t, b.Dispatch(D1(1), D1(32)))
		require.Equal(t, 3, p.Count())

		// What Dispatch refuses, Check refuses in the same words.
		for _, build := range []func(l *Launch){
			func(l *Launch) {},
			func(l *Launch) { l.Uint32(-1, 1) },
			func(l *Launch) { prepare(l, x, 1).Uint32(7, 1) },
			func(l *Launch) { prepare(l, x, 1).Scalars(func(b *ScalarBinder) error { return b.Uint32(1, five) }) },
		} {
			l := p.NewLaunch("fill")
			build(l)
			check, dispatch := l.Check(D1(1), D1(1)), l.Dispatch(D1(1), D1(1))
			require.Error(t, check)
			require.Equal(t, check.Error(), dispatch.Error())
		}
		// The bind function of one launch keeps all others out.
		l := prepare(p.NewLaunch("fill"), x, 5)
		l.Scalars(func(*ScalarBinder) error {
			inner := prepare(p.Kernel("fill"), y, 7).Dispatch(D1(1), D1(32))
			return errors.Join(inner, prepare(p.NewLaunch("fill"), y, 7).Check(D1(1), D1(32)))
		})
		require.ErrorIs(t, l.Dispatch(D1(1), D1(32)), ErrMisuse)
		require.Equal(t, 3, p.Count())
		return nil
	}))
	for s, want := range map[*Slice[uint32]]uint32{&x: 1, &y: 2} {
		got := make([]uint32, 4)
		require.NoError(t, s.Read(got))
		require.Equal(t, []uint32{want, want, want, want}, got)
	}
	require.ErrorIs(t, kept.Check(D1(1), D1(1)), ErrMisuse)
	require.ErrorIs(t, kept.Dispatch(D1(1), D1(1)), ErrMisuse)
	require.ErrorIs(t, (*Launch)(nil).Check(D1(1), D1(1)), ErrMisuse)
	require.ErrorContains(t, (&Launch{}).Check(D1(1), D1(1)), "Launch.Dispatch: launch: have one of a pass that is over")
	require.ErrorIs(t, (*Pass)(nil).NewLaunch("fill").Dispatch(D1(1), D1(1)), ErrMisuse)
	called := false
	over := (*Pass)(nil).NewLaunch("fill")
	over.Scalars(func(*ScalarBinder) error { called = true; return nil })
	require.False(t, called)
}

// Check sees what keeps a pass from memory now, in Dispatch's words.
func TestCheckMemory(t *testing.T) {
	rt := new(fake).open(t)
	s := openStream(t, rt)
	mapped, lent, failed, pending := mustSlice(t, rt, 4), mustSlice(t, rt, 4), mustSlice(t, rt, 4), mustSlice(t, rt, 4)
	whole, err := mapped.Map()
	require.NoError(t, err)
	defer whole.Unmap()
	read, err := lent.MapRead()
	require.NoError(t, err)
	defer read.Unmap()
	require.NoError(t, s.FailNextCommit())
	require.NoError(t, s.Encode(func(p *Pass) error { return fill(p, failed, 7) }))
	require.ErrorIs(t, s.Wait(t.Context()), ErrDevice)
	require.NoError(t, s.Close())
	other := openStream(t, rt)

	check := func(p *Pass, x Slice[uint32], sentinel error) {
		before := p.Count()
		l := p.NewLaunch("fill")
		l.Write(0, x.View())
		l.Uint32(1, 1)
		l.Uint32(2, 4)
		c := l.Check(D1(1), D1(1))
		require.ErrorIs(t, c, sentinel)
		require.EqualError(t, l.Dispatch(D1(1), D1(1)), c.Error())
		require.Equal(t, before, p.Count())
	}
	require.NoError(t, rt.Run(func(p *Pass) error {
		check(p, mapped, ErrBusy)
		check(p, mapped.Slice(1, 3), ErrBusy)
		check(p, lent, ErrBusy)
		check(p, failed, ErrDevice)
		return nil
	}))
	require.NoError(t, other.Encode(func(p *Pass) error {
		require.NoError(t, fill(p, pending, 1))
		return rt.Run(func(q *Pass) error {
			check(q, pending, ErrBusy)
			return nil
		})
	}))
	// A recording runs nothing: only its replays are refused.
	prog, err := rt.Record(func(p *Pass) error { return fill(p, mapped, 1) })
	require.NoError(t, err)
	require.ErrorIs(t, prog.Run(), ErrBusy)
	require.NoError(t, prog.Release())
}
