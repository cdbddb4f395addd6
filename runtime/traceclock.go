package runtime

import (
	"math"
	"time"

	"github.com/ingot-metal/ingot/mtl"
)

// clock brings the device's times to the host's clock. Metal gives times of command buffers in seconds of the system's
// uptime, and samples in ticks of the GPU; sampleTimestamps:gpuTimestamp: says what both clocks show at one moment, the
// system's in nanoseconds. Between two such moments the GPU's clock is taken to run evenly.
type clock struct {
	known    bool
	host     time.Time
	cpu, gpu uint64
}

// start reads the clocks for the first time.
func (c *clock) start(dev mtl.Device) {
	c.host = time.Now()
	c.known = dev.RespondsTo("sampleTimestamps:gpuTimestamp:")
	if !c.known {
		return
	}
	// The device's clocks are read at some time between two looks at the host's. On a busy machine that may be long: the closest of a
	// few counts.
	closest := time.Duration(math.MaxInt64)
	for range 3 {
		before := time.Now()
		cpu, gpu := dev.SampleTimestamps()
		if d := time.Since(before); d < closest {
			closest, c.host, c.cpu, c.gpu = d, before.Add(d/2), cpu, gpu
		}
	}
}

// A scale converts times of the device that lie between the clock's start and now.
type scale struct {
	*clock
	rate float64 // nanoseconds in a tick of the GPU
}

// now reads the clocks again.
func (c *clock) now(dev mtl.Device) scale {
	s := scale{c, 1}
	if c.known {
		if cpu, gpu := dev.SampleTimestamps(); gpu > c.gpu && cpu > c.cpu {
			s.rate = float64(cpu-c.cpu) / float64(gpu-c.gpu)
		}
	}
	return s
}

// ticks is the time of a sample.
func (s scale) ticks(gpu uint64) time.Time {
	return s.host.Add(time.Duration(float64(int64(gpu-s.gpu)) * s.rate))
}

// seconds is a time of a command buffer.
func (s scale) seconds(t float64) time.Time {
	return s.host.Add(time.Duration(t*float64(time.Second)) - time.Duration(s.cpu))
}

// interval is when the device worked on a command buffer that was committed at one time and seen to have completed at
// another: what the device says, moved between the two if its clock cannot be brought to the host's. The samples of its kernels
// are to be moved as far.
func (s scale) interval(t *gpuTimes, committed, seen time.Time) (from, to time.Time, moved time.Duration) {
	d, told := t.duration(), s.seconds(t.start)
	if s.known {
		if to = told.Add(d); !told.Before(committed) && !to.After(seen) {
			return told, to, 0
		}
	}
	from = seen.Add(-max(0, min(d, seen.Sub(committed))))
	if s.known && d > 0 {
		moved = from.Sub(told)
	}
	return from, seen, moved
}
