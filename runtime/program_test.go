package runtime

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// step is one dispatch, copy or fill of a random program over a few slices.
type step struct {
	op             int
	dst, src       int // slices
	dlo, slo, size int
	v              uint32
}

func randomSteps(rng *rand.Rand, slices, length int) []step {
	steps := make([]step, 1+rng.IntN(12))
	for i := range steps {
		n := 1 + rng.IntN(length/2)
		steps[i] = step{op: rng.IntN(5), dst: rng.IntN(slices), src: rng.IntN(slices), size: n,
			dlo: rng.IntN(length - n + 1), slo: rng.IntN(length - n + 1), v: rng.Uint32()}
		if s := &steps[i]; (s.op == 1 || s.op == 3) && s.src == s.dst && s.slo < s.dlo+n && s.dlo < s.slo+n {
			s.op = 2 // a copy onto itself is not defined
		}
	}
	return steps
}

// dispatches counts the steps that are no blits.
func dispatches(steps []step) (n int) {
	for _, s := range steps {
		if s.op < 3 {
			n++
		}
	}
	return n
}

func encodeSteps(p *Pass, x []Slice[uint32], steps []step) error {
	for _, s := range steps {
		dst := x[s.dst].Slice(s.dlo, s.dlo+s.size)
		var err error
		switch s.op {
		case 0:
			err = fill(p, dst, s.v)
		case 1:
			err = duplicate(p, dst, x[s.src].Slice(s.slo, s.slo+s.size))
		case 3:
			err = p.Copy(dst.View(), x[s.src].Slice(s.slo, s.slo+s.size).View())
		case 4:
			err = p.Fill(dst.View(), byte(s.v))
		default:
			err = bump(p, dst, s.v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hostSteps is what the steps do, one after another.
func hostSteps(x [][]uint32, steps []step) {
	for _, s := range steps {
		dst := x[s.dst][s.dlo : s.dlo+s.size]
		switch s.op {
		case 0:
			for i := range dst {
				dst[i] = s.v
			}
		case 1, 3:
			copy(dst, x[s.src][s.slo:s.slo+s.size])
		case 4:
			for i := range dst {
				dst[i] = s.v & 255 * 0x01010101
			}
		default:
			for i := range dst {
				dst[i] = 3*dst[i] + s.v
			}
		}
	}
}

// TestRandomPrograms runs random programs directly, recorded and replayed, and on devices of several kinds, against the
// same steps on the host.
func TestRandomPrograms(t *testing.T) {
	for name, kind := range map[string]struct {
		d    *fake
		opts []Option
		max  int
	}{
		"indirect":       {d: new(fake)},
		"split":          {d: new(fake), max: 3},
		"first families": {d: &fake{families: 7}},
		"no buffers":     {d: &fake{noICB: true}},
		"one kernel not": {d: &fake{refuseICB: "add"}},
		"turned off":     {d: new(fake), opts: []Option{WithoutIndirect()}},
	} {
		t.Run(name, func(t *testing.T) {
			rt := kind.d.open(t, kind.opts...)
			if kind.max > 0 {
				rt.limits.indirectMax = kind.max
			}
			rng := rand.New(rand.NewPCG(7, uint64(len(name))))
			const slices, length = 3, 24
			for range 150 {
				steps := randomSteps(rng, slices, length)
				want, x := make([][]uint32, slices), make([]Slice[uint32], slices)
				for i := range x {
					want[i] = make([]uint32, length)
					for j := range want[i] {
						want[i][j] = rng.Uint32()
					}
					var err error
					x[i], err = SliceOf(rt, want[i])
					require.NoError(t, err)
				}
				check := func(what string) {
					hostSteps(want, steps)
					for i := range x {
						got := make([]uint32, length)
						require.NoError(t, x[i].Read(got))
						require.Equal(t, want[i], got, "%s: slice %d after %+v", what, i, steps)
					}
				}
				require.NoError(t, rt.Run(func(p *Pass) error { return encodeSteps(p, x, steps) }))
				check("direct")
				prog, err := rt.Record(func(p *Pass) error { return encodeSteps(p, x, steps) })
				require.NoError(t, err)
				for range 3 {
					_, err := prog.Replay()
					require.NoError(t, err)
					hostSteps(want, steps)
				}
				require.NoError(t, prog.Run())
				check("replayed")
				require.NoError(t, prog.Release())
				for i := range x {
					require.NoError(t, x[i].Release())
				}
			}
			if kind.d.families == 7 {
				require.Len(t, kind.d.primed, 3, "each pipeline was set on the encoder")
			} else {
				require.Empty(t, kind.d.primed)
			}
		})
	}
}

func TestProgramFacts(t *testing.T) {
	d := new(fake)
	rt := d.open(t)
	x, err := NewSlice[uint32](rt, 8)
	require.NoError(t, err)
	y, err := NewSlice[uint32](rt, 8)
	require.NoError(t, err)
	prog, err := rt.Record(func(p *Pass) error {
		return errors.Join(fill(p, x.Slice(0, 4), 1), fill(p, x.Slice(4, 8), 2), duplicate(p, y, x), bump(p, y, 3))
	})
	require.NoError(t, err)
	n, _ := d.counts()
	require.Zero(t, n, "recording runs nothing")
	ok, why := prog.Indirect()
	require.True(t, ok)
	require.Empty(t, why)
	require.Equal(t, ProgramStats{Commands: 4, Barriers: 2, Pipelines: 3, Encoders: 1, Buffers: 3, IndirectBuffers: 1, Messages: 8, Editions: 1}, prog.Stats())
	require.Equal(t, "program of 4 commands, 2 barriers, indirect", prog.String())
	require.NoError(t, prog.Run())
	n, barriers := d.counts()
	require.Equal(t, 4, n)
	require.Equal(t, 2, barriers)
	require.EqualValues(t, mtl.ResourceUsageRead|mtl.ResourceUsageWrite, d.used[y.view.a.buf.ID()])
	require.EqualValues(t, mtl.ResourceUsageRead|mtl.ResourceUsageWrite, d.used[x.view.a.buf.ID()])
	require.EqualValues(t, mtl.ResourceUsageRead, d.used[prog.chunks[0].buf.ID()], "scalars too")

	// Memory lives as long as the program.
	require.NoError(t, x.Release())
	require.NoError(t, prog.Run())
	got := make([]uint32, 8)
	require.NoError(t, y.Read(got))
	require.Equal(t, []uint32{6, 6, 6, 6, 9, 9, 9, 9}, got)
	s, err := prog.Replay()
	require.NoError(t, err)
	require.NoError(t, prog.Release())
	require.NoError(t, s.Wait(t.Context()))
	require.ErrorIs(t, prog.Release(), ErrClosed)
	_, err = prog.Replay()
	require.ErrorIs(t, err, ErrClosed)
	_, err = (*Program)(nil).Replay()
	require.ErrorIs(t, err, ErrClosed)

	empty, err := rt.Record(func(p *Pass) error { return nil })
	require.NoError(t, err)
	require.NoError(t, empty.Run())
	require.Zero(t, empty.Stats().Messages)
	require.NoError(t, rt.Close())
	_, err = empty.Replay()
	require.ErrorIs(t, err, ErrClosed)
}

func TestIndirectOffsetLimit(t *testing.T) {
	rt := new(fake).open(t)
	rt.limits.indirectOff = 31
	x, err := NewSlice[uint32](rt, 16)
	require.NoError(t, err)
	prog, err := rt.Record(func(p *Pass) error { return fill(p, x.Slice(8, 16), 3) })
	require.NoError(t, err)
	ok, why := prog.Indirect()
	require.False(t, ok)
	require.Contains(t, why, "offset of 32")
	require.Equal(t, "program of 1 commands, 0 barriers, encoded again", prog.String())
	require.NoError(t, prog.Run())
	got := make([]uint32, 16)
	require.NoError(t, x.Read(got))
	require.EqualValues(t, 3, got[8])
}

func TestManualHazards(t *testing.T) {
	rt := new(fake).open(t, WithHazards(HazardsManual))
	x, err := NewSlice[uint32](rt, 1)
	require.NoError(t, err)
	got := []uint32{0}
	require.NoError(t, rt.Run(func(p *Pass) error {
		require.NoError(t, p.Barrier(), "before the first dispatch there is nothing to order")
		return errors.Join(fill(p, x, 1), p.Barrier(), p.Barrier(), bump(p, x, 1), p.Barrier())
	}))
	require.NoError(t, x.Read(got))
	require.EqualValues(t, 4, got[0])
	require.EqualValues(t, 1, rt.Stats().Barriers)
	// The fake runs unordered dispatches backwards: a forgotten barrier shows.
	require.NoError(t, rt.Run(func(p *Pass) error { return errors.Join(fill(p, x, 1), bump(p, x, 1)) }))
	require.NoError(t, x.Read(got))
	require.EqualValues(t, 1, got[0])
}

// messages counts what f sends. The queue's housekeeping, which sends some now and then on a goroutine of its own, rests meanwhile.
func messages(rt *Runtime, f func()) int {
	q := &rt.queue
	q.mu.Lock()
	for q.armed && !q.tidy.Stop() { // it is just running, and sets the timer again or not
		q.mu.Unlock()
		time.Sleep(time.Millisecond)
		q.mu.Lock()
	}
	q.armed = true // so that a commit leaves the timer alone
	q.mu.Unlock()
	defer q.tidy.Reset(tidyEvery)
	var n atomic.Int64
	objc.SetTrace(func(objc.ID, objc.SEL) { n.Add(1) })
	defer objc.SetTrace(nil)
	f()
	return int(n.Load())
}

func TestMessagesAndAllocations(t *testing.T) {
	for _, families := range []int{7, 9} {
		d := &fake{families: families}
		rt := d.open(t)
		x, err := NewSlice[uint32](rt, 64)
		require.NoError(t, err)
		encode := func(p *Pass) error {
			for i := range 500 {
				if err := bump(p, x.Slice(i%60, i%60+4), uint32(i)); err != nil {
					return err
				}
			}
			return nil
		}
		prog, err := rt.Record(encode)
		require.NoError(t, err)
		require.NoError(t, prog.Run())
		replay := messages(rt, func() {
			_, err := prog.Replay()
			require.NoError(t, err)
		})
		require.LessOrEqual(t, replay, 20)
		require.GreaterOrEqual(t, replay, prog.Stats().Messages)
		direct := messages(rt, func() { _, err = rt.Submit(encode) })
		require.NoError(t, err)
		t.Logf("family %d: %d messages per replay, %d of them for encoding, against %d directly", families, replay, prog.Stats().Messages, direct)
		require.Greater(t, direct, 1000)
		require.NoError(t, rt.queue.drain(t.Context(), "test"))
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, d := range []*fake{{static: true}, {static: true, noICB: true}, {static: true, families: 7}} {
		rt := d.open(t)
		x, err := NewSlice[uint32](rt, 64)
		require.NoError(t, err)
		prog, err := rt.Record(func(p *Pass) error { return errors.Join(fill(p, x, 1), bump(p, x, 2)) })
		require.NoError(t, err)
		var last Submission
		replay := func() {
			if last, err = prog.Replay(); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 * flights {
			replay()
		}
		require.Zero(t, testing.AllocsPerRun(100, replay))
		require.Zero(t, testing.AllocsPerRun(100, func() { replay(); err = last.Wait(t.Context()) }))
		encode := func(p *Pass) error {
			for i := range 100 {
				if err := bump(p, x.Slice(i%60, i%60+4), uint32(i)); err != nil {
					return err
				}
			}
			return nil
		}
		run := func() {
			if err := rt.Run(encode); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 * flights {
			run()
		}
		require.LessOrEqual(t, testing.AllocsPerRun(100, run), 1.0, "the Pass itself, which is never reused, and nothing per dispatch")
		require.NoError(t, rt.Close())
	}
}

func TestConcurrentUse(t *testing.T) {
	rt := new(fake).open(t, WithMaxInFlight(4))
	shared, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	prog, err := rt.Record(func(p *Pass) error { return bump(p, shared, 1) })
	require.NoError(t, err)
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(9, uint64(g)))
			for range 60 {
				x, err := NewSlice[uint32](rt, 1+rng.IntN(200))
				if err != nil {
					t.Error(err)
					return
				}
				v := rng.Uint32()
				if err := rt.Run(func(p *Pass) error { return errors.Join(fill(p, x, v), bump(p, x, 1)) }); err != nil {
					t.Error(err)
				}
				got := make([]uint32, x.Len())
				if err := x.Read(got); err != nil || got[len(got)-1] != 3*v+1 {
					t.Errorf("got %v, %v", got[len(got)-1], err)
				}
				if _, err := prog.Replay(); err != nil {
					t.Error(err)
				}
				if err := x.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got := make([]uint32, 4)
	require.NoError(t, shared.Read(got))
	want := uint32(0)
	for range 360 {
		want = 3*want + 1
	}
	require.Equal(t, want, got[0])
	require.NoError(t, prog.Release())
	require.EqualValues(t, 360, rt.Stats().Replays)
	require.EqualValues(t, 1, rt.Stats().Programs)
	require.EqualValues(t, 360, rt.Stats().Passes)
}

func BenchmarkEncode(b *testing.B) {
	d := &fake{static: true}
	rt := d.open(b)
	x, err := NewSlice[uint32](rt, 64)
	require.NoError(b, err)
	y, err := NewSlice[uint32](rt, 64)
	require.NoError(b, err)
	b.ReportAllocs()
	for n := 0; n < b.N; {
		require.NoError(b, rt.Run(func(p *Pass) error {
			for i := 0; i < 1000 && n < b.N; i++ {
				if err := duplicate(p, y.Slice(i%32, i%32+16), x.Slice(i%48, i%48+16)); err != nil {
					return err
				}
				n++
			}
			return nil
		}))
	}
}

func BenchmarkReplay(b *testing.B) {
	for name, opts := range map[string][]Option{"indirect": nil, "encodedAgain": {WithoutIndirect()}} {
		b.Run(name, func(b *testing.B) {
			rt := (&fake{static: true}).open(b, opts...)
			x, err := NewSlice[uint32](rt, 64)
			require.NoError(b, err)
			prog, err := rt.Record(func(p *Pass) error {
				for i := range 1000 {
					if err := bump(p, x.Slice(i%60, i%60+4), uint32(i)); err != nil {
						return err
					}
				}
				return nil
			})
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := prog.Replay(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
