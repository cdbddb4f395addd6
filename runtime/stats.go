package runtime

import (
	"sync/atomic"
	"time"
)

// counters count what a runtime does.
type counters struct {
	passes, submissions, replays, programs  atomic.Uint64
	dispatches, blits, barriers, waits      atomic.Uint64
	pipelines, allocations, buffers         atomic.Uint64
	replayed, waited                        atomic.Uint64
	bytesAllocated, bytesRead, bytesWritten atomic.Uint64
}

// Stats are what a runtime has done and what it holds.
type Stats struct {
	// Passes is how many passes were submitted, Replays how many replays. Submissions are all commits of command buffers:
	// these, and copies of private memory.
	Passes, Replays, Submissions uint64
	// Programs is how many were recorded.
	Programs uint64
	// Dispatches and Barriers were encoded, in passes, recordings and checks; replays do not count.
	Dispatches, Barriers uint64
	// Blits are the copies and fills that were encoded.
	Blits uint64
	// Replayed is how many dispatches were executed by replays.
	Replayed uint64
	// Waits is how often something waited for the device, WaitTime how long in all.
	Waits    uint64
	WaitTime time.Duration
	// Pipelines and Allocations were made; Buffers is how many Metal buffers that took.
	Pipelines, Allocations, Buffers uint64
	// BytesAllocated is what Allocations had in all, by whole buffers, from the pool too. BytesRead and BytesWritten are what
	// the host copied from device memory and to it, without what it did in mapped memory.
	BytesAllocated, BytesRead, BytesWritten uint64
	// InFlight is the number of submissions that have not been seen to complete.
	InFlight int
	// LiveAllocations and LiveBytes are in use, PooledBytes are kept for reuse, in whole buffers.
	LiveAllocations, LiveBytes, PooledBytes int
}

// Stats are the counts at this moment, none of a nil runtime.
func (rt *Runtime) Stats() Stats {
	if rt == nil {
		return Stats{}
	}
	c := &rt.stats
	s := Stats{
		Passes: c.passes.Load(), Replays: c.replays.Load(), Submissions: c.submissions.Load(), Programs: c.programs.Load(),
		Dispatches: c.dispatches.Load(), Blits: c.blits.Load(), Barriers: c.barriers.Load(), Waits: c.waits.Load(),
		Pipelines: c.pipelines.Load(), Allocations: c.allocations.Load(), Buffers: c.buffers.Load(),
		Replayed: c.replayed.Load(), WaitTime: time.Duration(c.waited.Load()),
		BytesAllocated: c.bytesAllocated.Load(), BytesRead: c.bytesRead.Load(), BytesWritten: c.bytesWritten.Load(),
	}
	rt.queue.mu.Lock()
	s.InFlight = int(rt.queue.seq - rt.queue.done.Load())
	rt.queue.mu.Unlock()
	rt.mem.mu.Lock()
	s.LiveAllocations, s.LiveBytes, s.PooledBytes = len(rt.mem.live), rt.mem.bytes, rt.mem.pool.bytes
	rt.mem.mu.Unlock()
	return s
}
