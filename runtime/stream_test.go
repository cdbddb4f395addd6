package runtime

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl/soft"
)

func openStream(t testing.TB, rt *Runtime) *Stream {
	t.Helper()
	s, err := rt.NewStream()
	require.NoError(t, err)
	return s
}

// expect reads a slice.
func expect(t testing.TB, x Slice[uint32], want uint32) {
	t.Helper()
	got := make([]uint32, x.Len())
	require.NoError(t, x.Read(got))
	for i := range got {
		require.Equal(t, want, got[i], "element %d", i)
	}
}

// TestChunks counts the command buffers that dispatches make, on a device that is idle and on one that is kept busy.
func TestChunks(t *testing.T) {
	d := new(fake)
	rt := d.open(t, WithMaxInFlight(MaxMaxInFlight))
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	require.NoError(t, rt.Run(func(p *Pass) error { return fill(p, x, 0) })) // the const arena has what it needs
	s := openStream(t, rt)
	step := func(n int) {
		for range n {
			require.NoError(t, s.Encode(func(p *Pass) error { return bump(p, x, 1) }))
		}
	}
	commits := func(want uint64) {
		t.Helper()
		require.Equal(t, want, s.Stats().Commits)
	}
	step(7)
	commits(0)
	require.Equal(t, 7, s.Stats().Pending)
	d.block.Lock()
	step(1)
	commits(1)
	// Busy from here on: the chunk that begins now has the limit of an idle device, the next ones twice as much each.
	step(8)
	commits(2)
	step(15)
	commits(2)
	step(1)
	commits(3)
	step(32 + 64 + 128 + 256)
	commits(7)
	step(255)
	commits(7)
	d.block.Unlock()
	require.NoError(t, s.Wait(t.Context()))
	commits(8)
	require.EqualValues(t, 8+8+16+32+64+128+256+255, s.Stats().Dispatches)
	step(8) // idle again
	commits(9)
	want := uint32(0)
	for range s.Stats().Dispatches {
		want = 3*want + 1
	}
	expect(t, x, want)
	require.NoError(t, s.Close())
}

func TestStreamWithinOneCall(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{Order: soft.Reversed})
	x, err := NewSlice[uint32](rt, 8)
	require.NoError(t, err)
	s := openStream(t, rt)
	want := uint32(0)
	require.NoError(t, s.Encode(func(p *Pass) error {
		for i := range uint32(100) {
			want = 3*want + i
			if err := bump(p, x, i); err != nil {
				return err
			}
		}
		require.Equal(t, 100, p.Count())
		return nil
	}))
	require.Greater(t, s.Stats().Commits, uint64(2), "one call makes several chunks")
	expect(t, x, want)
	require.NoError(t, s.Wait(t.Context()))
	require.NoError(t, s.Err())
	require.NoError(t, s.Close())
}

func TestFutureStates(t *testing.T) {
	d := new(fake)
	rt := d.open(t)
	s := openStream(t, rt)
	d.block.Lock()
	f, err := Compute(s, 4, func(p *Pass, out Slice[uint32]) error { return fill(p, out, 7) })
	require.NoError(t, err)
	require.Equal(t, FuturePending, f.State())
	require.False(t, f.Ready())
	sub, err := s.Commit()
	require.NoError(t, err)
	require.False(t, sub.Done())
	require.Equal(t, FutureExposed, f.State())
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	err = f.Wait(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, ErrTimeout)
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Wait(ctx), context.Canceled)
	require.NoError(t, f.Err())
	d.block.Unlock()
	var none context.Context
	require.NoError(t, f.Wait(none), "a nil context has no deadline")
	require.Equal(t, FuturePublished, f.State())
	require.True(t, f.Ready())
	require.NoError(t, f.Err())
	got := make([]uint32, 4)
	require.NoError(t, f.Read(t.Context(), got))
	require.Equal(t, []uint32{7, 7, 7, 7}, got)
	require.ErrorIs(t, f.Slice().Release(), ErrMisuse)
	require.NoError(t, f.Release())
	require.ErrorIs(t, f.Release(), ErrClosed)
	require.ErrorIs(t, f.Slice().Read(got), ErrClosed)

	empty, err := Compute(s, 0, func(p *Pass, out Slice[uint32]) error { return nil })
	require.NoError(t, err)
	require.Equal(t, FuturePublished, empty.State())
	require.NoError(t, empty.Wait(t.Context()))
	require.NoError(t, s.Close())
	for state, want := range map[FutureState]string{FuturePending: "pending", FutureExposed: "exposed", FuturePublished: "published", FutureFailed: "failed", 9: "unknown"} {
		require.Equal(t, want, state.String())
	}
}

// TestFailedCall has closures fail: the stream is as before, and nothing of them runs.
func TestFailedCall(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	s := openStream(t, rt)
	require.NoError(t, s.Encode(func(p *Pass) error { return fill(p, x, 2) }))
	boom := errors.New("boom")
	live := rt.Stats().LiveAllocations
	for range 3 {
		require.ErrorIs(t, s.Encode(func(p *Pass) error { return errors.Join(fill(p, x, 9), boom) }), boom)
		_, err = Compute(s, 4, func(p *Pass, out Slice[uint32]) error { return errors.Join(fill(p, out, 9), bump(p, x, 1), boom) })
		require.ErrorIs(t, err, boom)
		require.Panics(t, func() { _ = s.Encode(func(p *Pass) error { _ = fill(p, x, 9); panic("boom") }) })
		require.Panics(t, func() {
			_, _ = Compute(s, 4, func(p *Pass, out Slice[uint32]) error { _ = fill(p, out, 9); panic("boom") })
		})
	}
	require.Equal(t, live, rt.Stats().LiveAllocations)
	require.Equal(t, 1, s.Stats().Pending)
	require.NoError(t, s.Encode(func(p *Pass) error { return bump(p, x, 1) }))
	expect(t, x, 7)
	require.NoError(t, s.Close())
}

// TestStreamMisuse refuses at once.
func TestStreamMisuse(t *testing.T) {
	other, _ := softRuntime(t, soft.Options{})
	foreign, err := NewSlice[uint32](other, 4)
	require.NoError(t, err)
	prog, err := other.Record(func(p *Pass) error { return fill(p, foreign, 1) })
	require.NoError(t, err)
	rt, _ := softRuntime(t, soft.Options{})
	s := openStream(t, rt)
	require.ErrorIs(t, s.Encode(nil), ErrMisuse)
	_, err = Compute[uint32](s, 4, nil)
	require.ErrorIs(t, err, ErrMisuse)
	_, err = Compute(s, -1, func(p *Pass, out Slice[uint32]) error { return nil })
	require.ErrorIs(t, err, ErrShape)
	_, err = Compute[uint32](nil, 4, nil)
	require.ErrorIs(t, err, ErrMisuse)
	require.ErrorIs(t, s.Encode(func(p *Pass) error { return fill(p, foreign, 1) }), ErrForeign)
	require.ErrorIs(t, s.Replay(prog), ErrForeign)
	require.ErrorIs(t, s.Replay(nil), ErrClosed)

	// From its own closure, and from another goroutine.
	var kept *Pass
	require.NoError(t, s.Encode(func(p *Pass) error {
		kept = p
		done := make(chan error)
		go func() { done <- s.Encode(func(*Pass) error { return nil }) }()
		require.ErrorIs(t, <-done, ErrBusy)
		require.ErrorIs(t, s.Encode(func(*Pass) error { return nil }), ErrBusy)
		_, err := s.Commit()
		require.ErrorIs(t, err, ErrBusy)
		require.ErrorIs(t, s.Wait(t.Context()), ErrBusy)
		require.ErrorIs(t, s.Close(), ErrBusy)
		require.ErrorIs(t, s.FailNextCommit(), ErrBusy)
		require.ErrorIs(t, s.Replay(prog), ErrBusy)
		return nil
	}))
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	require.ErrorIs(t, fill(kept, x, 1), ErrMisuse)

	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Close(), ErrClosed)
	require.ErrorIs(t, s.Encode(func(*Pass) error { return nil }), ErrClosed)
	_, err = s.Commit()
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, s.Wait(t.Context()), ErrClosed)
	var zero *Stream
	for _, z := range []*Stream{nil, zero, {}} {
		require.ErrorIs(t, z.Encode(func(*Pass) error { return nil }), ErrMisuse)
		require.ErrorIs(t, z.Close(), ErrMisuse)
		require.ErrorIs(t, z.Err(), ErrMisuse)
		require.Zero(t, z.Stats())
	}
	var none *Future[uint32]
	for _, f := range []*Future[uint32]{nil, none, {}} {
		require.ErrorIs(t, f.Wait(t.Context()), ErrMisuse)
		require.ErrorIs(t, f.Err(), ErrMisuse)
		require.ErrorIs(t, f.Read(t.Context(), nil), ErrMisuse)
		require.ErrorIs(t, f.Release(), ErrMisuse)
		require.Equal(t, FutureFailed, f.State())
		require.Error(t, f.Slice().Valid())
	}
	open := make([]*Stream, MaxStreams)
	for i := range open {
		open[i] = openStream(t, rt)
	}
	_, err = rt.NewStream()
	require.ErrorIs(t, err, ErrLimit)
	require.NoError(t, open[0].Close())
	open[0] = openStream(t, rt)
	for _, s := range open {
		require.NoError(t, s.Encode(func(p *Pass) error { return bump(p, x, 1) })) // a pending chunk in each, one after the other
	}
	require.NoError(t, rt.Close())
	require.ErrorIs(t, open[3].Encode(func(*Pass) error { return nil }), ErrClosed)
	_, err = rt.NewStream()
	require.ErrorIs(t, err, ErrClosed)
}

// TestOrderOfCalls uses what is pending in a stream in every other way: it is committed first.
func TestOrderOfCalls(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{Order: soft.Reversed})
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	y, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	a, b := openStream(t, rt), openStream(t, rt)
	prog, err := rt.Record(func(p *Pass) error { return bump(p, x, 1) })
	require.NoError(t, err)
	pending := func(want int) {
		t.Helper()
		require.Equal(t, want, a.Stats().Pending)
	}
	add := func(s *Stream, v uint32) {
		t.Helper()
		require.NoError(t, s.Encode(func(p *Pass) error { return bump(p, x, v) }))
	}
	add(a, 1) // 1
	pending(1)
	add(b, 2) // 5
	pending(0)
	add(a, 1) // 16
	require.NoError(t, rt.Run(func(p *Pass) error { return bump(p, x, 1) }))
	pending(0) // 49
	add(a, 1)  // 148
	require.NoError(t, prog.Run())
	pending(0) // 445
	add(a, 1)  // 1336
	expect(t, x, 1336)
	pending(0)
	add(a, 1)
	require.NoError(t, x.Write([]uint32{1, 1, 1, 1}))
	pending(0)
	// Reading what is only read does not conflict.
	require.NoError(t, a.Encode(func(p *Pass) error { return duplicate(p, y, x) }))
	require.NoError(t, b.Encode(func(p *Pass) error { return p.Copy(mustSlice(t, rt, 4).View(), x.View()) }))
	expect(t, x, 1)
	pending(1)
	require.NoError(t, x.Write([]uint32{5, 5, 5, 5}))
	pending(0)
	expect(t, y, 1)
	// Replays in a stream follow what is pending there.
	add(a, 1)
	require.NoError(t, a.Replay(prog))
	pending(0)
	add(a, 1)
	require.NoError(t, a.Wait(t.Context()))
	expect(t, x, ((5*3+1)*3+1)*3+1)
	require.EqualValues(t, 1, a.Stats().Replays)
	// Within a closure, what another stream encodes at the same time is refused.
	require.NoError(t, a.Encode(func(p *Pass) error {
		require.NoError(t, bump(p, x, 1))
		require.ErrorIs(t, b.Encode(func(q *Pass) error { return bump(q, x, 1) }), ErrBusy)
		require.ErrorIs(t, x.Read(make([]uint32, 4)), ErrBusy)
		require.ErrorIs(t, rt.Run(func(q *Pass) error { return bump(q, x, 1) }), ErrBusy)
		require.ErrorIs(t, prog.Run(), ErrBusy)
		return b.Encode(func(q *Pass) error { return fill(q, y, 1) })
	}))
	require.NoError(t, errors.Join(a.Close(), b.Close()))
}

func mustSlice(t testing.TB, rt *Runtime, n int) Slice[uint32] {
	t.Helper()
	x, err := NewSlice[uint32](rt, n)
	require.NoError(t, err)
	return x
}

// TestStreamFailure fails a chunk: it, what follows in its stream and what uses its results fail, and nothing else.
func TestStreamFailure(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	x, other := mustSlice(t, rt, 4), mustSlice(t, rt, 4)
	a, b, c := openStream(t, rt), openStream(t, rt), openStream(t, rt)
	compute := func(s *Stream, from Slice[uint32]) (*Future[uint32], error) {
		return Compute(s, 4, func(p *Pass, out Slice[uint32]) error { return duplicate(p, out, from) })
	}
	good, err := compute(a, x)
	require.NoError(t, err)
	require.NoError(t, good.Wait(t.Context()))
	require.NoError(t, a.FailNextCommit())
	bad, err := compute(a, x)
	require.NoError(t, err)
	_, err = a.Commit()
	require.NoError(t, err)
	after, err := compute(a, other)
	if err == nil {
		err = after.Wait(t.Context())
	}
	require.ErrorIs(t, err, ErrDevice, "follows in the stream")
	err = bad.Wait(t.Context())
	require.ErrorIs(t, err, ErrDevice)
	require.ErrorContains(t, err, "injected failure")
	require.Equal(t, FutureFailed, bad.State())
	require.Error(t, bad.Err())
	require.ErrorIs(t, a.Err(), ErrDevice)
	require.ErrorIs(t, a.Encode(func(p *Pass) error { return nil }), ErrDevice)
	require.ErrorIs(t, a.Wait(t.Context()), ErrDevice)

	// Readers are refused at once, and their streams go on.
	_, err = compute(b, bad.Slice())
	require.ErrorIs(t, err, ErrDevice)
	require.ErrorIs(t, rt.Run(func(p *Pass) error { return duplicate(p, other, bad.Slice()) }), ErrDevice)
	require.ErrorIs(t, bad.Slice().Read(make([]uint32, 4)), ErrDevice)
	prog, err := rt.Record(func(p *Pass) error { return duplicate(p, other, bad.Slice()) })
	require.NoError(t, err)
	require.ErrorIs(t, prog.Run(), ErrDevice)
	require.ErrorIs(t, b.Replay(prog), ErrDevice)
	ok, err := compute(c, x)
	require.NoError(t, err)
	require.NoError(t, ok.Wait(t.Context()))
	require.NoError(t, errors.Join(good.Err(), rt.Err(), b.Err(), c.Err()))
	expect(t, x, 0)
	expect(t, good.Slice(), 0)

	// A part written anew is not enough; the whole is.
	require.NoError(t, bad.Slice().Slice(0, 2).Write([]uint32{1, 1}))
	require.ErrorIs(t, bad.Slice().Read(make([]uint32, 4)), ErrDevice)
	require.NoError(t, bad.Slice().Write([]uint32{1, 1, 1, 1}))
	expect(t, bad.Slice(), 1)
	require.NoError(t, prog.Run())
	require.NoError(t, a.Close())
	require.NoError(t, rt.Run(func(p *Pass) error { return bump(p, x, 1) }))
}

// TestReadersInFlight commits readers while what they read has not completed, and then fails.
func TestReadersInFlight(t *testing.T) {
	d := new(fake)
	rt := d.open(t)
	x := mustSlice(t, rt, 4)
	a, b, c := openStream(t, rt), openStream(t, rt), openStream(t, rt)
	d.block.Lock()
	require.NoError(t, a.FailNextCommit())
	bad, err := Compute(a, 4, func(p *Pass, out Slice[uint32]) error { return fill(p, out, 7) })
	require.NoError(t, err)
	reader, err := Compute(b, 4, func(p *Pass, out Slice[uint32]) error { return duplicate(p, out, bad.Slice()) })
	require.NoError(t, err)
	require.Equal(t, FutureExposed, bad.State(), "reading it commits it")
	second, err := Compute(c, 4, func(p *Pass, out Slice[uint32]) error { return duplicate(p, out, reader.Slice()) })
	require.NoError(t, err)
	direct, err := rt.Submit(func(p *Pass) error { return duplicate(p, x, second.Slice()) })
	require.NoError(t, err)
	free, err := rt.Submit(func(p *Pass) error { return fill(p, mustSlice(t, rt, 4), 7) })
	require.NoError(t, err)
	d.block.Unlock()
	for _, err := range []error{bad.Wait(t.Context()), reader.Wait(t.Context()), second.Wait(t.Context()), direct.Wait(t.Context())} {
		require.ErrorIs(t, err, ErrDevice)
		require.ErrorContains(t, err, "injected")
	}
	require.ErrorContains(t, reader.Err(), "uses what failed work wrote")
	require.NoError(t, free.Wait(t.Context()))
	require.NoError(t, rt.Err())
	for _, s := range []*Stream{a, b, c} {
		require.Error(t, s.Err())
		require.NoError(t, s.Close())
	}
	require.ErrorIs(t, x.Read(make([]uint32, 4)), ErrDevice)
}

// TestPrecedence: what failed first in the stream counts, then the error of the command buffer, then that of what it used.
func TestPrecedence(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	q := &rt.queue
	own, producer, first := &Error{Func: "own", Err: ErrDevice}, &Error{Func: "producer", Err: ErrDevice}, &Error{Func: "first", Err: ErrDevice}
	for _, c := range []struct {
		own, cause, producer, first bool
		want                        string
	}{
		{want: ""},
		{own: true, want: "own"},
		{cause: true, want: "cause"},
		{producer: true, want: "producer"},
		{own: true, producer: true, want: "own"},
		{cause: true, producer: true, want: "cause"},
		{first: true, want: "first"},
		{own: true, producer: true, first: true, want: "first"},
	} {
		q.mu.Lock()
		clear(q.failures)
		f := &flight{lane: &lane{}, producers: []uint64{1}}
		var err *Error
		if c.own {
			err = own
		}
		if c.cause {
			f.cause = &Error{Func: "cause", Err: ErrDevice}
		}
		if c.producer {
			q.failures[1] = producer
		}
		if c.first {
			f.lane.failed.set(first)
		}
		q.conclude(2, f, err)
		e := q.failures[2]
		q.mu.Unlock()
		if c.want == "" {
			require.Nil(t, e)
			require.Nil(t, f.lane.failed.get())
			continue
		}
		require.ErrorContains(t, e, c.want)
		require.NotNil(t, f.lane.failed.get())
		require.NoError(t, rt.Err())
	}
	q.mu.Lock()
	clear(q.failures)
	q.mu.Unlock()
}

// TestWaitersCommit has goroutines wait for what another one's stream has pending, while that one goes on.
func TestWaitersCommit(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	s := openStream(t, rt)
	futures := make(chan *Future[uint32], 8)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			got := make([]uint32, 4)
			for f := range futures {
				if err := f.Read(t.Context(), got); err != nil || got[0] != 5 {
					t.Errorf("%v %v", got, err)
				}
				if err := f.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 300 {
		f, err := Compute(s, 4, func(p *Pass, out Slice[uint32]) error { return fill(p, out, 5) })
		require.NoError(t, err)
		futures <- f
	}
	close(futures)
	wg.Wait()
	require.NoError(t, s.Wait(t.Context()))
	require.NoError(t, s.Close())
}
