package runtime

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft"
)

// TestSeveralOfEach has several goroutines use several streams of several runtimes on several devices at the same time, with
// memory that all streams of a runtime read, results handed from stream to stream, and failures in some: each result is
// right or an error, and what failed concerns nobody else.
func TestSeveralOfEach(t *testing.T) {
	goroutines := goruntime.NumGoroutine()
	rounds := 40
	if testing.Short() {
		rounds = 15
	}
	var runtimes []*Runtime
	devices := []mtl.Device{softDevice(t, soft.Options{Workers: 1, Order: soft.Shuffled}), softDevice(t, soft.Options{Workers: 1, Order: soft.Reversed})}
	for _, dev := range devices {
		for range 2 {
			rt, err := Open(WithDevice(dev), WithLibrary(testKernels))
			require.NoError(t, err)
			runtimes = append(runtimes, rt)
		}
	}
	var wg sync.WaitGroup
	for _, rt := range runtimes {
		weights, err := SliceOf(rt, []uint32{1, 2, 3, 4})
		require.NoError(t, err)
		handed := make(chan *Future[uint32], 4)
		var producers sync.WaitGroup
		for g := range 2 {
			producers.Add(1)
			wg.Go(func() {
				defer producers.Done()
				if err := produce(rt, weights, handed, rounds, uint32(g)); err != nil {
					t.Error("producer: ", err)
				}
			})
		}
		go func() { producers.Wait(); close(handed) }()
		wg.Go(func() {
			if err := consume(t, rt, handed); err != nil {
				t.Error("consumer: ", err)
			}
		})
		wg.Go(func() { // passes and replays beside them
			mine, err := NewSlice[uint32](rt, 4)
			if err != nil {
				t.Error(err)
				return
			}
			prog, err := rt.Record(func(p *Pass) error { return errors.Join(duplicate(p, mine, weights), bump(p, mine, 1)) })
			for i := 0; i < rounds && err == nil; i++ {
				got := make([]uint32, 4)
				if err = errors.Join(prog.Run(), mine.Read(got)); err == nil && got[3] != 13 {
					err = fmt.Errorf("a replay gave %v", got)
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, rt := range runtimes {
		require.NoError(t, rt.Wait(t.Context()))
		require.NoError(t, rt.Close())
	}
	for late := time.Now().Add(10 * time.Second); goruntime.NumGoroutine() > goroutines && time.Now().Before(late); {
		time.Sleep(time.Millisecond)
	}
	require.LessOrEqual(t, goruntime.NumGoroutine(), goroutines)
}

// produce hands on results of 3 * (3 * weights + g) + g, some from streams that fail.
func produce(rt *Runtime, weights Slice[uint32], out chan<- *Future[uint32], rounds int, g uint32) error {
	for i := range rounds {
		s, err := rt.NewStream()
		if err != nil {
			return err
		}
		f, err := Compute(s, 4, func(p *Pass, out Slice[uint32]) error {
			return errors.Join(duplicate(p, out, weights), bump(p, out, g), bump(p, out, g))
		})
		if err != nil {
			return err
		}
		if i%5 == 4 {
			if err := s.FailNextCommit(); err != nil {
				return err
			}
		}
		if i%2 == 0 { // else whoever needs it has it committed
			if _, err := s.Commit(); err != nil {
				return err
			}
		}
		out <- f
		if err := s.Close(); err != nil {
			return err
		}
	}
	return nil
}

// consume uses results in a stream of its own, and each that has failed costs it its stream.
func consume(t *testing.T, rt *Runtime, in <-chan *Future[uint32]) error {
	s, err := rt.NewStream()
	if err != nil {
		return err
	}
	good, bad := 0, 0
	got := make([]uint32, 4)
	for f := range in {
		next, err := Compute(s, 4, func(p *Pass, out Slice[uint32]) error { return duplicate(p, out, f.Slice()) })
		if err == nil {
			err = next.Read(t.Context(), got)
			err = errors.Join(err, next.Release())
		}
		own := f.Wait(t.Context())
		switch {
		case own == nil && err == nil:
			good++
			if g := got[0] - 9; g != 0 && g != 4 || got[3] != 36+g {
				return fmt.Errorf("a result of %v", got)
			}
		case own == nil:
			return err
		case err == nil:
			return errors.New("a failure was not passed on")
		default:
			bad++
			if s.Err() != nil {
				if err := s.Close(); err != nil {
					return err
				}
				if s, err = rt.NewStream(); err != nil {
					return err
				}
			}
		}
		if err := f.Release(); err != nil {
			return err
		}
	}
	if good == 0 || bad == 0 {
		return fmt.Errorf("%d good results, %d bad ones", good, bad)
	}
	return s.Close()
}

// TestCloseUnderStreams closes a runtime while goroutines use streams: each of their calls succeeds or says why not.
func TestCloseUnderStreams(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{Workers: 1})
	x := mustSlice(t, rt, 4)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s, err := rt.NewStream()
			for err == nil {
				var f *Future[uint32]
				f, err = Compute(s, 4, func(p *Pass, out Slice[uint32]) error { return duplicate(p, out, x) })
				if err == nil {
					err = errors.Join(f.Wait(t.Context()), f.Release())
				}
			}
			if !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		})
	}
	time.Sleep(20 * time.Millisecond)
	require.NoError(t, rt.Close())
	wg.Wait()
	require.Zero(t, rt.Stats().LiveAllocations)
}
