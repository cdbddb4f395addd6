package runtime

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl/soft"
)

func TestReplayRange(t *testing.T) {
	for name, kind := range deviceKinds {
		t.Run(name, func(t *testing.T) {
			rt, dev := softRuntime(t, kind.o, kind.opts...)
			if kind.max > 0 {
				rt.limits.indirectMax = kind.max
			}
			x, y := sliceOf(t, rt, 0), sliceOf(t, rt, 0)
			prog, err := rt.Record(func(p *Pass) error {
				return errors.Join(p.Section("one"), bump(p, x, 1), bump(p, x, 2), p.Section("two"), p.Copy(y.View(), x.View()),
					p.Section("three"), bump(p, y, 3), bump(p, y, 4), bump(p, x, 5), p.Section("end"))
			})
			require.NoError(t, err)
			require.Equal(t, []Section{{"one", 0, 2}, {"two", 2, 3}, {"three", 3, 6}, {"end", 6, 6}}, prog.Sections())
			s := prog.Stats()
			require.Equal(t, []int{6, 1, 2, 3}, []int{s.Commands, s.Blits, s.Barriers, s.Encoders})
			ran := func(want int, i, j int) {
				t.Helper()
				before := soft.Stats(dev).Dispatches
				sub, err := prog.ReplayRange(i, j)
				require.NoError(t, err)
				require.NoError(t, sub.Wait(t.Context()))
				require.EqualValues(t, want, soft.Stats(dev).Dispatches-before)
			}
			one, two := prog.Section("one")
			ran(2, one, two) // x = 5
			ran(0, 0, 0)
			ran(0, 6, 6)
			ran(0, 2, 3)                  // y = 5
			ran(1, 3, 4)                  // y = 18
			ran(2, 4, 6)                  // y = 58, x = 20
			ran(1, 1, 3)                  // x = 62, y = 62
			ran(5, 0, 6)                  // x = 187, 563, y = 563, 1692, 5080, x = 1694
			i, j := prog.Section("three") // y = 15243, 45733, x = 5087
			_, err = prog.ReplayRange(i, j)
			require.NoError(t, err)
			require.Equal(t, []uint32{5087}, contents(t, x))
			require.Equal(t, []uint32{45733}, contents(t, y))

			for _, r := range [][2]int{{-1, 2}, {2, 1}, {0, 7}, {7, 7}} {
				_, err = prog.ReplayRange(r[0], r[1])
				require.ErrorIs(t, err, ErrShape)
			}
			_, err = prog.ReplayRange(prog.Section("none"))
			require.ErrorIs(t, err, ErrShape)
			require.NoError(t, prog.Release())
			_, err = prog.ReplayRange(0, 1)
			require.ErrorIs(t, err, ErrClosed)
			require.NoError(t, rt.Close())
			require.Nil(t, (*Program)(nil).Sections())
			require.ErrorIs(t, (*Pass)(nil).Section("x"), ErrMisuse)
		})
	}
}

func TestJoin(t *testing.T) {
	for name, kind := range deviceKinds {
		t.Run(name, func(t *testing.T) {
			rt, _ := softRuntime(t, kind.o, kind.opts...)
			if kind.max > 0 {
				rt.limits.indirectMax = kind.max
			}
			x, y, z := sliceOf(t, rt, 1), sliceOf(t, rt, 2), sliceOf(t, rt, 3)
			a, err := rt.Record(func(p *Pass) error {
				return errors.Join(Bindable(p, "x", x), p.Section("a"), bump(p, x, 1))
			})
			require.NoError(t, err)
			b, err := rt.Record(func(p *Pass) error {
				return errors.Join(Bindable(p, "y", y), p.Section("b"), bump(p, y, 2))
			})
			require.NoError(t, err)
			c, err := rt.Record(func(p *Pass) error { return errors.Join(p.Section("c"), p.Copy(z.View(), x.View())) })
			require.NoError(t, err)

			ab, err := Join(a, b)
			require.NoError(t, err)
			require.Zero(t, ab.Stats().Barriers, "the two have nothing to do with each other")
			abab, err := Join(ab, ab, c)
			require.NoError(t, err)
			require.Equal(t, 1, abab.Stats().Barriers, "one orders both")
			require.Equal(t, []Section{{"a", 0, 1}, {"b", 1, 2}, {"a", 2, 3}, {"b", 3, 4}, {"c", 4, 5}}, abab.Sections())
			// The parts may go.
			for _, p := range []*Program{a, b, c, ab} {
				require.NoError(t, p.Release())
			}
			require.NoError(t, abab.Run())
			require.Equal(t, []uint32{13}, contents(t, x))
			require.Equal(t, []uint32{26}, contents(t, y))
			require.Equal(t, []uint32{13}, contents(t, z))
			w := sliceOf(t, rt, 100)
			require.NoError(t, abab.Bind(RebindName("x", w)))
			require.NoError(t, abab.Run())
			require.Equal(t, []uint32{904}, contents(t, z))
			require.NoError(t, abab.Release())
			require.NoError(t, rt.Close())
		})
	}
}

func TestJoinRefusals(t *testing.T) {
	rt := new(fake).open(t)
	x, y := sliceOf(t, rt, 1), sliceOf(t, rt, 2)
	foreign, err := new(fake).open(t).Record(func(p *Pass) error { return nil })
	require.NoError(t, err)
	record := func(s Slice[uint32]) *Program {
		prog, err := rt.Record(func(p *Pass) error { return errors.Join(Bindable(p, "it", s), bump(p, s, 1)) })
		require.NoError(t, err)
		return prog
	}
	gone := record(x)
	require.NoError(t, gone.Release())
	for _, c := range []struct {
		progs []*Program
		want  error
	}{
		{nil, ErrMisuse},
		{[]*Program{nil}, ErrClosed},
		{[]*Program{record(x), gone}, ErrClosed},
		{[]*Program{record(x), foreign}, ErrForeign},
		{[]*Program{record(x), record(y)}, ErrMisuse}, // a name for two
	} {
		_, err := Join(c.progs...)
		require.ErrorIs(t, err, c.want)
	}
	empty, err := rt.Record(func(p *Pass) error { return nil })
	require.NoError(t, err)
	joined, err := Join(empty, empty)
	require.NoError(t, err)
	require.NoError(t, joined.Run())
	joined, err = Join(empty, record(x))
	require.NoError(t, err)
	require.NoError(t, joined.Run())
	require.Equal(t, []uint32{4}, contents(t, x))
	require.NoError(t, rt.Close())
	_, err = Join(empty)
	require.ErrorIs(t, err, ErrClosed)
}

// In manual mode nothing is known of what conflicts: there is a barrier at each seam.
func TestJoinWithManualHazards(t *testing.T) {
	d := new(fake)
	rt := d.open(t, WithHazards(HazardsManual))
	x, y := sliceOf(t, rt, 1), sliceOf(t, rt, 1)
	a, err := rt.Record(func(p *Pass) error { return errors.Join(bump(p, x, 1), bump(p, y, 1)) })
	require.NoError(t, err)
	joined, err := Join(a, a, a)
	require.NoError(t, err)
	require.Equal(t, 2, joined.Stats().Barriers)
	require.NoError(t, joined.Run())
	_, barriers := d.counts()
	require.Equal(t, 2, barriers)
	require.Equal(t, []uint32{40}, contents(t, x))
}

// Between two indirect command buffers there is a barrier of the encoder, since their own order only their commands.
func TestBarrierBetweenIndirectBuffers(t *testing.T) {
	rt, dev := softRuntime(t, soft.Options{})
	rt.limits.indirectMax = 2
	x := sliceOf(t, rt, 0)
	prog, err := rt.Record(func(p *Pass) error {
		for i := range 5 {
			if err := bump(p, x, uint32(i)); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 3, prog.Stats().IndirectBuffers)
	sent := func(i, j int) (barriers, executions uint64) {
		before := soft.Stats(dev).Messages
		s, err := prog.ReplayRange(i, j)
		require.NoError(t, err)
		require.NoError(t, s.Wait(t.Context()))
		after := soft.Stats(dev).Messages
		const barrier, execute = "memoryBarrierWithScope:", "executeCommandsInBuffer:withRange:"
		return after[barrier] - before[barrier], after[execute] - before[execute]
	}
	for _, c := range [][4]uint64{{0, 5, 2, 3}, {0, 2, 0, 1}, {1, 2, 0, 1}, {1, 3, 1, 2}, {2, 4, 0, 1}, {3, 5, 1, 2}} {
		barriers, executions := sent(int(c[0]), int(c[1]))
		require.Equal(t, c[2:], []uint64{barriers, executions}, "%v", c[:2])
	}
}
