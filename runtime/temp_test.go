package runtime

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl/soft"
)

func TestTempArena(t *testing.T) {
	for name, o := range memoryKinds {
		for _, storage := range []Storage{Shared, Private} {
			t.Run(name+" "+storage.String(), func(t *testing.T) {
				rt, _ := softRuntime(t, o)
				arena, err := NewTempArena(rt, 2000, storage)
				require.NoError(t, err)
				out, err := NewSlice[uint32](rt, 8)
				require.NoError(t, err)
				for range 5 {
					a, err := Temp[uint8](arena, 1)
					require.NoError(t, err)
					b, err := Temp[uint32](arena, 8)
					require.NoError(t, err)
					c, err := Temp[uint32](arena, 300)
					require.NoError(t, err)
					require.Equal(t, storage, c.Storage())
					for _, v := range []View{a.View(), b.View(), c.View()} {
						require.Zero(t, v.Offset()%tempAlign)
					}
					require.False(t, a.View().Overlaps(b.View()) || b.View().Overlaps(c.View()))
					require.Equal(t, 512+1200, arena.Len())
					got := make([]uint32, 300)
					require.NoError(t, c.Read(got))
					require.Equal(t, make([]uint32, 300), got, "zero, each time")
					_, err = rt.Submit(func(p *Pass) error {
						return errors.Join(fill(p, b, 2), fill(p, c, 7), bump(p, b, 1), duplicate(p, out, b))
					})
					require.NoError(t, err)
					require.ErrorIs(t, b.Release(), ErrMisuse, "not by itself")
					require.NoError(t, arena.Reset(), "waits for the work")
					require.Zero(t, arena.Len())
					require.ErrorIs(t, b.Valid(), ErrClosed)
					require.ErrorIs(t, b.Read(make([]uint32, 8)), ErrClosed)
					require.NoError(t, rt.Run(func(p *Pass) error {
						require.ErrorIs(t, fill(p, b, 1), ErrClosed)
						return nil
					}))
					require.NoError(t, out.Read(got[:8]))
					require.EqualValues(t, 7, got[0])
				}
				require.Equal(t, 1712, arena.High())
				require.Equal(t, 2000, arena.Cap())
				require.Equal(t, 2000+32, rt.MemStats().Live, "its memory counts once")
				require.NoError(t, arena.Release())
				require.ErrorIs(t, arena.Release(), ErrClosed)
				require.ErrorIs(t, arena.Reset(), ErrClosed)
				_, err = Temp[uint8](arena, 1)
				require.ErrorIs(t, err, ErrClosed)
				require.NoError(t, rt.Wait(t.Context()))
				require.Equal(t, 32, rt.MemStats().Live)
			})
		}
	}
}

func TestTempArenaRefusals(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	for _, n := range []int{0, -1} {
		_, err := NewTempArena(rt, n)
		require.ErrorIs(t, err, ErrShape)
	}
	_, err := NewTempArena(nil, 1)
	require.ErrorIs(t, err, ErrMisuse)
	_, err = NewTempArena(rt, 1, Managed)
	require.ErrorIs(t, err, ErrMisuse)
	for _, none := range []*TempArena{nil, {}} {
		_, err = Temp[uint8](none, 1)
		require.ErrorIs(t, err, ErrMisuse)
		require.ErrorIs(t, none.Reset(), ErrMisuse)
		require.ErrorIs(t, none.Release(), ErrMisuse)
		require.Zero(t, none.Len()+none.Cap()+none.High())
	}
	arena, err := NewTempArena(rt, 1024)
	require.NoError(t, err)
	_, err = Temp[uint32](arena, -1)
	require.ErrorIs(t, err, ErrShape)
	_, err = Temp[uint64](arena, 1<<61)
	require.ErrorIs(t, err, ErrShape)
	_, err = Temp[uint32](arena, 1<<60)
	require.ErrorIs(t, err, ErrLimit)
	x, err := Temp[uint32](arena, 200)
	require.NoError(t, err)
	_, err = Temp[uint32](arena, 1)
	require.ErrorIs(t, err, ErrLimit, "it starts at 1024")
	require.ErrorContains(t, err, "800")
	empty, err := Temp[uint32](arena, 0)
	require.NoError(t, err)
	require.Zero(t, empty.Len())

	// Whatever still uses a temporary keeps it.
	prog, err := rt.Record(func(p *Pass) error { return fill(p, x, 1) })
	require.NoError(t, err)
	require.ErrorIs(t, arena.Reset(), ErrBusy)
	require.NoError(t, prog.Run())
	require.NoError(t, x.Read(make([]uint32, 200)))
	require.NoError(t, prog.Release())
	m, err := x.MapRead()
	require.NoError(t, err)
	require.ErrorIs(t, arena.Reset(), ErrBusy)
	require.EqualValues(t, 1, m.Data()[199])
	require.NoError(t, m.Unmap())
	require.NoError(t, rt.Run(func(p *Pass) error {
		require.NoError(t, fill(p, x, 2))
		require.ErrorIs(t, arena.Reset(), ErrBusy)
		return nil
	}))
	require.NoError(t, arena.Reset())
	require.NoError(t, arena.Reset(), "nothing to do")

	x, err = Temp[uint32](arena, 4)
	require.NoError(t, err)
	_, err = rt.Submit(func(p *Pass) error { return fill(p, x, 2) })
	require.NoError(t, err)
	require.NoError(t, arena.Release(), "the work keeps the memory")
	require.NoError(t, rt.Wait(t.Context()))
	require.Zero(t, rt.MemStats().Live)
	arena, err = NewTempArena(rt, 64)
	require.NoError(t, err)
	require.NoError(t, rt.Close())
	require.ErrorIs(t, arena.Reset(), ErrClosed)
	_, err = Temp[uint8](arena, 1)
	require.ErrorIs(t, err, ErrClosed)
}

func TestTempAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	rt := new(fake).open(t)
	arena, err := NewTempArena(rt, 1<<20)
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if _, err := Temp[uint32](arena, 16); err != nil {
			t.Fatal(err)
		}
	}))
}

// TestTempArenaAndStreams resets after failures and pending work of a stream: what follows is as new.
func TestTempArenaAndStreams(t *testing.T) {
	for _, storage := range []Storage{Shared, Private} {
		rt, _ := softRuntime(t, soft.Options{})
		arena, err := NewTempArena(rt, 1024, storage)
		require.NoError(t, err)
		s, err := rt.NewStream()
		require.NoError(t, err)
		x, err := Temp[uint32](arena, 8)
		require.NoError(t, err)
		require.NoError(t, s.Encode(func(p *Pass) error { return fill(p, x, 5) }))
		require.NoError(t, arena.Reset(), "commits what the stream has pending")
		x, err = Temp[uint32](arena, 8)
		require.NoError(t, err)
		got := make([]uint32, 8)
		require.NoError(t, x.Read(got))
		require.Equal(t, make([]uint32, 8), got)

		require.NoError(t, s.Encode(func(p *Pass) error { return fill(p, x, 6) }))
		require.NoError(t, s.FailNextCommit())
		_, _ = s.Commit()
		require.ErrorIs(t, x.Read(got), ErrDevice)
		require.NoError(t, rt.Err())
		require.NoError(t, arena.Reset(), "the failure is over with the temporaries")
		x, err = Temp[uint32](arena, 8)
		require.NoError(t, err)
		require.NoError(t, x.Read(got))
		require.NoError(t, rt.Run(func(p *Pass) error { return bump(p, x, 1) }))
		_ = s.Close()
	}
}

// TestMappingsAndStreams maps what a stream has pending, and lets it encode nothing on what is mapped.
func TestMappingsAndStreams(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	s, err := rt.NewStream()
	require.NoError(t, err)
	x, err := NewSlice[uint32](rt, 8)
	require.NoError(t, err)
	require.NoError(t, s.Encode(func(p *Pass) error { return fill(p, x, 5) }))
	m, err := x.Map()
	require.NoError(t, err)
	require.EqualValues(t, 5, m.Data()[7])
	require.ErrorIs(t, s.Encode(func(p *Pass) error { return fill(p, x, 6) }), ErrBusy)
	require.NoError(t, m.Unmap())
	require.NoError(t, s.Encode(func(p *Pass) error { return fill(p, x, 6) }))
	require.NoError(t, s.FailNextCommit())
	_, _ = s.Commit()
	_, err = x.Map()
	require.ErrorIs(t, err, ErrDevice, "it would show what failed work wrote")
	require.NoError(t, x.Write(make([]uint32, 8)))
	m, err = x.Map()
	require.NoError(t, err)
	require.NoError(t, m.Unmap())
	_ = s.Close()
}

// TestTempArenaUnderUse takes, uses and resets on several goroutines.
func TestTempArenaUnderUse(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{NoHazards: true})
	arena, err := NewTempArena(rt, 4096)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for i := range 200 {
				x, err := Temp[uint32](arena, 16)
				if errors.Is(err, ErrLimit) {
					if err := arena.Reset(); err != nil && !errors.Is(err, ErrBusy) {
						t.Error(err)
						return
					}
					continue
				}
				if err == nil {
					err = rt.Run(func(p *Pass) error { return fill(p, x, uint32(i)) })
				}
				if err != nil && !errors.Is(err, ErrClosed) {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, arena.Reset())
	require.NoError(t, arena.Release())
	require.Zero(t, rt.MemStats().Live)
}
