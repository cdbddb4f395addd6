package runtime

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestClockThatIsOff has a device's clock ahead of or behind what the host noted of it: its work lies between commit and completion
// all the same, and the samples of kernels move with it.
func TestClockThatIsOff(t *testing.T) {
	host := time.Now()
	committed, seen := host.Add(time.Second), host.Add(3*time.Second)
	times := &gpuTimes{start: 101.5, end: 102} // from 1.5 to 2 seconds after host
	times.known.Store(true)
	for _, off := range []time.Duration{0, time.Millisecond, -time.Millisecond, time.Minute, -time.Hour} {
		s := scale{&clock{known: true, host: host.Add(off), cpu: 100e9, gpu: 100e9}, 1}
		from, to, moved := s.interval(times, committed, seen)
		require.Equal(t, 500*time.Millisecond, to.Sub(from), off)
		require.False(t, from.Before(committed) || to.After(seen), "%v: %v to %v", off, from, to)
		require.Equal(t, from, s.ticks(101.5e9).Add(moved), off)
		require.Equal(t, to, s.ticks(102e9).Add(moved), off)
		if off.Abs() <= time.Millisecond {
			require.Zero(t, moved, off)
		}
	}
	// Without times of the device, or a clock to compare with, the host's count, and nothing is moved.
	for _, c := range []struct {
		known bool
		times *gpuTimes
	}{{true, new(gpuTimes)}, {false, times}} {
		from, to, moved := scale{&clock{known: c.known, host: host.Add(time.Hour)}, 1}.interval(c.times, committed, seen)
		require.Equal(t, []any{seen.Add(-c.times.duration()), seen, time.Duration(0)}, []any{from, to, moved})
	}
}
