package runtime

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ingot-metal/ingot/mtl"
)

// gpuTimes are when the device worked on one submission, in seconds of its clock. They belong to the submission: the
// device forgets them with its command buffer.
type gpuTimes struct {
	start, end float64
	known      atomic.Bool // set when start and end are
}

// read asks a completed command buffer.
func (t *gpuTimes) read(cb mtl.CommandBuffer) {
	t.start, t.end = cb.GPUStartTime(), cb.GPUEndTime()
	t.known.Store(true)
}

func (t *gpuTimes) duration() time.Duration {
	if !t.known.Load() {
		return 0
	}
	return max(0, time.Duration((t.end-t.start)*float64(time.Second)))
}

// timesBlock hands out gpuTimes from blocks of many, since submissions are values that nobody gives back: the garbage
// collector takes a block when the last submission that refers to it has gone.
type timesBlock struct {
	mu   sync.Mutex
	free []gpuTimes
}

// newTimes is where the next submission keeps its times, nil when it keeps none.
func (rt *Runtime) newTimes() *gpuTimes {
	if !rt.cfg.times && rt.trace.Load() == nil {
		return nil
	}
	b := &rt.times
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.free) == 0 {
		b.free = make([]gpuTimes, 128)
	}
	t := &b.free[0]
	b.free = b.free[1:]
	return t
}

// GPUTime is how long the device worked on completed work: 0 while the work is pending, and on devices that do not measure
// it. With [WithGPUTimes], or when it was submitted while a trace was taken, a submission keeps its time for ever; else it
// can be asked until 64 later ones have been submitted, so that nothing is lost of what is in flight together.
func (s Submission) GPUTime() time.Duration {
	switch {
	case s.rt == nil:
		return 0
	case s.times != nil:
		s.rt.queue.passed(s.seq) // which reads them
		return s.times.duration()
	}
	return s.rt.queue.gpuTime(s.seq)
}

// gpuTime asks the command buffer of a completed submission, if it is still there.
func (q *queue) gpuTime(seq uint64) time.Duration {
	if seq == 0 || !q.passed(seq) {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	cb := q.ring[seq%flights].cb
	if q.seq-seq >= flights || cb.IsNil() {
		return 0
	}
	var t gpuTimes
	t.read(cb)
	return t.duration()
}
