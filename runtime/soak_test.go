package runtime

import (
	"errors"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft"
)

// soakCount is how many steps of each kind the soak test takes: INGOT_SOAK, or few.
func soakCount(t *testing.T) int {
	text := os.Getenv("INGOT_SOAK")
	if text == "" {
		return 600
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "INGOT_SOAK")
	return n
}

// footprint is what a process and a device hold.
type footprint struct {
	heap, resident uint64 // bytes: live on the heap, and of the process where the system tells
	goroutines     int
	device         soft.Statistics
	runtime        Stats
}

func measure(rt *Runtime, dev mtl.Device) footprint {
	goruntime.GC()
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	f := footprint{heap: m.HeapAlloc, goroutines: goruntime.NumGoroutine(), device: soft.Stats(dev), runtime: rt.Stats()}
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, _ := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
			f.resident = kib << 10
		}
	}
	return f
}

// TestSoak has goroutines replay, submit and stream small work for a while: what the process, the runtime and the device hold
// stays the same.
func TestSoak(t *testing.T) {
	goroutines := goruntime.NumGoroutine()
	rt, dev := softRuntime(t, soft.Options{Workers: 1, NoHazards: true})
	x := mustSlice(t, rt, 16)
	prog, err := rt.Record(func(p *Pass) error {
		return errors.Join(fill(p, x, 1), bump(p, x, 2), bump(p, x, 3), bump(p, x, 4))
	})
	require.NoError(t, err)

	replay := func(i int) error {
		s, err := prog.Replay()
		if err == nil && i%16 == 0 {
			err = s.Wait(t.Context())
		}
		return err
	}
	direct := func(y Slice[uint32]) func(i int) error {
		return func(i int) error {
			encode := func(p *Pass) error { return errors.Join(fill(p, y, uint32(i)), bump(p, y, 1)) }
			if i%16 == 0 {
				return rt.Run(encode)
			}
			_, err := rt.Submit(encode)
			return err
		}
	}
	stream := func(s *Stream) func(i int) error {
		got := make([]uint32, 16)
		return func(i int) error {
			f, err := Compute(s, 16, func(p *Pass, out Slice[uint32]) error { return fill(p, out, uint32(i)) })
			if err != nil {
				return err
			}
			if i%64 == 0 {
				err = f.Read(t.Context(), got)
				if err == nil && got[15] != uint32(i) {
					err = errors.New("wrong result")
				}
			}
			return errors.Join(err, f.Release())
		}
	}
	steps := 0
	// round has two goroutines for each kind, which take n steps of it together.
	round := func(n int) {
		steps += n
		var wg sync.WaitGroup
		for g := range 2 {
			s := openStream(t, rt)
			y := mustSlice(t, rt, 16)
			for _, step := range []func(i int) error{replay, direct(y), stream(s)} {
				wg.Go(func() {
					for i := g; i < n; i += 2 {
						if err := step(i); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			defer func() {
				if err := errors.Join(s.Wait(t.Context()), s.Close(), y.Release()); err != nil {
					t.Error(err)
				}
			}()
		}
		wg.Wait()
		require.NoError(t, rt.Wait(t.Context()))
	}
	// What is kept for reuse grows to what the most work in flight at a time takes. That is so after the first rounds: from
	// then on nothing grows.
	const rounds, settled = 10, 4
	n := soakCount(t)
	began := time.Now()
	var at [rounds + 1]footprint
	at[0] = measure(rt, dev)
	var heap []uint64
	for i := range rounds {
		round(n / rounds)
		at[i+1] = measure(rt, dev)
		heap = append(heap, at[i+1].heap>>10)
	}
	start, end := at[settled], at[rounds]
	t.Logf("%d replays, %d direct steps, %d of streams in %v", steps, steps, steps, time.Since(began).Round(time.Millisecond))
	t.Logf("after %d rounds and at the end: heap %d to %d KiB, resident %d to %d KiB, device objects %d to %d, device memory %d to %d KiB, goroutines %d to %d",
		settled, start.heap>>10, end.heap>>10, start.resident>>10, end.resident>>10, start.device.Objects, end.device.Objects,
		start.device.Allocated>>10, end.device.Allocated>>10, start.goroutines, end.goroutines)
	t.Logf("heap by round, KiB: %d", heap)
	// What is kept for reuse takes some 4 MiB once all of it is there, which may be late on a slow machine. A leak of one small object for
	// each of a hundred thousand steps is more.
	require.LessOrEqual(t, end.heap, start.heap+4<<20)
	require.LessOrEqual(t, end.device.Allocated, start.device.Allocated+1<<20)
	require.LessOrEqual(t, end.runtime.Buffers, uint64(16*maxDispatches), "two streams of ten chunks in flight at most")
	require.LessOrEqual(t, end.device.Objects, int(end.runtime.Buffers)+2*flights)
	awaitGoroutines(t, at[0].goroutines)
	require.Equal(t, at[0].runtime.LiveAllocations, end.runtime.LiveAllocations)
	require.Zero(t, end.runtime.InFlight)
	require.EqualValues(t, steps, end.runtime.Replays)

	require.NoError(t, rt.Close())
	awaitGoroutines(t, goroutines)
	require.Zero(t, soft.Stats(dev).Goroutines)
}
