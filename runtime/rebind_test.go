package runtime

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func sliceOf(t testing.TB, rt *Runtime, data ...uint32) Slice[uint32] {
	t.Helper()
	x, err := SliceOf(rt, data)
	require.NoError(t, err)
	return x
}

func contents(t testing.TB, x Slice[uint32]) []uint32 {
	t.Helper()
	got := make([]uint32, x.Len())
	require.NoError(t, x.Read(got))
	return got
}

// Barriers follow the memory: each is set and taken away in the indirect command buffer.
func TestBindPlansBarriersAnew(t *testing.T) {
	for _, opts := range [][]Option{nil, {WithoutIndirect()}} {
		d := new(fake)
		rt := d.open(t, opts...)
		x, y, z := sliceOf(t, rt, 1, 1), sliceOf(t, rt, 2, 2), sliceOf(t, rt, 9, 9)
		prog, err := rt.Record(func(p *Pass) error { return errors.Join(bump(p, x, 1), bump(p, y, 1)) })
		require.NoError(t, err)
		require.Zero(t, prog.Stats().Barriers)
		run := func(barriers int) {
			require.Equal(t, barriers, prog.Stats().Barriers)
			d.counts()
			require.NoError(t, prog.Run())
			n, b := d.counts()
			require.Equal(t, 2, n)
			require.Equal(t, barriers, b)
		}
		run(0)
		require.Equal(t, []uint32{4, 4}, contents(t, x))
		require.Equal(t, []uint32{7, 7}, contents(t, y))
		require.NoError(t, prog.Bind(Rebind(x, z), Rebind(y, z)))
		run(1) // both dispatches work on z now
		require.Equal(t, []uint32{85, 85}, contents(t, z))
		require.Equal(t, []uint32{4, 4}, contents(t, x))
		// Whatever is in z moves: the two cannot be told apart any more.
		require.NoError(t, prog.Bind(Rebind(z, x)))
		run(1)
		require.Equal(t, 1, prog.Stats().Editions, "nothing was in flight")
		require.NoError(t, prog.Release())

		prog, err = rt.Record(func(p *Pass) error { return errors.Join(bump(p, x, 1), bump(p, x.Slice(0, 1), 1)) })
		require.NoError(t, err)
		run(1)
		require.ErrorIs(t, prog.Bind(Rebind(x.Slice(0, 1), y.Slice(0, 1))), ErrOverlap, "the first dispatch uses more than that")
		run(1)
	}
}

// Swapping two slices at every replay encodes nothing after the first time, allocates nothing and waits for nothing.
func TestBindSwaps(t *testing.T) {
	for _, opts := range [][]Option{nil, {WithoutIndirect()}} {
		d := new(fake)
		rt := d.open(t, opts...)
		x, y := sliceOf(t, rt, 1), sliceOf(t, rt, 0)
		prog, err := rt.Record(func(p *Pass) error {
			return errors.Join(Bindable(p, "from", x), Bindable(p, "to", y), duplicate(p, y, x), bump(p, y, 1))
		})
		require.NoError(t, err)
		swap := func() {
			require.NoError(t, prog.Bind(Rebind(x, y), Rebind(y, x)))
			x, y = y, x
		}
		d.block.Lock() // so that all replays are in flight
		for range 9 {
			_, err = prog.Replay()
			require.NoError(t, err)
			swap()
		}
		require.Equal(t, 2, prog.Stats().Editions)
		require.Zero(t, rt.Stats().Waits)
		sent := messages(rt, func() { swap(); swap() })
		require.Zero(t, sent)
		d.block.Unlock()
		v := uint32(1)
		for range 9 {
			v = 3*v + 1
		}
		require.Equal(t, []uint32{v}, contents(t, x))
		if !raceEnabled {
			pair := [2]Rebinding{Rebind(x, y), Rebind(y, x)}
			require.Zero(t, testing.AllocsPerRun(200, func() { _ = prog.Bind(pair[0], pair[1]) }))
		}
		// A name goes with its memory.
		z := sliceOf(t, rt, 5)
		require.NoError(t, prog.Bind(RebindName("from", z)))
		require.NoError(t, prog.Run())
		require.NoError(t, prog.Bind(RebindName("from", x), RebindName("to", z)))
		require.NoError(t, prog.Run())
		require.Equal(t, []uint32{3*contents(t, x)[0] + 1}, contents(t, z))
	}
}

// With as many sets of memory in flight as a program keeps, Bind waits for one; memory that was released is let go.
func TestBindInFlight(t *testing.T) {
	d := new(fake)
	rt := d.open(t)
	x := make([]Slice[uint32], maxEditions+2)
	for i := range x {
		x[i] = sliceOf(t, rt, uint32(i))
	}
	prog, err := rt.Record(func(p *Pass) error { return bump(p, x[0], 1) })
	require.NoError(t, err)
	d.block.Lock()
	for i := range maxEditions {
		_, err = prog.Replay()
		require.NoError(t, err)
		if i+1 < maxEditions {
			require.NoError(t, prog.Bind(Rebind(x[i], x[i+1])))
		}
	}
	require.Equal(t, maxEditions, prog.Stats().Editions)
	bound := make(chan error)
	go func() { bound <- prog.Bind(Rebind(x[maxEditions-1], x[maxEditions])) }()
	select {
	case err := <-bound:
		t.Fatal("Bind did not wait: ", err)
	case <-time.After(20 * time.Millisecond):
	}
	_, err = prog.Replay() // of what is bound still, while the other waits
	require.NoError(t, err)
	d.block.Unlock()
	require.NoError(t, <-bound)
	require.NoError(t, prog.Run())
	for i := range maxEditions + 1 {
		want := 3*uint32(i) + 1
		if i == maxEditions-1 {
			want = 3*want + 1
		}
		require.Equal(t, []uint32{want}, contents(t, x[i]))
	}
	require.Equal(t, maxEditions, prog.Stats().Editions)
	for i := range maxEditions {
		require.NoError(t, x[i].Release())
	}
	require.NoError(t, prog.Bind(Rebind(x[maxEditions], x[maxEditions+1])))
	require.Equal(t, 1, prog.Stats().Editions)
	require.NoError(t, x[maxEditions].Release())
	require.Equal(t, 1, rt.Stats().LiveAllocations, "a program keeps only what it is bound to")
}

func TestBindRefusals(t *testing.T) {
	rt := new(fake).open(t)
	foreign := sliceOf(t, new(fake).open(t), 1, 2, 3, 4)
	x, y, z := sliceOf(t, rt, 1, 2, 3, 4), sliceOf(t, rt, 5, 6, 7, 8), sliceOf(t, rt, 0, 0, 0, 0)
	gone := sliceOf(t, rt, 1, 2, 3, 4)
	require.NoError(t, gone.Release())
	signed, err := NewSlice[int32](rt, 4)
	require.NoError(t, err)
	bytes, err := NewSlice[uint8](rt, 20)
	require.NoError(t, err)
	pool, err := NewScalarPool(rt, 1)
	require.NoError(t, err)
	_, err = NewScalar[uint32](pool, 1)
	require.NoError(t, err)
	prog, err := rt.Record(func(p *Pass) error {
		return errors.Join(Bindable(p, "x", x), Bindable(p, "x", x), Bindable(p, "z", z), duplicate(p, y, x), bump(p, y, 3), p.Copy(y.View(), x.View()))
	})
	require.NoError(t, err)
	wide, err := NewSlice[uint32](rt, maxRebindings+1)
	require.NoError(t, err)
	many := make([]Rebinding, maxRebindings+1)
	for i := range many {
		many[i] = Rebind(wide.Slice(i, i+1), wide.Slice(i, i+1))
	}
	for _, c := range []struct {
		name string
		list []Rebinding
		want error
		text string
	}{
		{"zero from", []Rebinding{Rebind(Slice[uint32]{}, z)}, ErrShape, "from"},
		{"zero to", []Rebinding{Rebind(x, Slice[uint32]{})}, ErrShape, "the zero Slice or View"},
		{"zero", []Rebinding{{}}, ErrShape, "no memory"},
		{"bad from", []Rebinding{Rebind(x.Slice(2, 9), z.Slice(0, 2))}, ErrShape, "from"},
		{"bad to", []Rebinding{Rebind(x, z.Slice(1, 5))}, ErrShape, "0 <= i <= j"},
		{"empty", []Rebinding{Rebind(x.Slice(0, 0), z.Slice(0, 0))}, ErrShape, "no memory"},
		{"length", []Rebinding{Rebind(x, z.Slice(0, 3))}, ErrShape, "have 12 bytes, need 16"},
		{"released", []Rebinding{Rebind(x, gone)}, ErrClosed, "to"},
		{"foreign", []Rebinding{Rebind(x, foreign)}, ErrForeign, "to"},
		{"unused", []Rebinding{Rebind(z, x)}, ErrMisuse, "does not use"},
		{"unused name", []Rebinding{RebindName("z", x)}, ErrMisuse, "does not use"},
		{"part", []Rebinding{Rebind(x.Slice(0, 2), z.Slice(0, 2))}, ErrOverlap, "as a whole"},
		{"no such name", []Rebinding{RebindName("w", z)}, ErrMisuse, "no such name"},
		{"element", []Rebinding{RebindName("x", signed)}, ErrShape, "have elements of int32, need uint32"},
		{"twice", []Rebinding{Rebind(x, z), RebindName("x", z)}, ErrOverlap, "moved once"},
		{"aliasing", []Rebinding{Rebind(x, y)}, ErrOverlap, "command 0"},
		{"second is wrong", []Rebinding{Rebind(x, z), Rebind(y, gone)}, ErrClosed, "to"},
		{"many", many, ErrLimit, "several calls"},
	} {
		err := prog.Bind(c.list...)
		require.ErrorIs(t, err, c.want, c.name)
		require.ErrorContains(t, err, c.text, c.name)
	}
	require.NoError(t, prog.Bind(), "nothing")
	odd, err := NewSlice[uint8](rt, 17)
	require.NoError(t, err)
	prog2, err := rt.Record(func(p *Pass) error { return p.Copy(bytes.Slice(0, 16).View(), x.View()) })
	require.NoError(t, err)
	require.ErrorContains(t, prog2.Bind(Rebind(bytes.Slice(0, 16), odd.Slice(1, 17))), "multiple of 4")
	l := func(p *Pass) error {
		l := p.Kernel("add")
		l.ReadWrite(0, bytes.Slice(0, 16).View())
		l.Uint32(1, 3)
		l.Uint32(2, 4)
		return l.Dispatch(D1(1), D1(1))
	}
	prog3, err := rt.Record(l)
	require.NoError(t, err)
	require.ErrorContains(t, prog3.Bind(Rebind(bytes.Slice(0, 16), odd.Slice(1, 17))), "have byte offset 1 for command 0, need a multiple of 4")

	// Nothing changed.
	require.NoError(t, prog.Run())
	require.Equal(t, []uint32{1, 2, 3, 4}, contents(t, y))
	require.NoError(t, prog.Release())
	require.ErrorIs(t, prog.Bind(Rebind(x, z)), ErrClosed)
	require.ErrorIs(t, (*Program)(nil).Bind(), ErrClosed)

	require.NoError(t, rt.Run(func(p *Pass) error {
		require.NoError(t, Bindable(p, "x", x))
		require.ErrorIs(t, Bindable(p, "x", gone), ErrClosed)
		require.ErrorIs(t, Bindable(p, "x", foreign), ErrForeign)
		return nil
	}))
	require.ErrorIs(t, Bindable((*Pass)(nil), "x", x), ErrMisuse)
	_, err = rt.Record(func(p *Pass) error { return errors.Join(Bindable(p, "x", x), Bindable(p, "x", y)) })
	require.ErrorIs(t, err, ErrMisuse)
}

// In manual mode the barriers are the caller's: they cannot be right for memory that overlaps.
func TestBindWithManualHazards(t *testing.T) {
	rt := new(fake).open(t, WithHazards(HazardsManual))
	x, y, z := sliceOf(t, rt, 1), sliceOf(t, rt, 2), sliceOf(t, rt, 3)
	prog, err := rt.Record(func(p *Pass) error { return errors.Join(bump(p, x, 1), bump(p, y, 1), p.Barrier(), bump(p, x, 1)) })
	require.NoError(t, err)
	require.ErrorIs(t, prog.Bind(Rebind(x, y)), ErrOverlap)
	require.NoError(t, prog.Bind(Rebind(x, z)))
	require.Equal(t, 1, prog.Stats().Barriers)
	require.NoError(t, prog.Run())
	require.Equal(t, []uint32{31}, contents(t, z))
	require.Equal(t, []uint32{7}, contents(t, y))
}

// Offsets that an indirect command cannot hold make replays encode again, until the program is bound to others.
func TestBindBeyondOffsetLimit(t *testing.T) {
	rt := new(fake).open(t)
	rt.limits.indirectOff = 31
	x := sliceOf(t, rt, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	prog, err := rt.Record(func(p *Pass) error { return fill(p, x.Slice(0, 1), 7) })
	require.NoError(t, err)
	for i, from := range []int{0, 8, 1, 2} {
		if i > 0 {
			before := []int{0, 8, 1, 2}[i-1]
			require.NoError(t, prog.Bind(Rebind(x.Slice(before, before+1), x.Slice(from, from+1))))
		}
		ok, why := prog.Indirect()
		require.Equal(t, from < 8, ok, why)
		require.NoError(t, prog.Run())
		require.EqualValues(t, 7, contents(t, x)[from])
	}
}

// When a command of an indirect command buffer cannot be changed, replays encode again and are right.
func TestBindWithoutCommands(t *testing.T) {
	d := new(fake)
	rt := d.open(t)
	x, y := sliceOf(t, rt, 1), sliceOf(t, rt, 2)
	prog, err := rt.Record(func(p *Pass) error { return bump(p, x, 1) })
	require.NoError(t, err)
	selector := "indirectComputeCommandAtIndex:"
	d.refuse.Store(&selector)
	require.NoError(t, prog.Bind(Rebind(x, y)))
	d.refuse.Store(nil)
	ok, why := prog.Indirect()
	require.False(t, ok)
	require.Contains(t, why, selector)
	require.NoError(t, prog.Run())
	require.Equal(t, []uint32{7}, contents(t, y))
	require.NoError(t, prog.Bind(Rebind(y, x)))
	ok, _ = prog.Indirect()
	require.True(t, ok)
	require.NoError(t, prog.Run())
	require.Equal(t, []uint32{4}, contents(t, x))
}

// Several goroutines bind and replay one program: each replay works on one of the sets of memory as a whole.
func TestBindConcurrently(t *testing.T) {
	rt := new(fake).open(t)
	x, y := sliceOf(t, rt, 0, 0), sliceOf(t, rt, 0, 0)
	prog, err := rt.Record(func(p *Pass) error {
		return errors.Join(Bindable(p, "x", x), p.Copy(x.Slice(1, 2).View(), x.Slice(0, 1).View()), bump(p, x.Slice(0, 1), 1))
	})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 50 {
				to := x
				if (i+g)%2 == 0 {
					to = y
				}
				if err := prog.Bind(RebindName("x", to)); err != nil {
					t.Error(err)
				}
				if _, err := prog.Replay(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	total := 0
	for _, s := range []Slice[uint32]{x, y} {
		v := contents(t, s)
		n := uint32(0)
		for n != v[0] {
			require.LessOrEqual(t, total, 200)
			total++
			require.False(t, 3*n+1 == v[0] && v[1] != n)
			n = 3*n + 1
		}
	}
	require.Equal(t, 200, total)
}
