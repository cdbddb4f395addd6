package runtime

import "math"

// MemStats say what memory a runtime holds, in bytes of whole buffers, and what it has done for it. The counts are of one
// moment, but of each by itself while other goroutines allocate.
type MemStats struct {
	// Held is all memory: Live, Pooled and Scalars. Peak is the most that it has been, and Budget the most that it may be.
	Held, Peak, Budget int
	// Live is in use, by slices that were not released, work in flight, programs, or mappings.
	Live int
	// InFlight is how much of Live is used by submissions that have not completed.
	InFlight int
	// Private is how much of Live only the device sees.
	Private int
	// External is how much of Live the runtime did not allocate: wrapped buffers, memory of the caller, mapped files.
	External int
	// Pooled was released and is kept for reuse.
	Pooled int
	// Scalars is what the const arena holds for the scalars of passes and programs.
	Scalars int
	// Resident is how much is in the residency set, 0 where the system has none.
	Resident int
	// Mappings is the number of mappings that have not been unmapped, Mapped how many bytes they have.
	Mappings, Mapped int
	// Allocations is how many were made, Reused how many of them took a buffer from the pool, and Buffers how many Metal
	// buffers were made for all purposes.
	Allocations, Reused, Buffers uint64
	// Zeroed is how many bytes were cleared for new allocations.
	Zeroed uint64
}

// MemStats are the figures of this moment, none of a nil runtime.
func (rt *Runtime) MemStats() MemStats {
	if rt == nil {
		return MemStats{}
	}
	rt.queue.reap()
	m := &rt.mem
	s := MemStats{
		Allocations: rt.stats.allocations.Load(), Reused: m.reused.Load(), Buffers: rt.stats.buffers.Load(), Zeroed: m.zeroed.Load(),
	}
	s.Mappings, s.Mapped = int(m.mappings.Load()), int(m.mapped.Load())
	done := rt.queue.done.Load()
	m.mu.Lock()
	s.Held, s.Peak, s.Budget, s.Live = m.held, m.peak, m.budget, m.bytes
	s.Private, s.External, s.Pooled = m.private, m.foreign, m.pool.bytes
	for a := range m.live {
		if a.lastUse.Load() > done {
			s.InFlight += a.class
			if a.of != nil && a.of.lastUse.Load() <= done {
				s.InFlight += a.of.class
			}
		}
	}
	m.mu.Unlock()
	rt.arena.mu.Lock()
	s.Scalars = rt.arena.made * chunkBytes
	rt.arena.mu.Unlock()
	rt.resident.mu.Lock()
	s.Resident = rt.resident.bytes
	rt.resident.mu.Unlock()
	return s
}

// Trim gives pooled memory back to the system, largest buffers first, until at most keep bytes are pooled, and what the
// const arena does not use. It says how many bytes that were.
func (rt *Runtime) Trim(keep int) (freed int, err error) {
	const fn = "Runtime.Trim"
	if err := rt.opened(fn); err != nil {
		return 0, err
	}
	if keep < 0 {
		return 0, &Error{Func: fn, Arg: "keep", Have: "a negative number", Need: "0 or more bytes", Err: ErrShape}
	}
	rt.life.RLock()
	defer rt.life.RUnlock()
	if rt.closed.Load() {
		return 0, &Error{Func: fn, Err: ErrClosed}
	}
	return rt.trim(keep), nil
}

// budget is how many bytes may be held on a device that recommends so many.
func (c *config) budget(recommended uint64) int {
	switch {
	case c.memory > 0:
		return c.memory
	case recommended > 0 && recommended < math.MaxInt:
		return int(recommended)
	}
	return math.MaxInt
}
