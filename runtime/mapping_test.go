package runtime

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl/soft"
)

// TestReadWaitsForItsBytes holds the device up: reads and writes of bytes that pending work does not touch go on, and
// those of bytes that it does are waited for.
func TestReadWaitsForItsBytes(t *testing.T) {
	for name, submit := range map[string]func(rt *Runtime, encode func(p *Pass) error) (Submission, error){
		"direct": func(rt *Runtime, encode func(p *Pass) error) (Submission, error) { return rt.Submit(encode) },
		"replayed": func(rt *Runtime, encode func(p *Pass) error) (Submission, error) {
			prog, err := rt.Record(encode)
			if err != nil {
				return Submission{}, err
			}
			defer func() { _ = prog.Release() }()
			return prog.Replay()
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := new(fake)
			rt := d.open(t)
			x, err := SliceOf(rt, make([]uint32, 64))
			require.NoError(t, err)
			d.block.Lock()
			s, err := submit(rt, func(p *Pass) error {
				return errors.Join(fill(p, x.Slice(16, 24), 7), duplicate(p, x.Slice(32, 40), x.Slice(0, 8)))
			})
			require.NoError(t, err)
			part := make([]uint32, 8)
			require.NoError(t, x.Slice(0, 8).Read(part), "it is only read")
			require.NoError(t, x.Slice(8, 16).Read(part))
			require.NoError(t, x.Slice(8, 16).Write(part))
			require.NoError(t, x.Slice(24, 32).Write(part))
			require.False(t, s.Done())
			m, err := x.Slice(8, 16).Map()
			require.NoError(t, err)
			require.NoError(t, m.Unmap())
			m, err = x.Slice(0, 8).MapRead()
			require.NoError(t, err)
			require.NoError(t, m.Unmap())
			require.False(t, s.Done())

			for what, wait := range map[string]func() error{
				"read":        func() error { return x.Slice(23, 31).Read(make([]uint32, 8)) },
				"write":       func() error { return x.Slice(17, 18).Write([]uint32{7}) },
				"write again": func() error { return x.Slice(0, 1).Write([]uint32{0}) },
				"map":         func() error { m, err := x.Slice(7, 9).Map(); return errors.Join(err, m.Unmap()) },
				"map to read": func() error { m, err := x.Slice(39, 64).MapRead(); return errors.Join(err, m.Unmap()) },
			} {
				done := make(chan error, 1)
				go func() { done <- wait() }()
				select {
				case err := <-done:
					t.Errorf("%s did not wait: %v", what, err)
				case <-time.After(5 * time.Millisecond):
					t.Cleanup(func() { require.NoError(t, <-done) })
				}
			}
			d.block.Unlock()
			require.NoError(t, s.Wait(t.Context()))
			require.NoError(t, x.Slice(16, 24).Read(part))
			require.EqualValues(t, 7, part[7])
		})
	}
}

// TestUsesOfManyRanges has more ranges in a pass than are kept apart: none is forgotten.
func TestUsesOfManyRanges(t *testing.T) {
	d := new(fake)
	rt := d.open(t)
	const n = 3 * maxUseSpans
	x, err := NewSlice[uint32](rt, 8*n)
	require.NoError(t, err)
	d.block.Lock()
	_, err = rt.Submit(func(p *Pass) error {
		for i := range n {
			if err := fill(p, x.Slice(8*i, 8*i+2), uint32(i)); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
	last := x.view.a.lastW.Load()
	for i := range n {
		require.NotZero(t, rt.queue.conflict(x.view.a, hostRange{lo: 32 * i, hi: 32*i + 4}, last), "range %d", i)
	}
	free := 0
	for i := range n {
		if rt.queue.conflict(x.view.a, hostRange{lo: 32*i + 8, hi: 32*i + 32}, last) == 0 {
			free++
		}
	}
	require.GreaterOrEqual(t, free, maxUseSpans-1)
	d.block.Unlock()
	require.NoError(t, rt.Wait(t.Context()))
}

func TestMapping(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	x, err := NewSlice[uint32](rt, 64)
	require.NoError(t, err)
	y, err := NewSlice[uint32](rt, 64)
	require.NoError(t, err)
	prog, err := rt.Record(func(p *Pass) error { return duplicate(p, y.Slice(0, 16), x.Slice(0, 16)) })
	require.NoError(t, err)
	other, err := rt.Record(func(p *Pass) error { return duplicate(p, y.Slice(0, 16), x.Slice(32, 48)) })
	require.NoError(t, err)
	require.NoError(t, rt.Run(func(p *Pass) error { return fill(p, x, 3) }))

	m, err := x.Slice(8, 24).Map()
	require.NoError(t, err)
	data := m.Data()
	require.Len(t, data, 16)
	require.EqualValues(t, 3, data[0])
	for i := range data {
		data[i] = uint32(i)
	}
	require.Equal(t, 1, rt.MemStats().Mappings)
	require.Equal(t, 64, rt.MemStats().Mapped)

	// Work on these bytes is refused, in a pass and as a replay; the pass goes on with other work.
	require.NoError(t, rt.Run(func(p *Pass) error {
		require.ErrorIs(t, duplicate(p, y.Slice(0, 8), x.Slice(23, 31)), ErrBusy)
		require.ErrorIs(t, fill(p, x.Slice(0, 9), 1), ErrBusy)
		require.Zero(t, p.Count())
		return fill(p, x.Slice(24, 64), 5)
	}))
	_, err = prog.Replay()
	require.ErrorIs(t, err, ErrBusy)
	require.ErrorContains(t, err, "mapped")
	require.NoError(t, other.Run(), "on other bytes")
	_, err = rt.Record(func(p *Pass) error { return fill(p, x, 1) })
	require.NoError(t, err, "recording runs nothing")
	// So are the host's own accesses.
	require.ErrorIs(t, x.Slice(0, 9).Read(make([]uint32, 9)), ErrBusy)
	require.ErrorIs(t, x.Write(make([]uint32, 64)), ErrBusy)
	_, err = x.Slice(23, 25).MapRead()
	require.ErrorIs(t, err, ErrBusy)
	_, err = x.Map()
	require.ErrorIs(t, err, ErrBusy)
	require.NoError(t, x.Slice(24, 64).Write(make([]uint32, 40)))
	require.NoError(t, x.Slice(0, 8).Read(make([]uint32, 8)))
	beside, err := x.Slice(24, 32).Map()
	require.NoError(t, err)
	require.NoError(t, beside.Unmap())

	require.NoError(t, m.Unmap())
	require.ErrorIs(t, m.Unmap(), ErrClosed)
	require.Nil(t, m.Data())
	require.Zero(t, rt.MemStats().Mappings)
	require.Zero(t, rt.MemStats().Mapped)
	require.NoError(t, prog.Run())
	got := make([]uint32, 16)
	require.NoError(t, y.Slice(0, 16).Read(got))
	require.Equal(t, []uint32{3, 3, 3, 3, 3, 3, 3, 3, 0, 1, 2, 3, 4, 5, 6, 7}, got)
}

// TestMapForReading lets what only reads go on.
func TestMapForReading(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	x, err := SliceOf(rt, []uint32{1, 2, 3, 4})
	require.NoError(t, err)
	y, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	m, err := x.MapRead()
	require.NoError(t, err)
	again, err := x.Slice(1, 3).MapRead()
	require.NoError(t, err)
	require.Equal(t, []uint32{2, 3}, again.Data())
	require.NoError(t, rt.Run(func(p *Pass) error {
		require.ErrorIs(t, bump(p, x, 1), ErrBusy)
		return duplicate(p, y, x)
	}))
	got := make([]uint32, 4)
	require.NoError(t, x.Read(got))
	require.ErrorIs(t, x.Write(got), ErrBusy)
	_, err = x.Map()
	require.ErrorIs(t, err, ErrBusy)
	require.NoError(t, m.Unmap())
	require.ErrorIs(t, x.Slice(2, 3).Write(got[:1]), ErrBusy, "the other one is still held")
	require.NoError(t, x.Slice(0, 1).Write(got[:1]))
	require.NoError(t, again.Unmap())
	require.NoError(t, rt.Run(func(p *Pass) error { return bump(p, x, 1) }))
}

func TestMappingRefusals(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	x, err := NewSlice[uint32](rt, 8)
	require.NoError(t, err)
	_, err = x.Slice(3, 9).Map()
	require.ErrorIs(t, err, ErrShape)
	_, err = Slice[uint32]{}.MapRead()
	require.ErrorIs(t, err, ErrShape)
	empty, err := x.Slice(4, 4).Map()
	require.NoError(t, err)
	require.Empty(t, empty.Data())
	require.NotNil(t, empty.Data())
	require.NoError(t, x.Write(make([]uint32, 8)), "no bytes are mapped")
	require.NoError(t, empty.Unmap())
	require.ErrorIs(t, empty.Unmap(), ErrClosed)
	var none *Mapping[uint32]
	require.ErrorIs(t, none.Unmap(), ErrClosed)
	require.Nil(t, none.Data())
	require.NoError(t, rt.Run(func(p *Pass) error {
		require.NoError(t, fill(p, x.Slice(0, 4), 1))
		_, err := x.Map()
		require.ErrorIs(t, err, ErrBusy)
		_, err = x.MapRead()
		require.ErrorIs(t, err, ErrBusy)
		return nil
	}))
	require.NoError(t, x.Release())
	_, err = x.Map()
	require.ErrorIs(t, err, ErrClosed)
}

// TestMappingOutlivesItsOwner keeps the memory of a mapping while its slice is released and the runtime closed.
func TestMappingOutlivesItsOwner(t *testing.T) {
	rt, dev := softRuntime(t, soft.Options{})
	x, err := SliceOf(rt, []uint32{5, 6, 7, 8})
	require.NoError(t, err)
	y, err := SliceOf(rt, []uint32{1})
	require.NoError(t, err)
	m, err := x.Map()
	require.NoError(t, err)
	n, err := y.MapRead()
	require.NoError(t, err)
	require.NoError(t, x.Release())
	z, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	require.NotEqual(t, x.view.a.buf, z.view.a.buf, "not given away")
	require.NoError(t, rt.Close())
	require.NotZero(t, soft.Stats(dev).Objects)
	m.Data()[0]++
	require.EqualValues(t, 6, m.Data()[0])
	require.NoError(t, m.Unmap())
	require.NoError(t, n.Unmap())
	require.ErrorIs(t, n.Unmap(), ErrClosed)
}

// TestMappingAgainstSubmitters maps, copies, encodes and replays on several goroutines: the two sides never see each
// other, and everything is refused or right.
func TestMappingAgainstSubmitters(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{NoHazards: true})
	const length = 32
	x, err := NewSlice[uint32](rt, length)
	require.NoError(t, err)
	prog, err := rt.Record(func(p *Pass) error { return fill(p, x, 1) })
	require.NoError(t, err)
	uniform := func(data []uint32, what string) {
		for _, v := range data {
			if v != data[0] {
				t.Errorf("%s sees %v", what, data)
				return
			}
		}
	}
	var wg sync.WaitGroup
	var done [4]int
	for i, work := range []func() error{
		func() error { _, err := prog.Replay(); return err },
		func() error { return rt.Run(func(p *Pass) error { return fill(p, x, 2) }) },
		func() error {
			m, err := x.Map()
			if err != nil {
				return err
			}
			uniform(m.Data(), "a mapping")
			for i := range m.Data() {
				m.Data()[i] = 3
			}
			time.Sleep(10 * time.Microsecond)
			uniform(m.Data(), "a mapping")
			return m.Unmap()
		},
		func() error {
			got := make([]uint32, length)
			if err := x.Read(got); err != nil {
				return err
			}
			uniform(got, "a read")
			return nil
		},
	} {
		wg.Go(func() {
			for end := time.Now().Add(60 * time.Millisecond); time.Now().Before(end); {
				if err := work(); err == nil {
					done[i]++
				} else if !errors.Is(err, ErrBusy) {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, rt.Wait(t.Context()))
	t.Log("replays, passes, mappings, reads:", done)
}

// TestNotingRangesAllocatesNothing counts what noting ranges costs in a steady state.
func TestNotingRangesAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	d := &fake{static: true}
	rt := d.open(t)
	x, err := NewSlice[uint32](rt, 64)
	require.NoError(t, err)
	encode := func(p *Pass) error {
		for i := range 8 {
			if err := fill(p, x.Slice(8*i, 8*i+4), 1); err != nil {
				return err
			}
		}
		return nil
	}
	for range 100 {
		require.NoError(t, rt.Run(encode))
	}
	n := testing.AllocsPerRun(100, func() {
		if err := rt.Run(encode); err != nil {
			t.Fatal(err)
		}
	})
	require.LessOrEqual(t, n, 1.0, "the pass itself")
	b := make([]uint32, 4)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if err := errors.Join(x.Slice(0, 4).Read(b), x.Slice(0, 4).Write(b)); err != nil {
			t.Fatal(err)
		}
	}))
}
